//! Search, as one response or as a stream of events, and context for language models.

use std::time::{Duration, Instant};

use actix_web::{
    http::{
        Method,
        header::{HeaderName, HeaderValue},
    },
    web::Bytes,
};
use futures_util::{StreamExt, stream};
use lkr::{
    CacheStatus, ContextRequest, SearchProfile, SearchRequest, SearchResponse, retrieval::SummaryPart,
};
use serde_json::json;

use crate::{
    error::{ApiError, ErrorCode, KbResultExt},
    http::{
        ApiResponse, Endpoint, HandlerResult, Reader, Recheck, RequestContext, StreamSubject, sse_event,
        sse_response, to_json, while_permitted,
    },
    openapi::{OperationDoc, ResponseShape, schema},
    wire::{
        context::ContextAnswer,
        search::{SearchAnswer, SummaryDone},
        search_input::{ContextInput, SearchInput},
    },
};

/// More than the longest query and filters need with every character escaped.
pub(super) const BODY_BYTES: usize = 1024 * 1024;

const X_CACHE_DOC: &str = "hit or miss: whether the results came from the cache.";

const X_CACHE: HeaderName = HeaderName::from_static("x-cache");

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            Method::POST,
            "/api/v1/search",
            OperationDoc::new("Search", "search", "Searches the documents", ResponseShape::Envelope(schema::<SearchAnswer>()))
                .header("X-Cache", X_CACHE_DOC)
                .body::<SearchInput>()
                .errors(&[ErrorCode::NotFound]),
            search,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/search/stream",
            OperationDoc::new(
                "Search",
                "search_stream",
                "Searches the documents and streams events: results, then summary.delta and summary.done, or error",
                ResponseShape::Raw("text/event-stream"),
            )
            .header("X-Cache", X_CACHE_DOC)
            .body::<SearchInput>()
            .errors(&[ErrorCode::NotFound]),
            stream,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/context",
            OperationDoc::new(
                "Search",
                "context",
                "Returns the best passages for a question as one text for a prompt, within a budget of tokens",
                ResponseShape::Envelope(schema::<ContextAnswer>()),
            )
            .body::<ContextInput>()
            .errors(&[ErrorCode::NotFound]),
            context,
        ),
    ]
}

async fn search(reader: Reader, mut cx: RequestContext) -> HandlerResult {
    let request = scoped_request(&reader, &mut cx).await?;
    let started = Instant::now();
    let found = cx.services()?.kb.search(&request).await.for_read()?;
    let cache = record_search(&cx, &request.query, started.elapsed(), found.profile.as_ref());
    let serialize = |response: &SearchResponse| to_json(&SearchAnswer::from(response));
    let json = match found.cache {
        CacheStatus::Hit => cx.state().answer_cache.json(&found.response, serialize)?,
        CacheStatus::Miss => serialize(&found.response)?,
    };
    Ok(ApiResponse::ok_json(json).header(X_CACHE, cache))
}

/// The request, cut to what the caller may read.
async fn scoped_request(reader: &Reader, cx: &mut RequestContext) -> Result<SearchRequest, ApiError> {
    let (request, spaces) = cx.json::<SearchInput>(BODY_BYTES).await?.check()?;
    let scope = cx.rights(reader.0.as_ref()).await?.scope(spaces.as_deref())?;
    Ok(SearchRequest { scope, ..request })
}

async fn context(reader: Reader, mut cx: RequestContext) -> HandlerResult {
    let (request, spaces) = cx.json::<ContextInput>(BODY_BYTES).await?.check()?;
    let scope = cx.rights(reader.0.as_ref()).await?.scope(spaces.as_deref())?;
    let request = ContextRequest { scope, ..request };
    let started = Instant::now();
    let response = cx.services()?.kb.context(&request).await.for_read()?;
    cx.state().record_context(&cx.request_id(), &request.query, started.elapsed(), &response.profile);
    ApiResponse::ok(&ContextAnswer::from(response))
}

/// Streams the results and then the summary. An error before the results is a plain envelope.
async fn stream(reader: Reader, mut cx: RequestContext) -> HandlerResult {
    let request = scoped_request(&reader, &mut cx).await?;
    let started = Instant::now();
    let begun = cx.services()?.kb.search_stream(&request).await.for_read()?;
    let cache = record_search(&cx, &request.query, started.elapsed(), begun.profile.as_ref());
    let results = sse_event("results", &SearchAnswer::from(&*begun.response))?;
    let summary = begun.summary.unwrap_or_else(|| stream::empty().boxed());
    let summary = summary.map(|part| summary_event(&part).unwrap_or_else(|error| error_event(&error)));
    let events = stream::iter([results]).chain(summary).map(Ok);
    let subject = StreamSubject::Spaces(request.scope);
    let events = while_permitted(cx, (subject, Recheck::EachItem), events, || None);
    Ok(sse_response(events).header(X_CACHE, cache))
}

/// The event of a part of a summary.
fn summary_event(part: &SummaryPart) -> Result<Bytes, ApiError> {
    match part {
        SummaryPart::Text(text) => sse_event("summary.delta", &json!({ "text": text })),
        SummaryPart::End(summary, warnings) => {
            let warnings = Some(warnings.as_slice()).filter(|warnings| !warnings.is_empty());
            sse_event("summary.done", &SummaryDone { summary: summary.into(), warnings })
        }
    }
}

fn error_event(error: &ApiError) -> Bytes {
    let data = json!({ "code": error.code.number(), "message": error.message });
    sse_event("error", &data).unwrap_or_default()
}

/// Counts a search and returns the value of its `X-Cache` header. A search without a profile was answered by the cache.
fn record_search(
    cx: &RequestContext,
    query: &str,
    took: Duration,
    profile: Option<&SearchProfile>,
) -> HeaderValue {
    cx.state().record_search(&cx.request_id(), query, took, profile);
    HeaderValue::from_static(if profile.is_none() { "hit" } else { "miss" })
}
