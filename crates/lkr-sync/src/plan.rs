use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use crate::{Digest, Issue, IssueKind, path};

/// The changes that make the documents equal to the folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Files to send, in an order in which large and small files are mixed evenly.
    pub uploads: Vec<PlannedUpload>,
    /// Documents whose file has another path now.
    pub moves: Vec<PlannedMove>,
    /// Documents to delete.
    pub deletes: Vec<PlannedDelete>,
    /// The number of files whose document is right.
    pub unchanged: usize,
    /// Files that are not synchronised, sorted by path.
    pub issues: Vec<Issue>,
    /// The number of files whose content was read to make this plan.
    pub hashed: usize,
}

impl Plan {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.uploads.is_empty() && self.moves.is_empty() && self.deletes.is_empty()
    }

    /// The bytes of the files to send.
    #[must_use]
    pub fn upload_bytes(&self) -> u64 {
        self.uploads.iter().map(|upload| upload.size).sum()
    }
}

/// A file to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedUpload {
    /// The path in the folder.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// The digest of its bytes.
    pub digest: Digest,
    /// Whether it has a document already, which is replaced.
    pub replaces: bool,
}

/// A document whose file has another path now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedMove {
    /// The document.
    pub doc_id: String,
    /// The path of its file before.
    pub from: String,
    /// The path of its file now.
    pub to: String,
    /// The new title, if the title is to change.
    pub title: Option<String>,
    /// Whether the file has another format now. Then it is also sent, and replaces the document.
    pub changes_format: bool,
}

/// A document to delete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedDelete {
    /// The document.
    pub doc_id: String,
    /// The path of its file.
    pub path: String,
    /// Why it is deleted.
    pub reason: Reason,
}

/// Why a document is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The folder has no such file.
    Gone,
    /// A newer document of the same file is right.
    Duplicate,
}

/// A file of the folder.
#[derive(Debug, Clone)]
pub(crate) struct LocalFile {
    pub(crate) path: String,
    pub(crate) size: u64,
    pub(crate) content: Content,
}

/// What can be done with a file.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// It can be sent.
    Known(Digest),
    /// The service refused these bytes, for this reason.
    Refused(String),
    /// It exists, but cannot be sent; an issue tells why.
    Unsendable,
}

/// A document of the folder.
#[derive(Debug, Clone)]
pub(crate) struct StoredDocument {
    pub(crate) doc_id: String,
    pub(crate) path: String,
    pub(crate) title: String,
    pub(crate) digest: Option<Digest>,
    pub(crate) updated_at: i64,
}

/// What a plan is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(crate) local: &'a [LocalFile],
    pub(crate) stored: &'a [StoredDocument],
    /// Folders that could not be listed. Nothing below them counts as gone.
    pub(crate) unreadable: &'a [String],
    /// Documents that the service refused to move, and the paths of their files.
    pub(crate) unmovable: &'a HashMap<String, String>,
}

/// The documents of one path, the newest first.
type Stored<'a> = Vec<&'a StoredDocument>;

/// Compares the folder with its documents. A document stays at its path as long as the folder has a file there.
pub(crate) fn make(inputs: Inputs<'_>) -> Plan {
    let mut plan = Plan::default();
    let by_path = by_path(inputs.stored);
    let mut new = Vec::new();
    for file in inputs.local {
        let documents = by_path.get(file.path.as_str()).map_or(&[][..], Vec::as_slice);
        plan_file(file, documents, &mut plan, &mut new);
    }
    let mut gone = gone(&inputs, &by_path);
    plan_new(new, &mut gone, &mut plan);
    plan.deletes.extend(gone.rest().map(|document| planned_delete(document, Reason::Gone)));
    plan.uploads.sort_by_cached_key(|upload| Digest::of(upload.path.as_bytes()).number());
    plan.deletes.sort_by(|a, b| (&a.path, &a.doc_id).cmp(&(&b.path, &b.doc_id)));
    plan
}

fn by_path(stored: &[StoredDocument]) -> BTreeMap<&str, Stored<'_>> {
    let mut by_path: BTreeMap<&str, Stored<'_>> = BTreeMap::new();
    for document in stored {
        by_path.entry(&document.path).or_default().push(document);
    }
    for documents in by_path.values_mut() {
        documents.sort_by(|a, b| (b.updated_at, &b.doc_id).cmp(&(a.updated_at, &a.doc_id)));
    }
    by_path
}

