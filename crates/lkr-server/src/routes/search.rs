use std::time::Instant;

use actix_web::{
    http::{
        Method,
        header::{HeaderName, HeaderValue},
    },
    web::Bytes,
};
use futures_util::{StreamExt, stream};
use lkr::{CacheStatus, retrieval::SummaryPart};
use serde_json::json;

use crate::{
    error::{ApiError, Failing},
    http::{self, Answer, Cx, Endpoint, Reader, Reply, event},
    openapi::{Doc, Shape, schema},
    wire::{
        search::{SearchAnswer, SummaryDone},
        search_input::SearchInput,
    },
};

/// More than the longest query and filters can need, every character an escape.
const BODY_BYTES: usize = 1024 * 1024;

const CACHED: &str = "hit or miss: whether the answer came from the cache.";

const X_CACHE: HeaderName = HeaderName::from_static("x-cache");

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            Method::POST,
            "/api/v1/search",
            Doc::new("Search", "search", "Searches", Shape::Envelope(schema::<SearchAnswer>()))
                .header("X-Cache", CACHED)
                .body::<SearchInput>(),
            search,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/search/stream",
            Doc::new(
                "Search",
                "search_stream",
                "Searches, answered as events: results, then summary.delta and summary.done, or error",
                Shape::Bare("text/event-stream"),
            )
            .header("X-Cache", CACHED)
            .body::<SearchInput>(),
            stream,
        ),
    ]
}

async fn search(_: Reader, mut cx: Cx) -> Answer {
    let (answer, cache) = answer(&mut cx).await?;
    Ok(Reply::ok(&answer)?.header(X_CACHE, cache))
}

/// The answer in parts. A refusal comes before the first part, and is a plain envelope.
async fn stream(_: Reader, mut cx: Cx) -> Answer {
    let request = cx.json::<SearchInput>(BODY_BYTES).await?.check()?;
    let started = Instant::now();
    let begun = cx.services()?.kb.search_begin(&request).await.reading()?;
    let cache = noted(&cx, begun.cache, started);
    let results = event("results", &SearchAnswer::from(&*begun.response))?;
    let summary = begun.summary.unwrap_or_else(|| stream::empty().boxed());
    let summary = summary.map(|part| told(&part).unwrap_or_else(|error| failed(&error)));
    let events = stream::iter([results]).chain(summary).map(Ok);
    Ok(http::events(events).header(X_CACHE, cache))
}

/// An event of a part of a summary.
fn told(part: &SummaryPart) -> Result<Bytes, ApiError> {
    match part {
        SummaryPart::Text(text) => event("summary.delta", &json!({ "text": text })),
        SummaryPart::End(summary, warnings) => {
            let warnings = Some(warnings.as_slice()).filter(|warnings| !warnings.is_empty());
            event("summary.done", &SummaryDone { summary: summary.into(), warnings })
        }
    }
}

/// The event of a failure.
fn failed(error: &ApiError) -> Bytes {
    let said = json!({ "code": error.code.number(), "message": error.message });
    event("error", &said).unwrap_or_default()
}

async fn answer(cx: &mut Cx) -> Result<(SearchAnswer, HeaderValue), ApiError> {
    let request = cx.json::<SearchInput>(BODY_BYTES).await?.check()?;
    let started = Instant::now();
    let found = cx.services()?.kb.search(&request).await.reading()?;
    Ok((SearchAnswer::from(&*found.response), noted(cx, found.cache, started)))
}

/// Counts a search, and answers what its header says.
fn noted(cx: &Cx, cache: CacheStatus, started: Instant) -> HeaderValue {
    let hit = cache == CacheStatus::Hit;
    cx.state().metrics.search(hit, started.elapsed());
    HeaderValue::from_static(if hit { "hit" } else { "miss" })
}
