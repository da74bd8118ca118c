//! The task that changes the embedding model: the collections of the new model are filled beside the live ones, then take
//! over in one step.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{FutureExt, StreamExt, stream};
use lkr_catalog::{
    ActiveTask, Catalog, CollectionPhase, CollectionState, ListFilter, Progress, ReembedResult, Stage, Task,
    TaskResult, TaskStatus,
};
use lkr_domain::{DocId, Scope};
use lkr_models::{Embedder, REFERENCE_SCALE};

use crate::{
    Error, ErrorKind, Result,
    calibrate::calibrate,
    collection_set::{CollectionSet, collections_of_change},
    collections::switch_to,
    live_collections::{align_aliases, names_all_of},
    options::backoff,
    point_writer::begin_filling,
    report::Report,
    state::IngestState,
    vector_fill::{VectorFiller, without_vectors},
};

/// The number of documents that are listed at a time.
const PAGE: usize = 100;

/// The most documents that were published meanwhile and are read at a time.
const ARRIVALS: usize = 1_000;

/// The documents that are embedded at once, so that small ones share a batch of the model.
const CONCURRENCY: usize = 4;

/// One in so many documents may be left out because the model cannot embed it. See docs/studies.md#refused-documents.
const LEFT_OUT_SHARE: u64 = 100;

/// The documents that may be left out of a small knowledge base, up to half of it. See
/// docs/studies.md#refused-documents.
const MIN_LEFT_OUT: u64 = 10;

/// The pause before looking again for a model that is not configured.
const NO_MODEL_PAUSE: Duration = Duration::from_secs(2);

/// The longest backoff while the model is unavailable.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Embeds all documents with the model of the task, switches searches to it and ends the task. While the model is
/// unavailable, the task is pending.
pub(crate) async fn reembed(
    state: &IngestState,
    active: ActiveTask,
    task: &Task,
    report: &Report,
) -> Result<()> {
    let model = task.input.model.as_ref();
    let model = model.ok_or_else(|| Error::new(ErrorKind::Internal, "reembed", "the task names no model"))?;
    let Some(embedder) = state.ports.embedders.embedder_of(&model.id) else {
        tracing::debug!(model = model.name, "the model is not configured yet");
        return wait(state, active, task, report, NO_MODEL_PAUSE).await;
    };
    let next = CollectionSet::of_change(active, &model.id)?;
    match Reembedding::new(state, &embedder, &next, report).run(active, task).await {
        Err(error) if error.kind() == ErrorKind::ModelUnavailable => {
            let pause = backoff(state.options.backoff, state.model_change.count_failure(), MAX_BACKOFF);
            tracing::warn!(model = model.name, %error, ?pause, "re-embedding is paused: the model is unavailable");
            wait(state, active, task, report, pause).await
        }
        done => done,
    }
}

/// Makes the task pending and asks the runner to repeat it after the pause. Documents are published meanwhile.
async fn wait(
    state: &IngestState,
    active: ActiveTask,
    task: &Task,
    report: &Report,
    pause: Duration,
) -> Result<()> {
    resume_publishing(&state.ports.catalog, active).await?;
    let (stage, progress) = report.current();
    let updated_at = state.ports.catalog.now();
    let task = Task { status: TaskStatus::Pending, stage, progress, updated_at, ..task.clone() };
    state.ports.catalog.record_progress(active, &task).await?;
    Err(Error::new(ErrorKind::Waiting(pause), "reembed", "the model is unavailable"))
}

/// If the last arrivals are being filled, lets documents be published, and noted as arrivals, again.
async fn resume_publishing(catalog: &Catalog, active: ActiveTask) -> Result<()> {
    let attempt = || async {
        let before = catalog.collection_state().await?;
        let is_draining = before.phase == CollectionPhase::Draining && before.is_of(active);
        if is_draining && catalog.active(active.subject).await? == Some(active) {
            catalog.begin_phase(before, CollectionPhase::Filling, active).await?;
        }
        Ok(())
    };
    catalog.retry_on_conflict("let documents be published again", attempt).await
}

