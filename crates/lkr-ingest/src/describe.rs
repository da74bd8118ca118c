//! Summaries and keywords from a language model, in place of the extracted ones.
//!
//! The model is asked once for each section. Its answers are stored beside the document's text, so that neither another
//! attempt nor a replacement asks again about a section that did not change.

mod answer_cache;
mod prompt;

use std::{
    collections::HashSet,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use futures_util::{StreamExt, stream};
use lkr_catalog::{ModelUsage, Progress, Stage, Task, TaskKind, Texts};
use lkr_domain::{DocId, Layer};
use lkr_models::{ChatModel, ChatPurpose, ErrorKind};

use self::{answer_cache::AnswerCache, prompt::SectionPrompt};
use crate::{
    Ports, Result,
    document_draft::DocumentDraft,
    report::Report,
    section::{Description, Section, SectionSummary},
};

/// The sections of a document that are described at once.
const CONCURRENCY: usize = 4;
/// The consecutive failures after which the rest of a document keeps its extracted summaries.
const MAX_FAILURES: u32 = 3;

/// What describing a document cost, and what went wrong.
#[derive(Debug, Default)]
pub(crate) struct DescribeOutcome {
    pub(crate) usage: ModelUsage,
    pub(crate) warnings: Vec<String>,
}

/// Has the language model describe a document, if there is one. A failure leaves the extracted summaries in place and adds a
/// warning: it does not fail the document.
pub(crate) async fn describe(
    ports: &Ports,
    draft: &mut DocumentDraft,
    task: &Task,
    report: &Report,
) -> Result<DescribeOutcome> {
    let Some(models) = &ports.chat_models else { return Ok(DescribeOutcome::default()) };
    let model = match models.chat_model(ChatPurpose::Summarize).await {
        Ok(Some(model)) => model,
        Ok(None) => return Ok(DescribeOutcome::default()),
        Err(error) => {
            let warning = format!("summaries are extractive: the language model is unavailable: {error}");
            return Ok(DescribeOutcome { warnings: vec![warning], ..DescribeOutcome::default() });
        }
    };
    let (doc_id, revision) = (task.doc_id()?, task.input.revision);
    let mut cache = AnswerCache::read(&ports.texts, doc_id, revision).await?;
    if task.kind == TaskKind::Replace
        && let Some(live) = ports.catalog.document(doc_id).await?
    {
        cache.extend(AnswerCache::read(&ports.texts, doc_id, live.value.revision).await?);
    }
    let describer = Describer::new(&ports.texts, &*model, doc_id, revision, cache);
    describer.sections(draft, report).await?;
    describer.whole_document(draft).await?;
    describer.save(true).await?;
    Ok(describer.into_outcome())
}

/// Describes one document.
struct Describer<'a> {
    texts: &'a Texts,
    model: &'a dyn ChatModel,
    doc_id: DocId,
    revision: u64,
    cache: Mutex<AnswerCache>,
    calls: AtomicU64,
    tokens: AtomicU64,
    failures: AtomicU64,
    consecutive_failures: AtomicU32,
    /// The digests of sections that the model failed to describe.
    failed: Mutex<HashSet<String>>,
    has_given_up: AtomicBool,
    last_error: Mutex<Option<String>>,
}

impl<'a> Describer<'a> {
    fn new(
        texts: &'a Texts,
        model: &'a dyn ChatModel,
        doc_id: DocId,
        revision: u64,
        cache: AnswerCache,
    ) -> Self {
        Self {
            texts,
            model,
            doc_id,
            revision,
            cache: Mutex::new(cache),
            calls: AtomicU64::default(),
            tokens: AtomicU64::default(),
            failures: AtomicU64::default(),
            consecutive_failures: AtomicU32::default(),
            failed: Mutex::default(),
            has_given_up: AtomicBool::default(),
            last_error: Mutex::default(),
        }
    }

