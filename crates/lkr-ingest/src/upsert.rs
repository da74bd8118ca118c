//! Finding the document that an upsert replaces, by its source.

use lkr_catalog::{Catalog, DocumentState, tag};
use lkr_domain::{Clock, Creator, DocId, Document, Layer, SpaceName};
use lkr_state::Write;
use lkr_vectors::{Condition, Filter, Include, SPACE_TAG};

use crate::{Ports, Result, Upsert};

/// The document that a submission creates or replaces.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) doc_id: DocId,
    /// What is stored of it, unless it is new.
    pub(crate) replaced: Option<DocumentState>,
    /// Let a concurrent upsert of the same source find this document.
    pub(crate) remember: Vec<Write>,
}

impl Target {
    pub(crate) fn new(clock: &dyn Clock) -> Self {
        Self { doc_id: DocId::new_by(clock), replaced: None, remember: Vec::new() }
    }

    /// The live document, if there is one.
    pub(crate) fn live(&self) -> Option<&Document> {
        let document = self.replaced.as_ref()?.document.as_ref();
        document.map(|document| &document.value)
    }
}

/// The number of points that are read at a time.
const PAGE: usize = 100;

/// Where an upsert looks for a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) space: &'a SpaceName,
    pub(crate) source: &'a str,
}

/// The newest document of a source in a space that `sender` may replace, live or being ingested; else a new one.
pub(crate) async fn find_target(
    ports: &Ports,
    place: Place<'_>,
    sender: &Creator,
    upsert: Upsert,
) -> Result<Target> {
    let catalog = &ports.catalog;
    // Upserts that may replace any document share one record per source, which the others write, too, if it names no document of
    // the source. The records are read before the live documents: a document that is published in between is found among those.
    let own = Some(sender.id.as_str()).filter(|own| upsert == Upsert::Own && !own.is_empty());
    let mut remembered = Vec::new();
    for owner in [""].into_iter().chain(own) {
        let target = catalog.upsert_target(place.space, place.source, owner).await?;
        let (doc_id, version) = target.unzip();
        let state = match doc_id {
            Some(doc_id) => Some(catalog.document_state(doc_id).await?).filter(|state| place.has(state)),
            None => None,
        };
        remembered.push((owner, version, state));
    }
    let mut newest: Option<DocumentState> = None;
    let mut consider = |state: DocumentState| {
        let is_newer = newest.as_ref().is_none_or(|newest| newest.doc_id < state.doc_id);
        if is_newer && place.has(&state) && is_allowed(&state, sender, upsert) {
            newest = Some(state);
        }
    };
    remembered.iter().filter_map(|(_, _, state)| state.clone()).for_each(&mut consider);
    for doc_id in live_documents(ports, place).await? {
        consider(catalog.document_state(doc_id).await?);
    }
    if let Some(state) = newest {
        return Ok(Target { doc_id: state.doc_id, replaced: Some(state), remember: Vec::new() });
    }
    let doc_id = DocId::new_by(catalog.clock());
    let is_mine = |owner: &str| owner.is_empty() == own.is_none();
    let remember = remembered.into_iter().filter(|(owner, _, state)| is_mine(owner) || state.is_none());
    let remember = remember.map(|(owner, version, _)| {
        Catalog::put_upsert_target(place.space, place.source, owner, doc_id, version)
    });
    Ok(Target { doc_id, replaced: None, remember: remember.collect() })
}

/// Documents of the space whose points have this source as a tag. Their records decide whether it is still their source.
async fn live_documents(ports: &Ports, place: Place<'_>) -> Result<Vec<DocId>> {
    let condition = |(key, value)| Condition::Tag { key, any: vec![value] };
    let filter = Filter::only(condition(tag("source", place.source)))
        .and(condition(tag(SPACE_TAG, place.space.as_str())));
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page =
            ports.vectors.scroll(&Layer::L1.into(), &filter, after.as_ref(), PAGE, Include::Payload).await?;
        found.extend(page.points.iter().map(|point| point.origin.doc_id));
        after = page.next;
        if after.is_none() {
            found.sort_unstable();
            found.dedup();
            return Ok(found);
        }
    }
}

impl Place<'_> {
    /// Whether a document, live or being ingested, is in the space and has the source.
    fn has(self, state: &DocumentState) -> bool {
        match (&state.document, &state.unfinished) {
            (Some(document), _) => {
                document.value.space == *self.space && document.value.source == self.source
            }
            (None, Some(unfinished)) => {
                let task = &unfinished.task;
                task.space.as_ref() == Some(self.space) && task.input.source == self.source
            }
            (None, None) => false,
        }
    }
}

fn is_allowed(state: &DocumentState, sender: &Creator, upsert: Upsert) -> bool {
    let owner = state.owner();
    upsert == Upsert::Any
        || owner.is_some_and(|owner| owner.is(&sender.id) || (owner.id.is_empty() && sender.id.is_empty()))
}
