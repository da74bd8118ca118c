//! Categories and statistics.

use actix_web::http::{Method, StatusCode};
use time::OffsetDateTime;

use crate::{
    error::{ErrorCode, KbResultExt},
    http::{Admin, ApiResponse, Endpoint, HandlerResult, Reader, RequestContext, SMALL_BODY_BYTES},
    openapi::{OperationDoc, ResponseShape, schema},
    wire::{
        knowledge::{Categories, CategoryItem, KnowledgeStats, ReclassifyInput},
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
            doc("stats", "Counts the documents that the caller may read, and their points", schema::<KnowledgeStats>())
                .query_space("Only documents of this space.")
                .query_choice("histograms", "Whether to tell when documents were added, and their sizes.", ["true", "false"])
                .errors(&[ErrorCode::NotFound]),
            stats,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/knowledge/reclassify",
            doc(
                "reclassify",
                "Accepts a reclassification of all documents, or of those of a space. Categories set by a user stay",
                schema::<Accepted>(),
            )
            .status(StatusCode::ACCEPTED)
            .optional_body::<ReclassifyInput>()
            .errors(&[ErrorCode::NotFound]),
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

async fn stats(reader: Reader, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let space = query.space()?;
    let histograms = query.parsed("histograms", "true or false", |text| text.parse().ok())?;
    query.finish()?;
    let scope = cx.rights(reader.0.as_ref()).await?.scope(space.as_deref())?;
    let stats = cx.services()?.kb.stats(&scope).await.for_read()?;
    let stats = match histograms.unwrap_or(false) {
        true => KnowledgeStats::with_histograms(stats, OffsetDateTime::now_utc().date()),
        false => KnowledgeStats::from(stats),
    };
    ApiResponse::ok(&stats)
}

async fn reclassify(Admin(caller): Admin, mut cx: RequestContext) -> HandlerResult {
    let input: Option<ReclassifyInput> = cx.optional_json(SMALL_BODY_BYTES).await?;
    let space = cx.readable_space(&caller, input.and_then(|input| input.space)).await?;
    let task = cx.services()?.kb.reclassify(space, &caller.creator()).await.for_write()?;
    ApiResponse::accepted(&Accepted { task_id: task.task_id, status: task.status.name() })
}
