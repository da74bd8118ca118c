//! The keys of the records in the state store.

use lkr_domain::{DocId, SpaceName, TaskId, hex};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::TaskSubject;

/// Counts every change that searches can show.
pub(crate) const GENERATION: &str = "generation";
/// Counts the changes that affect the searches of every space.
pub(crate) const CORPUS_GENERATION: &str = "generation/";
pub(crate) const DOCUMENTS: &str = "doc/";
pub(crate) const TASKS: &str = "task/";
pub(crate) const GARBAGE: &str = "trash/";
pub(crate) const CHANGES: &str = "change/";
pub(crate) const UPLOADS: &str = "upload/";

pub(crate) const GC_PAUSES: &str = "gc-pause/";

/// Present while a process pauses garbage collection.
pub(crate) fn gc_pause(pause: Uuid) -> String {
    format!("{GC_PAUSES}{pause}")
}

/// The id of the knowledge base.
pub(crate) const KNOWLEDGE_BASE: &str = "knowledge-base";

/// The version of the store.
pub(crate) const VERSION: &str = "version";

/// Present while documents may lack fingerprints.
pub(crate) const WITHOUT_FINGERPRINTS: &str = "unprinted";

pub(crate) const ACTIVE: &str = "active/";
pub(crate) const FAILED_ATTEMPTS: &str = "held/";
pub(crate) const UNEMBEDDED: &str = "unembedded/";

/// The model of the last re-embedding that was cancelled.
pub(crate) const DECLINED: &str = "declined-model";

/// Counts the sweeps of what was stored and not accepted.
pub(crate) const SWEEPS: &str = "sweeps";

/// How far the change of the embedding model is.
pub(crate) const COLLECTIONS: &str = "collections";

pub(crate) const ARRIVALS: &str = "arrival/";

/// Present while a document that was published may be missing in the collections that are being filled.
pub(crate) fn arrival(id: DocId) -> String {
    format!("{ARRIVALS}{id}")
}

/// Counts the changes that affect the searches of a space.
pub(crate) fn space_generation(space: &SpaceName) -> String {
    format!("{CORPUS_GENERATION}{space}")
}

/// The cosine scale of a model.
pub(crate) fn cosine_scale(model: &str) -> String {
    format!("cosine-scale/{}", hex(&Sha256::digest(model)))
}

/// The cosine scale that earlier versions measured on stored chunks.
pub(crate) fn measured_spread(model: &str) -> String {
    format!("spread/{}", hex(&Sha256::digest(model)))
}

/// Present while a live document lacks dense vectors.
pub(crate) fn unembedded(id: DocId) -> String {
    format!("{UNEMBEDDED}{id}")
}

pub(crate) fn document(id: DocId) -> String {
    format!("{DOCUMENTS}{id}")
}

pub(crate) const TASK_CHANGES: &str = "task-change/";

/// Present if the task changed lately.
pub(crate) fn task_change(id: TaskId) -> String {
    format!("{TASK_CHANGES}{id}")
}

pub(crate) fn task(id: TaskId) -> String {
    format!("{TASKS}{id}")
}

/// Present for a while after the record of a task without a result was removed.
pub(crate) fn forgotten_task(id: TaskId) -> String {
    format!("forgotten-task/{id}")
}

/// The unfinished task of a document, or of a slot.
pub(crate) fn active(subject: TaskSubject) -> String {
    format!("{ACTIVE}{}", subject.record_id())
}

/// A failed attempt.
pub(crate) fn failed_attempt(id: DocId, revision: u64) -> String {
    format!("{}{revision}", failed_attempts_of(id))
}

pub(crate) fn failed_attempts_of(id: DocId) -> String {
    format!("{FAILED_ATTEMPTS}{id}/")
}

/// The additional input of a task.
pub(crate) fn task_input(id: TaskId) -> String {
    format!("gold/{id}")
}

/// What a task has deleted so far.
pub(crate) fn partial_result(id: TaskId) -> String {
    format!("partial-result/{id}")
}

/// The changes to a document since the replacement with `revision` was accepted.
pub(crate) fn concurrent_edit(id: DocId, revision: u64) -> String {
    format!("amend/{id}/{revision}")
}

pub(crate) const SPACE_DOCUMENTS: &str = "in-space/";

/// Present if a live document is in the space.
pub(crate) fn space_document(space: &SpaceName, id: DocId) -> String {
    format!("{SPACE_DOCUMENTS}{space}/{id}")
}

