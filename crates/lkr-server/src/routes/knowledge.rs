use actix_web::http::{Method, StatusCode};

use crate::{
    error::Failing,
    http::{Admin, Answer, Cx, Endpoint, Reader, Reply},
    openapi::{Doc, Shape, schema},
    wire::{
        knowledge::{Categories, CategoryItem, KnowledgeStats},
        tasks::Accepted,
    },
};

pub(super) fn rows() -> Vec<Endpoint> {
    let doc = |id, summary, shape| Doc::new("Knowledge", id, summary, Shape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::GET,
            "/api/v1/knowledge/categories",
            doc("categories", "The categories that documents are classified into", schema::<Categories>()),
            categories,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/knowledge/stats",
            doc("stats", "How much there is", schema::<KnowledgeStats>()),
            stats,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/knowledge/reclassify",
            doc(
                "reclassify",
                "Accepts that all documents be classified again; categories that a person chose stay",
                schema::<Accepted>(),
            )
            .status(StatusCode::ACCEPTED),
            reclassify,
        ),
    ]
}

async fn categories(_: Reader, cx: Cx) -> Answer {
    cx.no_query()?;
    let categories: Vec<_> =
        cx.services()?.kb.taxonomy().categories().iter().map(CategoryItem::from).collect();
    Reply::ok(&Categories { count: categories.len(), categories })
}

async fn stats(_: Reader, cx: Cx) -> Answer {
    cx.no_query()?;
    let stats = cx.services()?.kb.stats().await.reading()?;
    Reply::ok(&KnowledgeStats::from(stats))
}

async fn reclassify(Admin(caller): Admin, mut cx: Cx) -> Answer {
    cx.no_body().await?;
    let task = cx.services()?.kb.reclassify(&caller.creator()).await.writing()?;
    Reply::accepted(&Accepted { task_id: task.task_id, status: task.status.name() })
}
