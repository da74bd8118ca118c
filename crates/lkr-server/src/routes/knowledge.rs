//! Categories and statistics.

use actix_web::http::{Method, StatusCode};

use crate::{
    error::KbResultExt,
    http::{Admin, ApiResponse, Endpoint, HandlerResult, Reader, RequestContext},
    openapi::{OperationDoc, ResponseShape, schema},
    wire::{
        knowledge::{Categories, CategoryItem, KnowledgeStats},
        tasks::Accepted,
    },
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let doc =
        |id, summary, shape| OperationDoc::new("Knowledge", id, summary, ResponseShape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::GET,
            "/api/v1/knowledge/categories",
            doc(
                "categories",
                "Lists the categories that documents are classified into",
                schema::<Categories>(),
            ),
            categories,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/knowledge/stats",
            doc("stats", "Counts documents and points", schema::<KnowledgeStats>()),
            stats,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/knowledge/reclassify",
            doc(
                "reclassify",
                "Accepts a reclassification of all documents. Categories set by a user stay",
                schema::<Accepted>(),
            )
            .status(StatusCode::ACCEPTED),
            reclassify,
        ),
    ]
}

async fn categories(_: Reader, cx: RequestContext) -> HandlerResult {
    cx.no_query()?;
    let categories: Vec<_> =
        cx.services()?.kb.taxonomy().categories().iter().map(CategoryItem::from).collect();
    ApiResponse::ok(&Categories { count: categories.len(), categories })
}

async fn stats(_: Reader, cx: RequestContext) -> HandlerResult {
    cx.no_query()?;
    let stats = cx.services()?.kb.stats().await.for_read()?;
    ApiResponse::ok(&KnowledgeStats::from(stats))
}

async fn reclassify(Admin(caller): Admin, mut cx: RequestContext) -> HandlerResult {
    cx.no_body().await?;
    let task = cx.services()?.kb.reclassify(&caller.creator()).await.for_write()?;
    ApiResponse::accepted(&Accepted { task_id: task.task_id, status: task.status.name() })
}
