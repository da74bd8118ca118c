//! Which document a submission is about, by its source.

use lkr_catalog::{Catalog, DocumentState, tag};
use lkr_domain::{Creator, DocId, Layer};
use lkr_state::Write;
use lkr_vectors::{Condition, Filter, Include};

use crate::{Result, Upsert, ingestor::Inner};

/// What a submission aims at.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) doc_id: DocId,
    /// What there is of it, where it is not new.
    pub(crate) over: Option<DocumentState>,
    /// What is written so that the next one of the same source aims at the same.
    pub(crate) remember: Option<Write>,
}

impl Target {
    pub(crate) fn new() -> Self {
        Self { doc_id: DocId::new(), over: None, remember: None }
    }
}

/// How many points are read at a time.
const PAGE: usize = 100;

/// The newest document of a source that the sender may replace, live or on its way, else a new one.
pub(crate) async fn target(inner: &Inner, source: &str, sender: &Creator, may: Upsert) -> Result<Target> {
    let catalog = &inner.ports.catalog;
    // The record of one on its way is read before the live ones are: it is one of them when it is not that any more.
    // Those who may replace any document share their own.
    let owner = if may == Upsert::Any { "" } else { sender.id.as_str() };
    let remembered = catalog.upsert_target(source, owner).await?;
    let mut newest: Option<DocumentState> = None;
    let mut consider = |present: DocumentState| {
        let newer = newest.as_ref().is_none_or(|newest| newest.doc_id < present.doc_id);
        if newer && has_source(&present, source) && is_allowed(&present, sender, may) {
            newest = Some(present);
        }
    };
    if let Some((doc_id, _)) = remembered {
        consider(catalog.document_state(doc_id).await?);
    }
    for doc_id in live_ones(inner, source).await? {
        consider(catalog.document_state(doc_id).await?);
    }
    Ok(match newest {
        Some(over) => Target { doc_id: over.doc_id, over: Some(over), remember: None },
        None => {
            let doc_id = DocId::new();
            let read = remembered.map(|(_, version)| version);
            let remember = Some(Catalog::put_upsert_target(source, owner, doc_id, read));
            Target { doc_id, over: None, remember }
        }
    })
}

/// Documents whose points say that they have this source; their records tell whether it is so.
async fn live_ones(inner: &Inner, source: &str) -> Result<Vec<DocId>> {
    let (key, value) = tag("source", source);
    let filter = Filter::only(Condition::Tag { key, any: vec![value] });
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = inner
            .ports
            .vectors
            .scroll(&Layer::L1.into(), &filter, after.as_ref(), PAGE, Include::Payload)
            .await?;
        found.extend(page.points.iter().map(|point| point.origin.doc_id));
        after = page.next;
        if after.is_none() {
            found.sort_unstable();
            found.dedup();
            return Ok(found);
        }
    }
}

fn has_source(present: &DocumentState, source: &str) -> bool {
    match (&present.document, &present.unfinished) {
        (Some(document), _) => document.value.source == source,
        (None, Some(unfinished)) => unfinished.task.input.source == source,
        (None, None) => false,
    }
}

fn is_allowed(present: &DocumentState, sender: &Creator, may: Upsert) -> bool {
    let owner = present.owner();
    may == Upsert::Any
        || owner.is_some_and(|owner| owner.is(&sender.id) || (owner.id.is_empty() && sender.id.is_empty()))
}
