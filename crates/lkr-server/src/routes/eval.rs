//! Evaluation of searches.

use actix_web::http::{Method, StatusCode};

use crate::{
    error::KbResultExt,
    http::{Admin, ApiResponse, Endpoint, HandlerResult, RequestContext},
    openapi::{OperationDoc, ResponseShape, schema},
    wire::{eval::GoldSetInput, tasks::Accepted},
};

/// The size limit of a gold set.
const BODY_BYTES: usize = 4 * 1024 * 1024;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let summary = "Accepts an evaluation of searches against queries with known relevant documents";
    let doc =
        OperationDoc::new("Evaluation", "evaluate", summary, ResponseShape::Envelope(schema::<Accepted>()));
    vec![Endpoint::new(
        Method::POST,
        "/api/v1/eval",
        doc.status(StatusCode::ACCEPTED).body::<GoldSetInput>(),
        evaluate,
    )]
}

async fn evaluate(Admin(caller): Admin, mut cx: RequestContext) -> HandlerResult {
    let input: GoldSetInput = cx.json(BODY_BYTES).await?;
    let gold = input.check()?;
    let task = cx.services()?.kb.evaluate(&gold, &caller.creator()).await.for_write()?;
    ApiResponse::accepted(&Accepted::from(&task))
}