struct Reembedding<'a> {
    state: &'a IngestState,
    embedder: &'a Arc<dyn Embedder>,
    /// The collections that are filled.
    next: &'a CollectionSet,
    report: &'a Report,
    progress: Progress,
    /// The number of embedded texts.
    embedded: u64,
    /// The documents that the model cannot embed, with its errors.
    left_out: BTreeMap<DocId, Error>,
}

impl<'a> Reembedding<'a> {
    fn new(
        state: &'a IngestState,
        embedder: &'a Arc<dyn Embedder>,
        next: &'a CollectionSet,
        report: &'a Report,
    ) -> Self {
        let (progress, left_out) = (Progress::default(), BTreeMap::new());
        Self { state, embedder, next, report, progress, embedded: 0, left_out }
    }

    async fn run(mut self, active: ActiveTask, task: &Task) -> Result<()> {
        let begun = Instant::now();
        let (state, vectors) = (self.state, &*self.state.ports.vectors);
        // Read before the aliases: the task ends only if nobody begins a phase from here on.
        let mut collections = state.ports.catalog.collection_state().await?;
        // If they are live already, the worker before this one ended after the switch.
        if !names_all_of(vectors, self.next).await? {
            // If it ended, or is stalled, before the switch, the collections are complete.
            if collections.phase != CollectionPhase::Switching || !collections.is_of(active) {
                collections = self.fill_collections(active).await?;
            }
            switch_to(vectors, self.next).await?;
        }
        let embedder = Arc::clone(self.embedder);
        let result = self.into_result(begun).await?;
        let documents = result.reembedded + result.left_out;
        let catalog = &state.ports.catalog;
        let done = task.done(catalog.now(), Stage::Embed, documents, TaskResult::Reembedded(result));
        let live = collections_of_change(active, embedder.profile());
        let ended = catalog.end_reembedding(active, &done, &collections, live).await;
        // This worker may have been stalled until after a later change.
        if let Err(error) = align_aliases(vectors, catalog).await {
            tracing::warn!(%error, "cannot compare the aliases with the record; the janitor will");
        }
        ended?;
        tracing::info!(model = embedder.profile().name, documents, "searches use the new model");
        if let Err(error) = state.model_change.drop_unused_collections(&state.ports).await {
            tracing::warn!(%error, "cannot drop the collections of the previous model; the next start will");
        }
        Ok(())
    }

    /// Fills the collections of the model. On return nothing may be published, and the change can be neither cancelled nor
    /// replaced.
    async fn fill_collections(&mut self, active: ActiveTask) -> Result<CollectionState> {
        let state = self.state;
        let filling = begin_filling(&state.ports, active, self.next, &**self.embedder).await?;
        self.fill_all().await?;
        calibrate(&state.ports, &**self.embedder, state.options.batch).await?;
        let draining = self.drain_arrivals(active, filling).await?;
        Ok(state.ports.catalog.begin_phase(draining, CollectionPhase::Switching, active).await?)
    }

    async fn into_result(self, begun: Instant) -> Result<ReembedResult> {
        let (catalog, profile) = (&self.state.ports.catalog, self.embedder.profile());
        let documents = catalog.stats(&Scope::All).await?.counts.l1;
        let mut result = ReembedResult {
            model: profile.name.clone(),
            embedded: self.embedded,
            cosine_scale: match profile.cosine_scale {
                Some(known) => known,
                None => catalog.cosine_scale(&profile.id).await?.unwrap_or(REFERENCE_SCALE),
            },
            elapsed_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..ReembedResult::default()
        };
        for (doc_id, error) in self.left_out {
            result.leave_out(format!("document {doc_id} is found by its words alone: {error}"));
        }
        result.reembedded = documents.saturating_sub(result.left_out);
        Ok(result)
    }