pub(crate) const TASK_ENTRIES: &str = "task-in/";

/// The prefix of the entries of the tasks that were accepted in a space.
pub(crate) fn tasks_in_space(space: &SpaceName) -> String {
    format!("{TASK_ENTRIES}space/{space}/")
}

/// The prefix of the entries of the tasks that an account, or an API key, with this id asked for.
///
/// Of the digest there are 64 bits. If two accounts had the same ones, each listing would read the tasks of both and leave out those
/// that its caller may not see, as it does anyway.
pub(crate) fn tasks_asked_by(id: &str) -> String {
    format!("{TASK_ENTRIES}account/{:.16}/", hex(&Sha256::digest(id)))
}

/// The same prefix in stores of version 4, with the whole digest.
pub(crate) fn tasks_asked_by_in_version_4(id: &str) -> String {
    format!("{TASK_ENTRIES}account/{}/", hex(&Sha256::digest(id)))
}

/// The prefix of the entries of those tasks of a list that are in a group. `list` is the prefix of the whole list.
pub(crate) fn tasks_in_group(group: &str, list: &str) -> String {
    let list = list.strip_prefix(TASK_ENTRIES).unwrap_or(list);
    format!("{TASK_ENTRIES}{group}/{list}")
}

/// The prefix of the entries of all tasks that are in a group.
pub(crate) fn all_tasks_in_group(group: &str) -> String {
    format!("{TASK_ENTRIES}{group}/all/")
}

pub(crate) fn space_documents(space: &SpaceName) -> String {
    format!("{SPACE_DOCUMENTS}{space}/")
}

/// Present if a document of the space has this text, by the digest of its normal form.
pub(crate) fn content(space: &SpaceName, sha256: &str, id: DocId) -> String {
    format!("{}{id}", contents_of(space, sha256))
}

pub(crate) fn contents_of(space: &SpaceName, sha256: &str) -> String {
    format!("content/{}/", digest_in(space, sha256))
}

/// Written by every publish of this text in the space, so that of two concurrent ones only one succeeds.
pub(crate) fn content_guard(space: &SpaceName, sha256: &str) -> String {
    format!("content-guard/{}", digest_in(space, sha256))
}

/// A digest that differs by space. In the default space it is the one that versions without spaces stored.
pub(crate) fn digest_in(space: &SpaceName, sha256: &str) -> String {
    match space.is_default() {
        true => sha256.to_owned(),
        false => hex(&Sha256::digest(format!("{space}/{sha256}"))),
    }
}

pub(crate) const SIMHASHES: &str = "simhash/";

pub(crate) fn simhash(id: DocId) -> String {
    format!("{SIMHASHES}{id}")
}

pub(crate) const SIMHASH_CHANGES: &str = "simhash-change/";

/// Present if the fingerprint of a document changed lately.
pub(crate) fn simhash_change(id: DocId) -> String {
    format!("{SIMHASH_CHANGES}{id}")
}

/// Written by every step that adds a fingerprint to a space, so that who looked for near texts before it notices.
pub(crate) fn simhash_guard(space: &SpaceName) -> String {
    format!("simhash-guard/{space}")
}

/// The texts of a space that are becoming documents.
pub(crate) fn text_claims(space: &SpaceName) -> String {
    format!("text-claims/{space}")
}

/// The document that an account's upserts of a source in the space replace.
pub(crate) fn upsert(space: &SpaceName, source: &str, owner: &str) -> String {
    let digest = |text: &str| hex(&Sha256::digest(text));
    format!("upsert/{}/{}", digest_in(space, &digest(source)), digest(owner))
}

/// The tasks that were accepted under an idempotency key.
pub(crate) fn idempotency(account: &str, endpoint: &str, key: &str) -> String {
    let digest = hex(&Sha256::digest(format!("{account}\0{endpoint}\0{key}")));
    format!("idempotency/{digest}")
}

/// The note of an original that is being stored for a document that is not accepted yet.
pub(crate) fn upload(id: DocId, path: &str) -> String {
    let digest = hex(&Sha256::digest(path));
    format!("{UPLOADS}{id}/{digest}")
}

/// A revision to collect.
pub(crate) fn garbage(id: DocId, revision: u64) -> String {
    format!("{GARBAGE}{id}/{revision}")
}
