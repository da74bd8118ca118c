//! What a search reads of the hits of its sparse legs while its query is embedded. It would read that anyway, later.

use lkr_domain::{Layer, PointId};
use lkr_vectors::Hit;
use tokio::task::yield_now;

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
    /// Chunks that are examined in any case, or probably.
    pub(crate) examined: IdMap<PointId, ExaminedChunk>,
}

impl Prepared {
    /// Reads what is needed of the hits of the sparse legs. If the future is dropped, what was read until then counts.
    pub(crate) async fn read(
        &mut self,
        state: &SearcherState,
        request: &SearchRequest,
        refinement: &Refinement,
        hits: &[(Layer, Vec<Hit>)],
    ) -> Result<()> {
        let documents = hits.iter().flat_map(|(_, hits)| hits).map(|hit| hit.origin.doc_id);
        self.records = live::read_records(&state.catalog, request, documents).await?;
        yield_now().await;
        let chunks = hits.iter().find(|(layer, _)| *layer == Layer::Chunks);
        let (mut early, mut titles) = (Vec::new(), live::Titles::default());
        for hit in refinement.early_hits(chunks.map_or(&[], |(_, hits)| hits)) {
            let doc_id = hit.origin.doc_id;
            if let Some(Some(record)) = self.records.get(&doc_id)
                && record.revision() == hit.origin.revision
            {
                early.push((hit.id, doc_id));
                titles.insert(doc_id, record.title()?);
            }
        }
        self.examined = refinement.read_and_examine(&*state.vectors, &early, &titles).await?;
        Ok(())
    }
}
