//! The External Knowledge API of Dify: a knowledge is a space.

use actix_web::http::Method;
use lkr::SearchRequest;

use crate::{
    error::ErrorCode,
    http::{ApiResponse, AuthenticatedReader, Endpoint, HandlerResult, RequestContext},
    openapi::{OperationDoc, ResponseShape, schema},
    routes::search::BODY_BYTES,
    scored_search::scored_search,
    wire::dify::retrieval::{RetrievalAnswer, RetrievalInput},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![Endpoint::new(
        Method::POST,
        "/api/v1/dify/retrieval",
        OperationDoc::new(
            "Dify",
            "dify_retrieval",
            "Retrieves chunks of a space as Dify's External Knowledge API has it",
            ResponseShape::Bare(schema::<RetrievalAnswer>()),
        )
        .body::<RetrievalInput>()
        .errors(&[ErrorCode::NotFound]),
        retrieval,
    )]
}

async fn retrieval(reader: AuthenticatedReader, mut cx: RequestContext) -> HandlerResult {
    let retrieval = cx.json::<RetrievalInput>(BODY_BYTES).await?.check()?;
    let scope = cx.rights(Some(&reader.0)).await?.scope(Some(&[retrieval.space]))?;
    let request = SearchRequest { scope, ..retrieval.request };
    let results = scored_search(&cx, request, retrieval.threshold).await?;
    ApiResponse::bare(&RetrievalAnswer::new(&results))
}
