//! Accepting documents: new ones, replacements, and those of which only their sender's source tells which they are.

use std::{fmt, fs::File, ops::Deref, sync::Arc};

use bytes::Bytes;
use lkr_catalog::{
    Acceptance, Catalog, ContentDigests, DocumentState, ExtractedText, Idempotency, Remembered, Task,
    TaskInput, original_path, replaced_path,
};
use lkr_domain::{Creator, Dedup, DocId, Metadata, NewDocument, Original, RESERVED_METADATA};
use lkr_state::Write;
use time::OffsetDateTime;

use crate::{
    Error, ErrorKind, NewFile, Result,
    ingestor::{CONTENDED_TRIES, Inner},
    upsert::{self, Target},
};

/// How documents are submitted.
#[derive(Debug, Clone, Default)]
pub struct Submission {
    /// Who submits them.
    pub created_by: Creator,
    /// What the tasks' results should warn of.
    pub warnings: Vec<String>,
    /// When a new document is a duplicate. A replacement never is.
    pub dedup: Dedup,
    /// Which live documents of the same source are replaced rather than joined by another one.
    pub upsert: Option<Upsert>,
    /// Tells a submission that is sent again from a new one.
    pub idempotency: Option<Idempotency>,
    /// What is written in the step that accepts the replacement of a live document.
    pub on_replace: OnReplace,
}

impl Submission {
    /// That of somebody, with nothing else to say.
    #[must_use]
    pub fn by(created_by: Creator) -> Self {
        Self { created_by, ..Self::default() }
    }
}

/// Which documents a submission may replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upsert {
    /// Those that its sender brought in.
    Own,
    /// Any.
    Any,
}

/// What is written when a live document is to be replaced: the place for an entry in a log.
#[derive(Clone)]
pub struct OnReplace(Arc<dyn Fn(DocId) -> Vec<Write> + Send + Sync>);

impl OnReplace {
    /// Writes what `writes` makes of the document's id.
    pub fn new(writes: impl Fn(DocId) -> Vec<Write> + Send + Sync + 'static) -> Self {
        Self(Arc::new(writes))
    }
}

impl Default for OnReplace {
    fn default() -> Self {
        Self::new(|_| Vec::new())
    }
}

impl fmt::Debug for OnReplace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnReplace")
    }
}

impl Deref for OnReplace {
    type Target = dyn Fn(DocId) -> Vec<Write> + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

/// A document to be accepted.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) title: String,
    pub(crate) source: String,
    pub(crate) metadata: Metadata,
    pub(crate) content: Content,
    /// The document that it replaces.
    pub(crate) replaces: Option<DocId>,
}

/// What is stored of a document before it is accepted.
#[derive(Debug)]
pub(crate) enum Content {
    Text(Bytes),
    File { file_name: String, file: File, size_bytes: u64, extracted: ExtractedText },
}

impl Item {
    pub(crate) fn text(document: NewDocument, replaces: Option<DocId>) -> Result<Self> {
        let NewDocument { text, title, source, metadata } = document;
        if text.trim().is_empty() {
            let reason = "text is blank: at least one character that is not white space is needed";
            return Err(Error::new(ErrorKind::Invalid, "submit document", reason));
        }
        Ok(Self { title, source, metadata, content: Content::Text(text.into()), replaces })
    }

    pub(crate) fn file(file: NewFile, replaces: Option<DocId>) -> Self {
        let NewFile { file_name, file, size_bytes, extracted, title, source, metadata } = file;
        let content = Content::File { file_name, file, size_bytes, extracted };
        Self { title, source, metadata, content, replaces }
    }
}

/// Accepts documents, all of them or none; `None` where one is to replace what is not live. What was accepted under
/// the same idempotency key before is answered as it stands now.
pub(crate) async fn accept(
    inner: &Inner,
    items: Vec<(Item, Submission)>,
    idempotency: Option<&Idempotency>,
) -> Result<Option<Vec<Task>>> {
    // Those that aim at the same document go one after another, where they would only overtake each other.
    let _turn = match &*items {
        [(Item { replaces: Some(doc_id), .. }, _)] => inner.accepting.lock(doc_id).await,
        [(Item { source, .. }, Submission { upsert: Some(_), .. })] if !source.is_empty() => {
            inner.accepting.lock(source).await
        }
        _ => None,
    };
    let mut drafts: Vec<Draft> = items.into_iter().map(Draft::new).collect();
    let accepted = try_accept(inner, &mut drafts, idempotency).await;
    let kept = accepted.as_ref().ok().and_then(Option::as_ref);
    for draft in &drafts {
        draft.drop_unless_kept(inner, kept).await;
    }
    accepted
}

