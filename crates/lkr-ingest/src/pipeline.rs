//! Takes the document of a task from its stored text to being live.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use lkr_catalog::{
    ActiveTask, DocumentResult, Duplicate, ModelUsage, Stage, Stored, Task, TaskInput, TaskKind, TaskResult,
};
use lkr_domain::{Document, Fingerprint};
use lkr_state::Write;
use tracing::{Instrument, debug_span};

use crate::{
    Error, ErrorKind, Result,
    dedup::{Decision, Lookup, decide, look_up},
    describe::describe,
    document_draft::{StoredText, draft_document, parse},
    duplicate_index::TextClaim,
    point_writer::PointWriter,
    publish::Publication,
    report::Report,
    reused_vectors::ReusedVectors,
    space_text::SpaceText,
    state::IngestState,
    store_points::PointStorage,
    text_budget::TextPermit,
};

/// The pause before a task looks again whether the task with a duplicate of its text has ended: ten times the time that it
/// took to get there, within these bounds.
const MIN_DUPLICATE_PAUSE: Duration = Duration::from_millis(100);
const MAX_DUPLICATE_PAUSE: Duration = Duration::from_secs(10);

const NO_MODEL: &str = "no embedding model: the document is found by its words alone until there is one";

/// Ingests the document of `task`.
pub(crate) async fn ingest(
    state: &IngestState,
    active: ActiveTask,
    task: &Task,
    report: &Report,
    share: TextPermit,
) -> Result<()> {
    let pipeline = Pipeline { state, active, task, begun: Instant::now() };
    pipeline.run(report, share).await
}

struct Pipeline<'a> {
    state: &'a IngestState,
    active: ActiveTask,
    task: &'a Task,
    begun: Instant,
}

/// A claim on the text, and the expectations of the publishing step.
type UniqueText<'a> = (Option<TextClaim<'a>>, Vec<Write>);

impl<'a> Pipeline<'a> {
    async fn run(&self, report: &Report, share: TextPermit) -> Result<()> {
        let Self { state, task, .. } = *self;
        report.begin(Stage::Parse);
        let (text, permit) = self.read_text(share).instrument(debug_span!("read_text")).await?;
        let parsing = parse(&state.ports.parser, text).instrument(debug_span!("parse"));
        let (parsed, fingerprint) = parsing.await?;
        // The claim is held until the document is published.
        let Some((_claim, unique)) = self.claim_text(&fingerprint).await? else { return Ok(()) };
        report.begin(Stage::Layer);
        let now = state.ports.catalog.now();
        let drafting = draft_document(state.sparse, task, parsed, fingerprint.clone(), now, permit);
        let (mut draft, mut warnings) = drafting.instrument(debug_span!("layer")).await?;
        if let Some(before) = state.ports.catalog.document(task.doc_id()?).await? {
            draft.keep_creation_of(&before.value);
        }
        let describing = describe(&state.ports, &mut draft, task, report);
        let described = describing.instrument(debug_span!("describe")).await?;
        let writer = PointWriter::new(&state.ports, task.doc_id()?).await?;
        let reused = self.reusable_vectors(&writer).await?;
        let batch = state.options.batch;
        let storage = PointStorage { ports: &state.ports, batch, writer: &writer, reused: &reused };
        let storing = storage.store(&mut draft, report).instrument(debug_span!("embed"));
        let (embedded, category) = storing.await?;
        report.begin(Stage::Publish);
        warnings.extend(described.warnings.into_iter().chain(category.warning));
        warnings.extend(writer.embedder().is_none().then(|| NO_MODEL.to_owned()));
        let result = DocumentResult {
            title: draft.document.title.clone(),
            duplicate_of: None,
            category: draft.document.category.clone(),
            language: draft.document.language.clone(),
            counts: draft.document.counts,
            embedded,
            usage: sum(described.usage, category.usage),
            warnings,
            elapsed_ms: self.elapsed_ms(),
        };
        let done = self.done(result);
        let has_dense = writer.embedder().is_some();
        let tags = Mutex::new(draft.tags.clone());
        let publication = Publication { draft: &draft, task: &done, has_dense, writer: &writer, tags };
        self.publish(&publication, &fingerprint, unique).instrument(debug_span!("publish")).await
    }

    /// Publishes the document, or ends the task as a duplicate if another process has published one since the lookup that made
    /// `unique`.
    async fn publish(
        &self,
        publication: &Publication<'_>,
        fingerprint: &Fingerprint,
        unique: Vec<Write>,
    ) -> Result<()> {
        let unique = Mutex::new(Some(unique));
        let first_lookup = || unique.lock().unwrap_or_else(PoisonError::into_inner).take();
        let attempt = || async {
            // Points in the folder of a process whose place another one has taken would not be found.
            self.state.ports.peers.verify()?;
            let unique = match first_lookup() {
                Some(unique) => unique,
                None => match self.look_up(fingerprint).await? {
                    Lookup::Unique(unique) => unique,
                    Lookup::Duplicate(found, earlier) => return self.end_duplicate(found, &earlier).await,
                },
            };
            publication.publish(self.state, unique).await
        };
        self.state.ports.catalog.retry_on_conflict("publish document", attempt).await
    }

