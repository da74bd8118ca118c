use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::Deserialize;
use serde_json::json;

use crate::{
    eval::args::{FusionArg, ModeArg},
    http::Client,
};

/// The number of documents per search: the depth of recall@100.
const DOCUMENTS: usize = 100;

/// The number of chunks per search: the server's default.
const CHUNKS: usize = 10;

/// Searches on a server.
#[derive(Debug)]
pub(super) struct ServerSearch {
    client: Client,
    mode: String,
    fusion: String,
}

/// The results of a search.
#[derive(Debug)]
pub(super) struct ServerResponse {
    pub(super) results: Vec<ServerHit>,
    /// The latency that the client saw; `None` if the response came from the cache, or nothing was asked.
    pub(super) uncached_latency: Option<Duration>,
}

/// The parts of a result that are used.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ServerHit {
    pub(super) chunk_id: String,
    pub(super) doc_id: String,
    pub(super) source: String,
    pub(super) text: String,
    pub(super) char_start: u32,
    pub(super) char_end: u32,
}

#[derive(Debug, Deserialize)]
struct SearchResponse {
    results: Vec<ServerHit>,
}

impl ServerSearch {
    pub(super) fn new(client: Client, mode: ModeArg, fusion: FusionArg) -> Self {
        Self { client, mode: name(&mode), fusion: name(&fusion) }
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The best documents, each by its best chunk.
    pub(super) fn documents(&self, query: &str) -> Result<ServerResponse> {
        self.send(query, "document", DOCUMENTS)
    }

    /// The best chunks.
    pub(super) fn chunks(&self, query: &str) -> Result<ServerResponse> {
        self.send(query, "chunk", CHUNKS)
    }

    /// Searches. Some collections have blank queries, which find nothing: a server refuses them.
    fn send(&self, query: &str, group_by: &str, top_k: usize) -> Result<ServerResponse> {
        if query.trim().is_empty() {
            return Ok(ServerResponse { results: Vec::new(), uncached_latency: None });
        }
        let body = json!({
            "query": query, "group_by": group_by, "top_k": top_k, "mode": self.mode, "fusion": self.fusion,
        });
        let started = Instant::now();
        let answer = self.client.post("/search", &body)?;
        let latency = started.elapsed();
        let SearchResponse { results } =
            serde_json::from_value(answer.data).context("read the results of a search")?;
        Ok(ServerResponse { results, uncached_latency: (!answer.cached).then_some(latency) })
    }
}

/// The name of a value, which is the same on the command line and in the API.
fn name(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
}
