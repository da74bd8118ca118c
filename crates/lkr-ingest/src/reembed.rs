//! The change of the embedding model: the collections of the new one are filled beside those that answer, and take over
//! in one step.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use futures_util::{FutureExt, StreamExt, stream};
use lkr_catalog::{
    ActiveTask, Catalog, ModelName, Progress, ReembedResult, Stage, Task, TaskKind, TaskResult, TaskStatus,
};
use lkr_domain::{Creator, DocId};
use lkr_models::{Embedder, EmbedderProfile};
use time::OffsetDateTime;

use crate::{
    Error, ErrorKind, Result,
    calibrate::calibrate,
    collection_sets::{CollectionSets, Filling, Stillness, drop_leftovers},
    fill::{fill, fill_bare, lacking},
    ingestor::{CONTENDED_TRIES, Inner, contended},
    pipeline::Report,
};

/// Who asks for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReembedTrigger {
    /// Nobody: it is what the service was started with. A change that a person cancelled is not begun anew.
    AtStart,
    /// Somebody does.
    Actor(Creator),
}

/// How many documents are listed at a time.
const PAGE: usize = 100;

/// How many documents are embedded at a time: small ones share what a model takes at once.
const AT_ONCE: usize = 4;

/// Of how many documents one may be left out because the model has no vectors for it.
const LEFT_OUT_OF: u64 = 100;

/// How many of fewer documents may be, unless that is more than half of them.
const LEFT_OUT_OF_FEW: u64 = 10;

/// How often it is looked whether a model can be had.
const NO_MODEL_PAUSE: Duration = Duration::from_secs(2);

/// The longest pause while a model is away.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Accepts that all documents get vectors of `model`; an unfinished change to another ends as cancelled. Answers the
/// task that does it, `None` where nothing is to be done.
pub(crate) async fn accept(
    inner: &Inner,
    model: Option<&EmbedderProfile>,
    asked: &ReembedTrigger,
) -> Result<Option<Task>> {
    let model = model.map(|profile| ModelName { id: profile.id.clone(), name: profile.name.clone() });
    let _deciding = inner.deciding.lock().await;
    for _ in 0..CONTENDED_TRIES {
        match try_accept(inner, model.as_ref(), asked).await {
            Err(error) if error.kind() == ErrorKind::Overtaken => {}
            accepted => {
                // A step that failed may have been done all the same.
                let accepted = accepted.inspect_err(|_| inner.requeue_soon())?;
                inner.queue(accepted.as_slice()).await;
                inner.noted.notify_one();
                return Ok(accepted);
            }
        }
    }
    Err(contended())
}

async fn try_accept(
    inner: &Inner,
    model: Option<&ModelName>,
    asked: &ReembedTrigger,
) -> Result<Option<Task>> {
    let catalog = &inner.ports.catalog;
    let unfinished = catalog.reembedding().await?;
    let under_way = unfinished.as_ref();
    let Some(model) = model else {
        // A start without a model says nothing of what is to come.
        if let (ReembedTrigger::Actor(_), Some(unfinished)) = (asked, under_way) {
            catalog.cancel(unfinished, Vec::new()).await?;
        }
        return Ok(None);
    };
    let is_same = |named: &ModelName| named.id == model.id;
    if let Some(same) = under_way.filter(|now| now.task.input.model.as_ref().is_some_and(is_same)) {
        return Ok(Some(same.task.clone()));
    }
    let live = CollectionSets::live_model(&*inner.ports.vectors).await?;
    if live.as_ref() == Some(&model.id) {
        if let Some(unfinished) = under_way {
            catalog.cancel(unfinished, vec![Catalog::undecline()]).await?;
        }
        return Ok(None);
    }
    let created_by = match asked {
        ReembedTrigger::AtStart if catalog.declined().await?.as_ref() == Some(&model.id) => {
            tracing::warn!(
                model = model.name,
                "the change to this model was cancelled: searches use the earlier one"
            );
            return Ok(None);
        }
        ReembedTrigger::AtStart => Creator::default(),
        ReembedTrigger::Actor(creator) => creator.clone(),
    };
    let task = Task::reembed(created_by, model.clone());
    catalog.accept_reembedding(&task, under_way, vec![Catalog::undecline()]).await?;
    tracing::info!(model = model.name, task = %task.task_id, "every document is embedded anew");
    Ok(Some(task))
}