    async fn look_up(&self, fingerprint: &Fingerprint) -> Result<Lookup> {
        let (catalog, index) = (&self.state.ports.catalog, &self.state.duplicates);
        let space = self.task.space.clone().unwrap_or_default();
        let text = SpaceText { space: &space, fingerprint };
        look_up((catalog, &self.state.ports.peers), index, self.task.input.dedup, text).await
    }

    /// Reads the text. If only this text is unreadable while the store works, that counts as a failed attempt: a damaged
    /// file must not be retried forever.
    async fn read_text(&self, share: TextPermit) -> Result<(StoredText, TextPermit)> {
        let texts = &self.state.ports.texts;
        let (doc_id, revision) = (self.task.doc_id()?, self.task.input.revision);
        let TaskInput { text_sha256, blocks_sha256, .. } = &self.task.input;
        let read = async {
            let permit = match share {
                Some(share) => Some(share),
                None => self.state.text_budget.acquire(texts.length(doc_id, revision).await?).await,
            };
            let text = texts.get(doc_id, revision, text_sha256.as_deref()).await?;
            let blocks = match self.task.input.extracted {
                true => Some(texts.blocks(doc_id, revision, blocks_sha256.as_deref()).await?),
                false => None,
            };
            Ok::<_, lkr_catalog::Error>((StoredText { text, blocks }, permit))
        };
        match read.await {
            Err(error) if error.is_retryable() && texts.health().await.is_ok() => {
                Err(Error::new(ErrorKind::Unreadable, "read text", error))
            }
            read => Ok(read?),
        }
    }

    /// Claims the text for this task; `None` if it is a duplicate, and the task has ended.
    async fn claim_text(&self, fingerprint: &Fingerprint) -> Result<Option<UniqueText<'a>>> {
        let attempt = || self.try_claim_text(fingerprint);
        self.state.ports.catalog.retry_on_conflict("find duplicates", attempt).await
    }

    async fn try_claim_text(&self, fingerprint: &Fingerprint) -> Result<Option<UniqueText<'a>>> {
        let space = self.task.space.clone().unwrap_or_default();
        let text = SpaceText { space: &space, fingerprint };
        let (stores, index) = ((&self.state.ports.catalog, &self.state.ports.peers), &self.state.duplicates);
        match decide(stores, index, self.task.task_id, self.task.input.dedup, text).await? {
            Decision::Unique(claim, unique) => Ok(Some((claim, unique))),
            Decision::Wait => {
                let pause = (10 * self.begun.elapsed()).clamp(MIN_DUPLICATE_PAUSE, MAX_DUPLICATE_PAUSE);
                let reason = "another task is ingesting a duplicate";
                Err(Error::new(ErrorKind::Waiting(pause), "ingest", reason))
            }
            Decision::Duplicate(found, earlier) => self.end_duplicate(found, &earlier).await.map(|()| None),
        }
    }

    /// Ends the task with the earlier document as its result. What it stored is collected.
    ///
    /// # Errors
    /// `Conflict` if the earlier document changed, which is worth another lookup.
    async fn end_duplicate(&self, found: Duplicate, earlier: &Stored<Document>) -> Result<()> {
        let document = earlier.value.clone();
        let result = DocumentResult {
            title: document.title,
            duplicate_of: Some(found),
            category: document.category,
            language: document.language,
            counts: document.counts,
            embedded: 0,
            usage: ModelUsage::default(),
            warnings: self.task.input.warnings.clone(),
            elapsed_ms: self.elapsed_ms(),
        };
        let ended = Task { subject: found.doc_id.into(), ..self.done(result) };
        let catalog = &self.state.ports.catalog;
        match catalog.end_duplicate(self.active, &ended, earlier).await.map_err(Error::from) {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                if catalog.active(self.active.subject).await? == Some(self.active) {
                    return Err(error);
                }
                return Err(Error::new(ErrorKind::Superseded, "ingest", "the task was cancelled"));
            }
            ended => ended?,
        }
        self.state.gc.remove_original_of(self.task).await;
        self.state.gc.wake();
        Ok(())
    }

    /// The vectors that a replacement can take from the document that it replaces.
    async fn reusable_vectors(&self, writer: &PointWriter) -> Result<ReusedVectors> {
        if self.task.kind != TaskKind::Replace || writer.embedder().is_none() {
            return Ok(ReusedVectors::default());
        }
        let live = self.state.ports.catalog.document(self.task.doc_id()?).await?;
        let Some(live) = live else { return Ok(ReusedVectors::default()) };
        let (state, chunks) = (self.state, &writer.collections().chunks);
        ReusedVectors::of(&*state.ports.vectors, state.options.batch, chunks, &live.value).await
    }

    fn done(&self, result: DocumentResult) -> Task {
        let now = self.state.ports.catalog.now();
        self.task.done(now, Stage::Publish, 1, TaskResult::Document(result))
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

const fn sum(one: ModelUsage, other: ModelUsage) -> ModelUsage {
    ModelUsage { calls: one.calls + other.calls, tokens: one.tokens + other.tokens }
}
