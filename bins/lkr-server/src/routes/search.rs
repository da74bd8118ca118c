use std::time::Instant;

use actix_web::http::{
    Method,
    header::{HeaderName, HeaderValue},
};
use futures_util::stream;
use lkr::CacheStatus;
use serde_json::json;

use crate::{
    error::{ApiError, Failing},
    http::{self, Answer, Cx, Endpoint, Reader, Reply, event},
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
    Ok(http::events(stream::iter(events.into_iter().map(Ok))).header(X_CACHE, cache))
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