/// Drops the collections of changes that came to nothing.
pub(crate) async fn tidy(inner: &Inner) -> Result<()> {
    // Nobody asks for a model meanwhile whose collections were not to be used.
    let _deciding = inner.deciding.lock().await;
    let under_way = inner.ports.catalog.reembedding().await?;
    let model = under_way.and_then(|unfinished| unfinished.task.input.model);
    let dropped = drop_leftovers(&*inner.ports.vectors, model.as_ref().map(|model| &*model.id)).await;
    inner.noted.notify_one();
    dropped
}

/// Embeds all documents by the model of the task, has searches use it, and ends the task. While the model is away, the
/// task waits.
pub(crate) async fn reembed(inner: &Inner, active: ActiveTask, task: &Task, report: &Report) -> Result<()> {
    let model = task.input.model.as_ref();
    let model = model.ok_or_else(|| Error::new(ErrorKind::Internal, "reembed", "the task names no model"))?;
    let Some(embedder) = inner.ports.embedders.embedder_of(&model.id) else {
        tracing::debug!(model = model.name, "the model cannot be had for now");
        return wait(inner, active, task, report, NO_MODEL_PAUSE).await;
    };
    match Work::new(inner, &embedder, report).run(active, task).await {
        Err(error) if error.kind() == ErrorKind::ModelAway => {
            let failures = inner.stalled.fetch_add(1, Ordering::Relaxed).min(16);
            let pause = inner.options.backoff.saturating_mul(1 << failures).min(MAX_PAUSE);
            tracing::warn!(model = model.name, %error, ?pause, "the model is away; documents are embedded later");
            wait(inner, active, task, report, pause).await
        }
        done => done,
    }
}

/// Has the task wait for so long, as one that is to be tried again.
async fn wait(
    inner: &Inner,
    active: ActiveTask,
    task: &Task,
    report: &Report,
    pause: Duration,
) -> Result<()> {
    let (stage, progress) = *report.borrow();
    let updated_at = OffsetDateTime::now_utc();
    let task = Task { status: TaskStatus::Pending, stage, progress, updated_at, ..task.clone() };
    inner.ports.catalog.record_progress(active, &task).await?;
    Err(Error::new(ErrorKind::Waiting(pause), "reembed", "the model is away"))
}

struct Work<'a> {
    inner: &'a Inner,
    embedder: &'a Arc<dyn Embedder>,
    report: &'a Report,
    progress: Progress,
    /// How many texts were embedded.
    embedded: u64,
    /// Documents that the model has no vectors for, and why.
    left_out: BTreeMap<DocId, Error>,
}

impl<'a> Work<'a> {
    fn new(inner: &'a Inner, embedder: &'a Arc<dyn Embedder>, report: &'a Report) -> Self {
        let (progress, left_out) = (Progress::default(), BTreeMap::new());
        Self { inner, embedder, report, progress, embedded: 0, left_out }
    }

    async fn run(mut self, active: ActiveTask, task: &Task) -> Result<()> {
        let begun = Instant::now();
        let (catalog, vectors) = (&self.inner.ports.catalog, &*self.inner.ports.vectors);
        let profile = self.embedder.profile();
        let mut stillness = None;
        // Otherwise the process ended after the step that had searches use it.
        if CollectionSets::live_model(vectors).await?.as_ref() != Some(&profile.id) {
            let filling = self.inner.shelves.begin_filling(vectors, &**self.embedder).await?;
            self.all().await?;
            calibrate(self.inner, &**self.embedder).await?;
            stillness = Some(self.arrived(&filling).await?);
        }
        let deciding = self.inner.deciding.lock().await;
        if let Some(stillness) = stillness {
            self.check_wanted(active).await?;
            stillness.switch(vectors, &profile.id).await?;
        }
        let documents = catalog.stats().await?.counts.l1;
        let mut result = ReembedResult {
            model: profile.name.clone(),
            embedded: self.embedded,
            cosine_scale: catalog.cosine_scale(&profile.id).await?.unwrap_or(profile.cosine_scale),
            elapsed_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..ReembedResult::default()
        };
        for (doc_id, error) in self.left_out {
            result.leave_out(format!("document {doc_id} is found by its words alone: {error}"));
        }
        result.reembedded = documents.saturating_sub(result.left_out);
        let done = task.done(Stage::Embed, documents, TaskResult::Reembedded(result));
        catalog.end_reembedding(active, &done).await?;
        drop(deciding);
        tracing::info!(model = profile.name, documents, "searches use the new model");
        if let Err(error) = tidy(self.inner).await {
            tracing::warn!(%error, "the earlier model's collections could not be dropped; the next start does");
        }
        Ok(())
    }