    /// Embeds every document that lacks vectors of the model.
    async fn fill_all(&mut self) -> Result<()> {
        let ports = &self.state.ports;
        self.progress.total = ports.catalog.stats(&Scope::All).await?.counts.l1;
        let mut after: Option<DocId> = None;
        loop {
            let page = ports.catalog.list(&Scope::All, &ListFilter::default(), after, PAGE).await?;
            let lacking = without_vectors(ports, &self.next.l1, &page.items).await?;
            self.advance((page.items.len() - lacking.len()) as u64);
            self.fill(&lacking).await?;
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Embeds the documents that were published meanwhile, until there are none. If they do not become fewer, nothing may be
    /// published while the rest is embedded. On return nothing may be published.
    async fn drain_arrivals(
        &mut self,
        active: ActiveTask,
        filling: CollectionState,
    ) -> Result<CollectionState> {
        let mut previous = usize::MAX;
        loop {
            let arrived = self.fill_arrivals().await?;
            if arrived == 0 || arrived >= previous {
                break;
            }
            previous = arrived;
        }
        let catalog = &self.state.ports.catalog;
        let draining = catalog.begin_phase(filling, CollectionPhase::Draining, active).await?;
        while self.fill_arrivals().await? > 0 {}
        Ok(draining)
    }

    /// Embeds up to a batch of arrivals, and returns their number.
    async fn fill_arrivals(&mut self) -> Result<usize> {
        let catalog = &self.state.ports.catalog;
        let arrivals = catalog.arrivals(ARRIVALS).await?;
        let documents: Vec<DocId> = arrivals.iter().map(|arrival| arrival.doc_id).collect();
        self.fill(&documents).await?;
        for arrival in &arrivals {
            catalog.forget_arrival(*arrival).await?;
        }
        Ok(arrivals.len())
    }

    async fn fill(&mut self, documents: &[DocId]) -> Result<()> {
        if documents.is_empty() {
            return Ok(());
        }
        let (state, embedder) = (self.state, &**self.embedder);
        // If the process ends while one of them is deleted, the note lets the next start remove its points.
        state.ports.catalog.mark_unembedded(documents).await?;
        let filler = filler(state, self.next);
        let fills = documents
            .iter()
            .map(|&doc_id| filler.fill(embedder, doc_id).map(move |filled| (doc_id, filled)).boxed());
        let mut fills = stream::iter(fills.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY);
        while let Some((doc_id, filled)) = fills.next().await {
            match filled {
                Ok(embedded) => {
                    self.embedded += embedded;
                    self.left_out.remove(&doc_id);
                }
                Err(error) if error.kind() == ErrorKind::Unembeddable => {
                    self.leave_out(doc_id, error).await?;
                }
                Err(error) => return Err(error),
            }
            state.model_change.reset_failures();
            self.advance(1);
        }
        Ok(())
    }

    /// Leaves out a document that the model cannot embed: its words alone find it. Fails if there are too many: such a model
    /// is unfit for search.
    async fn leave_out(&mut self, doc_id: DocId, error: Error) -> Result<()> {
        let total = self.progress.total;
        if self.left_out.len() as u64 >= MIN_LEFT_OUT.min(total / 2).max(total / LEFT_OUT_SHARE) {
            return Err(error);
        }
        filler(self.state, self.next).fill_sparse(doc_id).await?;
        tracing::warn!(%doc_id, %error, "the model cannot embed a document; its words alone find it");
        self.left_out.insert(doc_id, error);
        Ok(())
    }

    fn advance(&mut self, documents: u64) {
        let done = self.progress.done + documents;
        self.progress = Progress { done, total: self.progress.total.max(done) };
        self.report.progress(Stage::Embed, self.progress);
    }
}

fn filler<'a>(state: &'a IngestState, target: &'a CollectionSet) -> VectorFiller<'a> {
    let (ports, changes) = (&state.ports, &state.changes);
    VectorFiller { ports, changes, target, batch: state.options.batch, moves: true }
}