async fn try_accept(
    inner: &Inner,
    drafts: &mut [Draft],
    idempotency: Option<&Idempotency>,
) -> Result<Option<Vec<Task>>> {
    let catalog = &inner.ports.catalog;
    for _ in 0..CONTENDED_TRIES {
        let before = match idempotency {
            Some(idempotency) => catalog.remembered(idempotency).await?,
            None => Remembered::default(),
        };
        if !before.tasks.is_empty() {
            return Ok(Some(before.tasks));
        }
        let Some((acceptances, mut writes)) = prepare(inner, drafts).await? else {
            return Ok(None);
        };
        let tasks = || acceptances.iter().map(|acceptance| &acceptance.task);
        if let Some(idempotency) = idempotency {
            writes.push(idempotency.remember(tasks(), &before)?);
        }
        match catalog.accept(&acceptances, writes).await {
            Err(error) if error.kind() == lkr_catalog::ErrorKind::Conflict => {}
            // What failed may have been done all the same.
            Err(error) if !was_accepted(catalog, &acceptances).await => return Err(error.into()),
            _ => {
                let tasks: Vec<Task> = acceptances.into_iter().map(|acceptance| acceptance.task).collect();
                inner.queue(&tasks).await;
                return Ok(Some(tasks));
            }
        }
    }
    Err(Error::new(ErrorKind::StoreAway, "accept document", "it kept changing meanwhile"))
}

async fn was_accepted(catalog: &Catalog, acceptances: &[Acceptance]) -> bool {
    let Some(first) = acceptances.first() else { return true };
    matches!(catalog.task(first.task.task_id).await, Ok(Some(_)))
}

/// Finds out what each document is to take the place of, stores what it is made of, and answers what to write; `None`
/// where one is to replace what is not live.
async fn prepare(inner: &Inner, drafts: &mut [Draft]) -> Result<Option<(Vec<Acceptance>, Vec<Write>)>> {
    let (mut acceptances, mut writes) = (Vec::with_capacity(drafts.len()), Vec::new());
    let upserted = |draft: &Draft| draft.submission.upsert.map(|_| draft.item.source.clone());
    let sources: Vec<Option<String>> = drafts.iter().map(upserted).collect();
    for (at, draft) in drafts.iter_mut().enumerate() {
        // Of several that are about one document, the last counts.
        let later = sources.get(at + 1..).unwrap_or_default();
        let own = sources.get(at).filter(|source| source.as_ref().is_some_and(|source| !source.is_empty()));
        if own.is_some_and(|own| later.contains(own)) {
            let created_by = draft.submission.created_by.clone();
            let task = Task::ingest(DocId::new(), created_by, draft.input(1)).cancelled();
            acceptances.push(Acceptance { task, over: None });
            continue;
        }
        let Some(Target { doc_id, over, remember }) = target(inner, draft).await? else {
            return Ok(None);
        };
        writes.extend(remember);
        let replaces = over.as_ref().is_some_and(|over| over.document.is_some());
        if replaces {
            writes.extend((draft.submission.on_replace)(doc_id));
        }
        draft.store(inner, doc_id, over.as_ref()).await?;
        let mut input = draft.input(draft.revision());
        let created_by = draft.submission.created_by.clone();
        let task = match replaces {
            true => {
                input.dedup = Dedup::None;
                Task::replace(doc_id, created_by, input)
            }
            false => Task::ingest(doc_id, created_by, input),
        };
        acceptances.push(Acceptance { task, over });
    }
    Ok(Some((acceptances, writes)))
}

async fn target(inner: &Inner, Draft { item, submission, .. }: &Draft) -> Result<Option<Target>> {
    if let Some(doc_id) = item.replaces {
        let present = inner.ports.catalog.document_state(doc_id).await?;
        let live = present.document.is_some();
        return Ok(live.then_some(Target { doc_id, over: Some(present), remember: None }));
    }
    match submission.upsert {
        Some(upsert) if !item.source.is_empty() => {
            upsert::target(inner, &item.source, &submission.created_by, upsert).await.map(Some)
        }
        _ => Ok(Some(Target::new())),
    }
}

/// A document on its way to being accepted.
struct Draft {
    item: Item,
    submission: Submission,
    stored: Option<Stored>,
}

/// Where what a document is made of was stored.
struct Stored {
    doc_id: DocId,
    revision: u64,
    original: Option<Original>,
    /// Known once all is stored.
    digests: Option<ContentDigests>,
}

impl Draft {
    fn new((item, submission): (Item, Submission)) -> Self {
        Self { item, submission, stored: None }
    }

    fn revision(&self) -> u64 {
        self.stored.as_ref().map_or(1, |stored| stored.revision)
    }