    /// Embeds every document that is there; those that lie in the model's collections already are done.
    async fn all(&mut self) -> Result<()> {
        let catalog = &self.inner.ports.catalog;
        self.progress.total = catalog.stats().await?.counts.l1;
        let mut after: Option<DocId> = None;
        loop {
            let page = catalog.list(&lkr_catalog::ListFilter::default(), after, PAGE).await?;
            let lacking = lacking(self.inner, &self.embedder.profile().id, &page.items).await?;
            self.tell((page.items.len() - lacking.len()) as u64);
            self.some(&lacking).await?;
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Embeds what arrived meanwhile, until nothing more does. Where that does not become less, what is written has to
    /// wait for the rest.
    async fn arrived(&mut self, filling: &Filling) -> Result<Stillness<'a>> {
        let shelves = &self.inner.shelves;
        let mut before = usize::MAX;
        loop {
            let arrived = filling.arrived();
            if arrived.is_empty()
                && let Some(stillness) = shelves.still(filling).await
            {
                return Ok(stillness);
            }
            if arrived.len() >= before {
                let stillness = shelves.hold().await;
                self.catch_up(&arrived).await?;
                self.catch_up(&filling.arrived()).await?;
                return Ok(stillness);
            }
            before = arrived.len();
            self.catch_up(&arrived).await?;
        }
    }

    async fn catch_up(&mut self, arrived: &BTreeSet<DocId>) -> Result<()> {
        let arrived: Vec<DocId> = arrived.iter().copied().collect();
        self.some(&arrived).await
    }

    /// Embeds some documents.
    async fn some(&mut self, documents: &[DocId]) -> Result<()> {
        if documents.is_empty() {
            return Ok(());
        }
        let (inner, embedder) = (self.inner, &**self.embedder);
        // Should the process end amid one that is deleted meanwhile, the note tells the next start to look after it.
        inner.ports.catalog.embedding(documents).await?;
        let fills = documents
            .iter()
            .map(|&doc_id| fill(inner, embedder, doc_id).map(move |done| (doc_id, done)).boxed());
        let mut fills = stream::iter(fills.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
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
            inner.stalled.store(0, Ordering::Relaxed);
            self.tell(1);
        }
        Ok(())
    }

    /// Has a document found by its words alone that the model has no vectors for. A model that has none for many is
    /// not one to search by.
    async fn leave_out(&mut self, doc_id: DocId, error: Error) -> Result<()> {
        let total = self.progress.total;
        if self.left_out.len() as u64 >= LEFT_OUT_OF_FEW.min(total / 2).max(total / LEFT_OUT_OF) {
            return Err(error);
        }
        fill_bare(self.inner, &self.embedder.profile().id, doc_id).await?;
        tracing::warn!(%doc_id, %error, "the model has no vectors for a document: it is found by its words alone");
        self.left_out.insert(doc_id, error);
        Ok(())
    }

    /// Tells that so many more are done.
    fn tell(&mut self, more: u64) {
        let done = self.progress.done + more;
        self.progress = Progress { done, total: self.progress.total.max(done) };
        self.report.send_replace((Stage::Embed, self.progress));
    }

    /// Refuses to go on where the change was cancelled, or another took its place.
    async fn check_wanted(&self, active: ActiveTask) -> Result<()> {
        if self.inner.ports.catalog.active(active.subject).await? == Some(active) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Overtaken, "reembed", "the change is not wanted any more"))
    }
}

/// What is written in the step that cancels a task: that no start begins this change by itself again.
pub(crate) fn alongside_cancel(task: &Task) -> Vec<lkr_state::Write> {
    let model = task.input.model.as_ref().filter(|_| task.kind == TaskKind::Reembed);
    model.map(|model| Catalog::decline(&model.id)).into_iter().collect()
}
