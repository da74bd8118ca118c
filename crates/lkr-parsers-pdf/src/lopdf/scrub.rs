//! A file without the text that its pages do not show, for engines that do not tell it from other text.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use lkr_parsers::{Result, Source};
use lopdf::{
    Dictionary, Document, IncrementalDocument, Object, ObjectId, Stream,
    content::{Content, Operation},
};

use super::{
    MAX_STREAM, Open,
    content::{At, Sight, Walked},
    suspicion::Suspicion,
};
use crate::error;

/// Which pages are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Those that refer to what hides text from an engine that tells text that is not drawn.
    Hiding,
    /// Those, and the ones that set text that is not drawn.
    HidingOrUndrawn,
    /// All.
    Everywhere,
}

/// A file without hidden text.
pub(crate) struct Scrubbed {
    pub(crate) bytes: Vec<u8>,
    /// How many texts were left out.
    pub(crate) hidden: usize,
}

impl Open {
    /// The source, which was opened here, without what its pages hide; nothing where that is the same.
    pub(crate) fn scrubbed(&self, source: &Source<'_>, look: Look) -> Result<Option<Scrubbed>> {
        let mut suspicion = Suspicion::new(self, look == Look::HidingOrUndrawn);
        let mut scrub = Scrub::default();
        for (index, page) in self.pages.iter().enumerate() {
            if source.is_over() {
                return Err(error::too_late());
            }
            if look == Look::Everywhere || suspicion.page(*page) {
                scrub.take(*page, &self.walked(index)?);
            }
        }
        let cuts = scrub.cuts();
        if cuts.is_empty() {
            return Ok(None);
        }
        let hidden = cuts.values().map(BTreeMap::len).sum();
        let bytes = self.written(source.bytes, self.without(&cuts)).map_err(error::unwritten)?;
        Ok(Some(Scrubbed { bytes, hidden }))
    }

    /// The objects that change where these operations are left out.
    fn without(&self, cuts: &Cuts) -> Vec<(ObjectId, Object)> {
        let (mut objects, mut next) = (Vec::new(), self.document.max_id);
        for ((page, form), cuts) in cuts {
            if let Some(form) = form {
                objects.extend(self.form_without(*form, cuts).map(|stream| (*form, stream.into())));
                continue;
            }
            let (Ok(content), Ok(page_)) = (self.content(*page), self.document.get_dictionary(*page)) else {
                continue;
            };
            let Some(content) = cut(&content, cuts) else { continue };
            next += 1;
            let mut changed = page_.clone();
            changed.set("Contents", Object::Reference((next, 0)));
            objects.push(((next, 0), Stream::new(Dictionary::new(), content).into()));
            objects.push((*page, changed.into()));
        }
        objects
    }

    fn form_without(&self, form: ObjectId, cuts: &BTreeMap<usize, Cut>) -> Option<Stream> {
        let form = self.document.get_object(form).ok()?.as_stream().ok()?;
        let content = cut(&form.get_plain_content_with_limit(MAX_STREAM).ok()?, cuts)?;
        let mut entries = form.dict.clone();
        for key in [&b"Filter"[..], b"DecodeParms", b"Length"] {
            entries.remove(key);
        }
        Some(Stream::new(entries, content))
    }

    /// The file with these objects: added behind its end, so that all else stays as it is. Where its own table of
    /// objects is broken, it is written anew.
    fn written(&self, bytes: &[u8], objects: Vec<(ObjectId, Object)>) -> io::Result<Vec<u8>> {
        let mut written = Vec::new();
        if self.document.xref_start == 0 || self.document.xref_recovery.is_some() {
            let mut document = self.document.clone();
            document.objects.extend(objects);
            document.max_id = document.objects.keys().map(|(id, _)| *id).max().unwrap_or_default();
            document.save_to(&mut written)?;
            return Ok(written);
        }
        let mut before = Document::new();
        before.trailer = self.document.trailer.clone();
        before.reference_table.cross_reference_type = self.document.reference_table.cross_reference_type;
        before.max_id = self.document.max_id;
        before.xref_start = self.document.xref_start;
        before.encryption_state = self.document.encryption_state.clone();
        let mut document = IncrementalDocument::create_from(bytes.to_vec(), before);
        for (id, object) in objects {
            document.new_document.max_id = document.new_document.max_id.max(id.0);
            document.new_document.objects.insert(id, object);
        }
        document.save_to(&mut written)?;
        Ok(written)
    }
}

/// What stands in the place of an operation.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cut {
    /// Nothing.
    All,
    /// What moves the place of text as it did, in thousandths of its size.
    Text(f32),
}

/// What is cut out of the contents of pages, and of forms (which belong to any page).
type Cuts = BTreeMap<(ObjectId, Option<ObjectId>), BTreeMap<usize, Cut>>;

/// What is known of the operations of a file.
#[derive(Default)]
struct Scrub {
    hidden: BTreeMap<(ObjectId, At), Cut>,
    /// Operations that show something here or elsewhere.
    shown: BTreeSet<(ObjectId, At)>,
}

/// The page that forms belong to.
const ANY: ObjectId = (0, 0);

impl Scrub {
    fn take(&mut self, page: ObjectId, walked: &Walked) {
        let mut unseen = vec![false; walked.texts.len()];
        for (at, texts) in &walked.unseen {
            self.hidden.insert((page, *at), Cut::All);
            unseen.get_mut(texts.clone()).into_iter().flatten().for_each(|unseen| *unseen = true);
        }
        for (text, _) in walked.texts.iter().zip(unseen).filter(|(_, unseen)| !unseen) {
            let key = (if text.at.form.is_some() { ANY } else { page }, text.at);
            if text.sight == Sight::Hidden {
                let moves = walked.moves.get(&text.at).copied().unwrap_or_default();
                self.hidden.insert(key, Cut::Text(moves));
            } else if text.run.text.trim() != "" {
                self.shown.insert(key);
            }
        }
    }

    fn cuts(self) -> Cuts {
        let mut cuts = Cuts::new();
        for ((page, at), cut) in self.hidden.into_iter().filter(|(key, _)| !self.shown.contains(key)) {
            cuts.entry((page, at.form)).or_default().insert(at.operation, cut);
        }
        cuts
    }
}

/// Content without the operations of these numbers.
fn cut(content: &[u8], cuts: &BTreeMap<usize, Cut>) -> Option<Vec<u8>> {
    let mut operations = Vec::new();
    for (number, operation) in Content::decode_iter(content).enumerate() {
        let Ok(operation) = operation else { break };
        match cuts.get(&number) {
            Some(Cut::All) => {}
            Some(Cut::Text(moves)) => operations.extend(moved(&operation, *moves)),
            // A picture in the content that could not be read is no operation that could be written.
            None if operation.operator == "BI" && operation.operands.is_empty() => {}
            None => operations.push(operation),
        }
    }
    Content { operations }.encode().ok()
}

/// What an operation that shows text does beside that.
fn moved(operation: &Operation, moves: f32) -> Vec<Operation> {
    let mut operations = match (operation.operator.as_str(), operation.operands.as_slice()) {
        ("\"", [blank, between, _]) => {
            let set = |operator, number: &Object| Operation::new(operator, vec![number.clone()]);
            vec![set("Tw", blank), set("Tc", between), Operation::new("T*", vec![])]
        }
        ("'" | "\"", _) => vec![Operation::new("T*", vec![])],
        _ => vec![],
    };
    operations.push(Operation::new("TJ", vec![Object::Array(vec![Object::Real(-moves)])]));
    operations
}