/// Plans what one file needs; one without a document is added to `new`.
fn plan_file<'a>(
    file: &'a LocalFile,
    documents: &[&StoredDocument],
    plan: &mut Plan,
    new: &mut Vec<(&'a LocalFile, Digest)>,
) {
    let kept = match &file.content {
        Content::Unsendable => return,
        Content::Refused(reason) => {
            plan.issues.push(Issue::new(&file.path, IssueKind::Refused, reason));
            documents.first()
        }
        Content::Known(digest) if documents.is_empty() => return new.push((file, *digest)),
        Content::Known(digest) => {
            let right = documents.iter().find(|document| document.digest == Some(*digest));
            match right {
                Some(_) => plan.unchanged += 1,
                // Which of several documents is replaced, the service decides. The others are deleted in a later round.
                None => plan.uploads.push(planned_upload(file, *digest, true)),
            }
            right
        }
    };
    let Some(kept) = kept else { return };
    let duplicates = documents.iter().filter(|document| document.doc_id != kept.doc_id);
    plan.deletes.extend(duplicates.map(|document| planned_delete(document, Reason::Duplicate)));
}

/// Plans what files without a document need. A document of another format is taken only if no file of its own format has the
/// same bytes, because it must be read again.
fn plan_new(new: Vec<(&LocalFile, Digest)>, gone: &mut Gone<'_>, plan: &mut Plan) {
    let mut left = Vec::new();
    for (file, digest) in new {
        match gone.take(digest, &file.path) {
            Some(document) => plan.moves.push(planned_move(document, &file.path)),
            None => left.push((file, digest)),
        }
    }
    for (file, digest) in left {
        let document = gone.take_of_any_format(digest);
        plan.uploads.push(planned_upload(file, digest, document.is_some()));
        plan.moves.extend(document.map(|document| planned_move(document, &file.path)));
    }
}

/// The documents that have no file, by their digests and formats.
#[derive(Debug, Default)]
struct Gone<'a> {
    movable: HashMap<Digest, BTreeMap<String, Stored<'a>>>,
    others: Stored<'a>,
}

fn gone<'a>(inputs: &Inputs<'a>, by_path: &BTreeMap<&'a str, Stored<'a>>) -> Gone<'a> {
    let local: BTreeSet<&str> = inputs.local.iter().map(|file| file.path.as_str()).collect();
    let hidden = |path: &str| inputs.unreadable.iter().any(|folder| path::is_below(path, folder));
    let mut gone = Gone::default();
    for (path, documents) in by_path {
        if local.contains(path) || hidden(path) {
            continue;
        }
        for document in documents {
            match document.digest {
                Some(digest) if !inputs.unmovable.contains_key(&document.doc_id) => {
                    let of_digest = gone.movable.entry(digest).or_default();
                    of_digest.entry(path::format(path)).or_default().push(document);
                }
                _ => gone.others.push(document),
            }
        }
    }
    gone
}

impl<'a> Gone<'a> {
    /// Removes a document of these bytes and this format: one with the same file name if there is one, otherwise the newest.
    fn take(&mut self, digest: Digest, to: &str) -> Option<&'a StoredDocument> {
        let documents = self.movable.get_mut(&digest)?.get_mut(&path::format(to))?;
        let name = path::file_name(to);
        let same_name = documents.iter().position(|document| path::file_name(&document.path) == name);
        let newest = || (0..documents.len()).max_by_key(|index| documents.get(*index).map(|d| d.updated_at));
        let index = same_name.or_else(newest)?;
        Some(documents.swap_remove(index))
    }

    /// Removes a document of these bytes.
    fn take_of_any_format(&mut self, digest: Digest) -> Option<&'a StoredDocument> {
        self.movable.get_mut(&digest)?.values_mut().find_map(Vec::pop)
    }

    fn rest(self) -> impl Iterator<Item = &'a StoredDocument> {
        self.movable.into_values().flat_map(BTreeMap::into_values).flatten().chain(self.others)
    }
}

/// The title follows the file name if it was made from it.
fn planned_move(document: &StoredDocument, to: &str) -> PlannedMove {
    let (before, after) = (path::stem(&document.path), path::stem(to));
    let follows = document.title == before && before != after;
    PlannedMove {
        doc_id: document.doc_id.clone(),
        from: document.path.clone(),
        to: to.to_owned(),
        title: follows.then(|| after.to_owned()),
        changes_format: path::format(&document.path) != path::format(to),
    }
}

fn planned_upload(file: &LocalFile, digest: Digest, replaces: bool) -> PlannedUpload {
    PlannedUpload { path: file.path.clone(), size: file.size, digest, replaces }
}

fn planned_delete(document: &StoredDocument, reason: Reason) -> PlannedDelete {
    PlannedDelete { doc_id: document.doc_id.clone(), path: document.path.clone(), reason }
}

#[cfg(test)]
mod tests;
