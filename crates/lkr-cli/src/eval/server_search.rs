use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::Deserialize;
use serde_json::json;

use crate::{
    eval::{Fusion, Mode},
    http::Client,
};

/// How many documents are asked for: as far as recall is measured.
const DOCUMENTS: usize = 100;

/// How many chunks are asked for: as many as a search answers unasked.
const CHUNKS: usize = 10;

/// Searches as the evaluation needs them.
#[derive(Debug)]
pub(super) struct Search {
    client: Client,
    mode: String,
    fusion: String,
}

/// What a search found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) results: Vec<Hit>,
    took: Duration,
    cached: bool,
}

/// A result, as far as it is looked at.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Hit {
    pub(super) chunk_id: String,
    pub(super) doc_id: String,
    pub(super) source: String,
    pub(super) text: String,
    pub(super) char_start: u32,
    pub(super) char_end: u32,
}

#[derive(Debug, Deserialize)]
struct Response {
    results: Vec<Hit>,
}

impl Search {
    pub(super) fn new(client: Client, mode: Mode, fusion: Fusion) -> Self {
        Self { client, mode: name(&mode), fusion: name(&fusion) }
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The best documents, each by its best chunk.
    pub(super) fn documents(&self, query: &str) -> Result<Found> {
        self.ask(query, "document", DOCUMENTS)
    }

    /// The best chunks.
    pub(super) fn chunks(&self, query: &str) -> Result<Found> {
        self.ask(query, "chunk", CHUNKS)
    }

    fn ask(&self, query: &str, group_by: &str, top_k: usize) -> Result<Found> {
        let body = json!({
            "query": query, "group_by": group_by, "top_k": top_k, "mode": self.mode, "fusion": self.fusion,
        });
        let started = Instant::now();
        let answer = self.client.post("/search", &body)?;
        let took = started.elapsed();
        let Response { results } =
            serde_json::from_value(answer.data).context("read the results of a search")?;
        Ok(Found { results, took, cached: answer.cached })
    }
}

impl Found {
    /// How long the search took from here; nothing where the answer came from the cache.
    pub(super) fn fresh(&self) -> Option<Duration> {
        (!self.cached).then_some(self.took)
    }
}

/// The name of a choice, on the command line and to the server alike.
fn name(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
}