    fn input(&self, revision: u64) -> TaskInput {
        let Item { title, source, metadata, content, .. } = &self.item;
        let mut warnings = self.submission.warnings.clone();
        let mut metadata = metadata.clone();
        drop_reserved(&mut metadata, &mut warnings);
        let digests = self.stored.as_ref().and_then(|stored| stored.digests.as_ref());
        TaskInput {
            revision,
            title: title.clone(),
            source: source.clone(),
            metadata,
            warnings,
            original: self.stored.as_ref().and_then(|stored| stored.original.clone()),
            extracted: matches!(content, Content::File { .. }),
            text_sha256: digests.map(|digests| digests.text.clone()),
            blocks_sha256: digests.and_then(|digests| digests.blocks.clone()),
            dedup: self.submission.dedup,
            model: None,
        }
    }

    /// Stores it for a document, unless that was done in an earlier try that came out at the same.
    async fn store(&mut self, inner: &Inner, doc_id: DocId, over: Option<&DocumentState>) -> Result<()> {
        if let Some(stored) = &self.stored {
            let revision = stored.revision;
            let latest = over.map_or(0, |over| over.next_revision(OffsetDateTime::UNIX_EPOCH));
            if stored.doc_id == doc_id && latest <= revision {
                return Ok(());
            }
            self.drop_unless_kept(inner, None).await;
        }
        let now = OffsetDateTime::now_utc();
        let revision = over.map_or(1, |over| over.next_revision(now));
        self.stored = Some(Stored { doc_id, revision, original: None, digests: None });
        let (original, digests) = match &self.item.content {
            Content::Text(text) => (None, inner.ports.texts.put(doc_id, revision, text.clone()).await?),
            Content::File { file_name, file, size_bytes, extracted } => {
                let path = match over {
                    None => original_path(doc_id, file_name, now),
                    Some(_) => replaced_path(doc_id, file_name, now),
                };
                let (file_name, size_bytes) = (file_name.clone(), *size_bytes);
                let original = Original { path, file_name, size_bytes, sha256: None };
                let original = put_original(inner, doc_id, file, original).await;
                if let Some(stored) = &mut self.stored {
                    stored.original.clone_from(&original);
                }
                let digests = inner.ports.texts.put_extracted(doc_id, revision, extracted).await?;
                (original, digests)
            }
        };
        self.stored = Some(Stored { doc_id, revision, original, digests: Some(digests) });
        Ok(())
    }

    /// Removes what was stored, unless one of these tasks answers for it. Should it stay for any reason, the next start
    /// sweeps it up.
    async fn drop_unless_kept(&self, inner: &Inner, tasks: Option<&Vec<Task>>) {
        let Some(Stored { doc_id, revision, original, .. }) = &self.stored else { return };
        let keeps = |task: &Task| task.subject.doc_id() == Some(*doc_id) && task.input.revision == *revision;
        if tasks.is_some_and(|tasks| tasks.iter().any(keeps)) {
            return;
        }
        // An accepting step that failed may have been done all the same.
        if !matches!(inner.ports.catalog.knows(*doc_id, *revision).await, Ok(false)) {
            return;
        }
        let _ = inner.ports.texts.delete(*doc_id, *revision).await;
        if let Some(original) = original {
            discard(inner, *doc_id, &original.path).await;
        }
    }
}

/// Stores the file itself; `None` where that fails, which is logged.
async fn put_original(inner: &Inner, doc_id: DocId, file: &File, original: Original) -> Option<Original> {
    let stored = async {
        inner.ports.catalog.note_upload(doc_id, &original.path).await?;
        inner.ports.originals.put(&original.path, file, original.size_bytes).await
    };
    match stored.await {
        Ok(sha256) => Some(Original { sha256: Some(sha256), ..original }),
        Err(error) => {
            tracing::warn!(%doc_id, %error, "an original could not be stored; its text is ingested without it");
            discard(inner, doc_id, &original.path).await;
            None
        }
    }
}

/// Removes what no task answers for. Where that fails, the next start does it.
async fn discard(inner: &Inner, doc_id: DocId, path: &str) {
    if inner.ports.originals.delete(path).await.is_ok() {
        let _ = inner.ports.catalog.forget_upload_at(doc_id, path).await;
    }
}

/// Takes away the metadata that only lkr itself sets, with a warning for each.
pub fn drop_reserved(metadata: &mut Metadata, warnings: &mut Vec<String>) {
    for key in RESERVED_METADATA {
        if metadata.remove(key).is_some() {
            warnings.push(format!("metadata key {key} is reserved and was dropped"));
        }
    }
}
