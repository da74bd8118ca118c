//! What a search reads of the hits of its sparse legs while its query is embedded. It would read that anyway, later.

use std::sync::Arc;

use futures_util::FutureExt as _;
use lkr_domain::{Layer, PointId};
use lkr_vectors::{Hit, start_on_blocking_thread};
use tokio::task::JoinHandle;
use tracing::{Instrument as _, debug_span};

use crate::{
    Result, SearchRequest,
    ids::IdMap,
    live::{self, ReadRecords},
    refine::{ExaminedChunk, Refinement},
    searcher_state::SearcherState,
};

/// What was read early. It counts as long as the catalog's generation is the one before.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// The records of the documents of the hits.
    pub(crate) records: ReadRecords,
    /// Chunks that are searched for the query's literals in any case.
    pub(crate) examined: IdMap<PointId, ExaminedChunk>,
}

/// Reading on another thread.
#[derive(Debug)]
pub(crate) struct Preparing(JoinHandle<Result<Prepared>>);

impl Preparing {
    /// Begins to read. `hits` are those of the sparse legs.
    pub(crate) fn start(
        state: Arc<SearcherState>,
        request: Arc<SearchRequest>,
        refinement: Refinement,
        hits: Vec<(Layer, Vec<Hit>)>,
    ) -> Self {
        let reading = async move { prepare(&state, &request, &refinement, &hits).await };
        Self(start_on_blocking_thread(|| reading.instrument(debug_span!("prepare"))))
    }

    /// What was read. Nothing if reading has failed or goes on: then it is done again, and an error is met again.
    pub(crate) fn take(mut self) -> Prepared {
        let ended = (&mut self.0).now_or_never();
        self.0.abort();
        ended.and_then(|ended| ended.ok()?.ok()).unwrap_or_default()
    }
}

async fn prepare(
    state: &SearcherState,
    request: &SearchRequest,
    refinement: &Refinement,
    hits: &[(Layer, Vec<Hit>)],
) -> Result<Prepared> {
    let documents = hits.iter().flat_map(|(_, hits)| hits).map(|hit| hit.origin.doc_id);
    let records = live::read_records(&state.catalog, request, documents).await?;
    let chunks = hits.iter().find(|(layer, _)| *layer == Layer::Chunks);
    let (mut literal, mut titles) = (Vec::new(), live::Titles::default());
    for hit in refinement.literal_hits(chunks.map_or(&[], |(_, hits)| hits)) {
        let doc_id = hit.origin.doc_id;
        if let Some(Some(record)) = records.get(&doc_id)
            && record.revision() == hit.origin.revision
        {
            literal.push((hit.id, doc_id));
            titles.insert(doc_id, record.title()?);
        }
    }
    let examined = refinement.read_and_examine(&*state.vectors, &literal, &titles).await?;
    Ok(Prepared { records, examined })
}
