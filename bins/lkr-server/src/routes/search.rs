use std::time::Instant;

use actix_web::{
    HttpResponse,
    http::{
        Method,
        header::{self, HeaderName, HeaderValue},
    },
    web::Bytes,
};
use futures_util::stream;
use lkr::CacheStatus;
use serde::Serialize;
use serde_json::json;

use crate::{
    error::{ApiError, Failing},
    http::{Answer, Cx, Endpoint, Reader, Reply},
    openapi::{Doc, Shape, schema},
    wire::{search::SearchAnswer, search_input::SearchInput},
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
    let (mut answer, cache) = answer(&mut cx).await?;
    let summary = answer.take_summary();
    let mut events = vec![event("results", &answer)?];
    if let Some(summary) = summary {
        for delta in deltas(&summary.text) {
            events.push(event("summary.delta", &json!({ "text": delta }))?);
        }
        events.push(event("summary.done", &summary)?);
    }
    let events = stream::iter(events.into_iter().map(Ok::<_, actix_web::Error>));
    let response = HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((X_CACHE, cache))
        .streaming(events);
    Ok(Reply::Bare(response))
}

async fn answer(cx: &mut Cx) -> Result<(SearchAnswer, HeaderValue), ApiError> {
    let input: SearchInput = cx.json(BODY_BYTES).await?;
    let request = input.check()?;
    let started = Instant::now();
    let found = cx.services()?.kb.search(&request).await.reading()?;
    let hit = found.cache == CacheStatus::Hit;
    cx.state().metrics.search(hit, started.elapsed());
    let cache = HeaderValue::from_static(if hit { "hit" } else { "miss" });
    Ok((SearchAnswer::from(&*found.response), cache))
}

/// A server-sent event. JSON holds no line break, so that one line of data is enough.
fn event(name: &str, data: &impl Serialize) -> Result<Bytes, ApiError> {
    let data = serde_json::to_string(data).map_err(|error| ApiError::internal(&error))?;
    Ok(Bytes::from(format!("event: {name}\ndata: {data}\n\n")))
}

/// A text in pieces that make it up again: line by line, and one piece at the least.
fn deltas(text: &str) -> Vec<&str> {
    if text.is_empty() { vec![""] } else { text.split_inclusive('\n').collect() }
}

#[cfg(test)]
mod tests {
    use super::deltas;

    #[test]
    fn pieces_make_the_text() {
        for text in ["", "one", "one\ntwo\n", "\n"] {
            assert_eq!(deltas(text).concat(), text);
            assert!(!deltas(text).is_empty());
        }
    }
}
