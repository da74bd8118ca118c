//! Summaries and keywords that a language model writes, in the place of those that are picked from the text.
//!
//! Each section is asked about once: what was said of it is kept beside the document's text, so that neither another
//! attempt nor the document that replaces it asks again about what did not change.

mod asking;
mod notes;
mod section;

use std::{
    collections::HashSet,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use futures_util::{StreamExt, stream};
use lkr_catalog::{ModelUsage, Progress, Stage, Task, TaskKind};
use lkr_domain::Layer;
use lkr_models::{ChatModel, ChatPurpose, ErrorKind};

pub(crate) use section::{Described, Part, Section};

use self::{asking::Asking, notes::Notes, section::Said};
use crate::{Result, draft::Draft, ingestor::Inner, pipeline::Report};

/// How many sections of a document are asked about at once.
const AT_ONCE: usize = 4;
/// After so many failures in a row nothing more of a document is asked.
const PATIENCE: u32 = 3;

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) usage: ModelUsage,
    pub(crate) warnings: Vec<String>,
}

/// Has the language model in force describe a document, as far as there is one. Where it fails, what was picked from the
/// text stands, and a warning says so: that is no reason to refuse a document.
pub(crate) async fn describe(inner: &Inner, draft: &mut Draft, task: &Task, report: &Report) -> Result<Told> {
    let Some(models) = &inner.ports.chat_models else { return Ok(Told::default()) };
    let model = match models.chat_model(ChatPurpose::Summarize).await {
        Ok(Some(model)) => model,
        Ok(None) => return Ok(Told::default()),
        Err(error) => {
            let warnings =
                vec![format!("summaries are extractive: the language model cannot be had: {error}")];
            return Ok(Told { warnings, ..Told::default() });
        }
    };
    let mut notes = Notes::of(inner, task.doc_id()?, task.input.revision).await?;
    if task.kind == TaskKind::Replace
        && let Some(live) = inner.ports.catalog.document(task.doc_id()?).await?
    {
        notes.join(Notes::of(inner, task.doc_id()?, live.value.revision).await?);
    }
    let work = Work::new(inner, &*model, notes);
    work.sections(draft, task, report).await?;
    work.whole(draft).await?;
    work.keep_all(task).await?;
    Ok(work.told())
}

/// The work on one document.
struct Work<'a> {
    inner: &'a Inner,
    model: &'a dyn ChatModel,
    notes: Mutex<Notes>,
    asked: AtomicU64,
    tokens: AtomicU64,
    failed: AtomicU64,
    in_a_row: AtomicU32,
    /// What the model said nothing of that can be used.
    unsaid: Mutex<HashSet<String>>,
    given_up: AtomicBool,
    last_failure: Mutex<Option<String>>,
}

impl<'a> Work<'a> {
    fn new(inner: &'a Inner, model: &'a dyn ChatModel, notes: Notes) -> Self {
        Self {
            inner,
            model,
            notes: Mutex::new(notes),
            asked: AtomicU64::default(),
            tokens: AtomicU64::default(),
            failed: AtomicU64::default(),
            in_a_row: AtomicU32::default(),
            unsaid: Mutex::default(),
            given_up: AtomicBool::default(),
            last_failure: Mutex::default(),
        }
    }

    /// Describes every section, and what lies in it.
    async fn sections(&self, draft: &mut Draft, task: &Task, report: &Report) -> Result<()> {
        let total = draft.count(Layer::L2);
        let progress = |done: u64| (Stage::Describe, Progress { done, total: total.into() });
        report.send_replace(progress(0));
        let mut described = Vec::new();
        {
            let draft = &*draft;
            let mut answers = stream::iter(0..total)
                .map(async |ordinal| {
                    let section = draft.section(ordinal).await?;
                    let said = self.said_of(&section).await;
                    Ok::<_, crate::Error>(said.map(|said| section.described(said)))
                })
                .buffered(AT_ONCE);
            let mut done = 0;
            while let Some(answer) = answers.next().await {
                described.extend(answer?);
                done += 1;
                report.send_replace(progress(done));
                self.keep(task).await?;
            }
        }
        draft.describe(described)
    }

    /// Describes the document as a whole.
    async fn whole(&self, draft: &mut Draft) -> Result<()> {
        // What is one section is described as one.
        let section = match draft.count(Layer::L2) {
            1 => draft.section(0).await?,
            _ => draft.whole_document().await?,
        };
        if let Some(said) = self.said_of(&section).await {
            draft.describe(vec![Described { layer: Layer::L1, ordinal: 0, said, parts: Vec::new() }])?;
        }
        Ok(())
    }

    /// What the model says of a section, or said before; nothing where it is not worth asking, or fails.
    async fn said_of(&self, section: &Section) -> Option<Said> {
        if section.is_short() {
            return None;
        }
        let digest = section.digest();
        let known = self.notes().get(&digest);
        if known.is_some() || self.given_up.load(Ordering::Relaxed) || self.unsaid().contains(&digest) {
            self.failed.fetch_add(u64::from(known.is_none()), Ordering::Relaxed);
            return known;
        }
        let asked = Asking::new(self.model).describe(section).await;
        self.asked.fetch_add(asked.calls, Ordering::Relaxed);
        self.tokens.fetch_add(asked.tokens, Ordering::Relaxed);
        match asked.answer {
            Ok(said) => {
                self.in_a_row.store(0, Ordering::Relaxed);
                self.notes().add(digest, said.clone());
                Some(said)
            }
            Err(error) => {
                self.fail(&error);
                self.unsaid().insert(digest);
                None
            }
        }
    }

    fn fail(&self, error: &lkr_models::Error) {
        tracing::warn!(%error, "a section could not be described by the language model");
        self.failed.fetch_add(1, Ordering::Relaxed);
        *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        let in_a_row = self.in_a_row.fetch_add(1, Ordering::Relaxed) + 1;
        let is_set_up_wrongly = error.kind() == ErrorKind::Config;
        if in_a_row >= PATIENCE || is_set_up_wrongly || error.is_retryable() {
            self.given_up.store(true, Ordering::Relaxed);
        }
    }

    /// Keeps what was said, once there is enough that is not kept yet.
    async fn keep(&self, task: &Task) -> Result<()> {
        let unkept = self.notes().take_unkept(false);
        self.put(task, unkept).await
    }

    /// Keeps all that was said.
    async fn keep_all(&self, task: &Task) -> Result<()> {
        let unkept = self.notes().take_unkept(true);
        self.put(task, unkept).await
    }

    async fn put(&self, task: &Task, notes: Option<Vec<u8>>) -> Result<()> {
        match notes {
            Some(notes) => notes::keep(self.inner, task.doc_id()?, task.input.revision, notes).await,
            None => Ok(()),
        }
    }

    fn unsaid(&self) -> MutexGuard<'_, HashSet<String>> {
        self.unsaid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn told(self) -> Told {
        let usage = ModelUsage { calls: self.asked.into_inner(), tokens: self.tokens.into_inner() };
        let last = self.last_failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        let failed = self.failed.into_inner();
        let warning = last
            .map(|error| format!("{failed} summaries are extractive: the language model failed: {error}"));
        Told { usage, warnings: warning.into_iter().collect() }
    }
}