    /// Describes every section with its parts.
    async fn sections(&self, draft: &mut DocumentDraft, report: &Report) -> Result<()> {
        let total = draft.count(Layer::L2);
        let progress = |done: u64| report.progress(Stage::Describe, Progress { done, total: total.into() });
        progress(0);
        let mut summaries = Vec::new();
        {
            let draft = &*draft;
            let mut described = stream::iter(0..total)
                .map(async |ordinal| {
                    let section = draft.section(ordinal).await?;
                    let description = self.describe(&section).await;
                    Ok::<_, crate::Error>(description.map(|description| section.summarized_by(description)))
                })
                .buffered(CONCURRENCY);
            let mut done = 0;
            while let Some(summary) = described.next().await {
                summaries.extend(summary?);
                done += 1;
                progress(done);
                self.save(false).await?;
            }
        }
        draft.set_summaries(summaries)
    }

    /// Describes the document as a whole.
    async fn whole_document(&self, draft: &mut DocumentDraft) -> Result<()> {
        let section = match draft.count(Layer::L2) {
            // The only section is the document.
            1 => draft.section(0).await?,
            _ => draft.whole_document().await?,
        };
        if let Some(description) = self.describe(&section).await {
            let (layer, parts) = (Layer::L1, Vec::new());
            draft.set_summaries(vec![SectionSummary { layer, ordinal: 0, description, parts }])?;
        }
        Ok(())
    }

    /// The stored or new description of a section; `None` if it is short, or the model fails.
    async fn describe(&self, section: &Section) -> Option<Description> {
        if section.is_short() {
            return None;
        }
        let digest = section.digest();
        let stored = self.cache().get(&digest);
        let is_skipped = || self.has_given_up.load(Ordering::Relaxed) || self.failed().contains(&digest);
        if stored.is_some() {
            return stored;
        }
        if is_skipped() {
            self.failures.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let answer = SectionPrompt::new(self.model).describe(section).await;
        self.calls.fetch_add(answer.calls, Ordering::Relaxed);
        self.tokens.fetch_add(answer.tokens, Ordering::Relaxed);
        match answer.description {
            Ok(description) => {
                self.consecutive_failures.store(0, Ordering::Relaxed);
                self.cache().insert(digest, description.clone());
                Some(description)
            }
            Err(error) => {
                self.count_failure(&error);
                self.failed().insert(digest);
                None
            }
        }
    }

    fn count_failure(&self, error: &lkr_models::Error) {
        let doc_id = self.doc_id;
        tracing::warn!(%doc_id, %error, "the language model cannot describe a section; keeping the extracted summary");
        self.failures.fetch_add(1, Ordering::Relaxed);
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        let consecutive = self.consecutive_failures.fetch_add(1, Ordering::Relaxed) + 1;
        let is_misconfigured = error.kind() == ErrorKind::Config;
        if consecutive >= MAX_FAILURES || is_misconfigured || error.is_retryable() {
            self.has_given_up.store(true, Ordering::Relaxed);
        }
    }

    /// Stores new descriptions: with `all`, any; else once there are enough.
    async fn save(&self, all: bool) -> Result<()> {
        let unsaved = self.cache().take_unsaved(all);
        if let Some(unsaved) = unsaved {
            self.texts.put_notes(self.doc_id, self.revision, unsaved).await?;
        }
        Ok(())
    }

    fn failed(&self) -> MutexGuard<'_, HashSet<String>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cache(&self) -> MutexGuard<'_, AnswerCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn into_outcome(self) -> DescribeOutcome {
        let usage = ModelUsage { calls: self.calls.into_inner(), tokens: self.tokens.into_inner() };
        let last_error = self.last_error.into_inner().unwrap_or_else(PoisonError::into_inner);
        let failures = self.failures.into_inner();
        let warning = last_error
            .map(|error| format!("{failures} summaries are extractive: the language model failed: {error}"));
        DescribeOutcome { usage, warnings: warning.into_iter().collect() }
    }
}
