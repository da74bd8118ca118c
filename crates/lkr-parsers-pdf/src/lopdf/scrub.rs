//! A file without the text that its pages do not show, for engines that do not tell it from other text.
//!
//! Only the bytes of the operations that show such text are replaced. A page gets its contents, and copies of the forms
//! that it draws, for itself: what a form hides on one page it may show on another.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    ops::Range,
    time::Instant,
};

use lkr_parsers::Result;
use lopdf::{Dictionary, Document, IncrementalDocument, Object, ObjectId, Stream};

use super::{
    Open,
    content::{Walked, Walker},
    shown::{At, Sight},
    streams,
};
use crate::error;

/// What is written beside the file is no longer than this.
const MAX_WRITTEN: usize = 256 * 1024 * 1024;

/// What an entry of a dictionary that is copied counts, in bytes.
const ENTRY: usize = 64;

/// On which pages text is left out that is as pale as what it stands on, as far as that can be told without a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pale {
    Nowhere,
    OnTurned,
    Everywhere,
}

/// A file without hidden text.
#[derive(Default)]
pub(crate) struct Scrubbed {
    /// The file; nothing where it stays as it is.
    pub(crate) bytes: Option<Vec<u8>>,
    /// How many texts were left out.
    pub(crate) hidden: usize,
    /// The pages that were not looked through, counted from 0.
    pub(crate) unchecked: HashSet<usize>,
}

impl Open {
    /// The file, which was opened here, without what its pages hide. Pages for which there is no time stay as they are,
    /// as do those whose content cannot be read as a whole.
    pub(crate) fn scrubbed(&self, file: &[u8], pale: Pale, until: Option<Instant>) -> Result<Scrubbed> {
        let mut scrub = Scrub::new(self);
        let mut walker = Walker::new(&self.document, &self.layers, until);
        let mut scrubbed = Scrubbed::default();
        for (index, page) in self.pages.iter().enumerate() {
            let pale = pale == Pale::Everywhere || (pale == Pale::OnTurned && self.is_turned(*page));
            let cut = || scrub.page(*page, &mut walker, pale);
            match error::guarded(cut) {
                Ok(Some(hidden)) => scrubbed.hidden += hidden,
                Ok(None) | Err(_) => drop(scrubbed.unchecked.insert(index)),
            }
        }
        if scrubbed.hidden > 0 {
            scrubbed.bytes = Some(self.written(file, scrub.objects).map_err(error::unwritten)?);
        }
        Ok(scrubbed)
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

/// What stands in the place of bytes, by where they begin.
type Edits = BTreeMap<usize, (usize, String)>;

/// What is changed in forms, and all forms that are copied for that.
type Changes = (BTreeMap<ObjectId, Edits>, Vec<ObjectId>);

/// The objects that change, while they are made.
struct Scrub<'a> {
    open: &'a Open,
    objects: Vec<(ObjectId, Object)>,
    last: u32,
    /// How many bytes more may be written.
    room: usize,
    /// The copies of forms that were made, which pages with the same changes share.
    copies: HashMap<Changes, HashMap<ObjectId, ObjectId>>,
}

impl<'a> Scrub<'a> {
    fn new(open: &'a Open) -> Self {
        let last = open.document.max_id;
        Self { open, objects: Vec::new(), last, room: MAX_WRITTEN, copies: HashMap::new() }
    }

    /// Leaves out what a page hides. Answers how much that was; nothing where it is not known or too much.
    fn page(&mut self, page: ObjectId, walker: &mut Walker<'a>, pale: bool) -> Result<Option<usize>> {
        if walker.is_over() {
            return Ok(None);
        }
        let content = self.open.whole_content(page)?;
        let walked = self.open.walk(walker, page, &content);
        if walked.is_partial {
            return Ok(None);
        }
        let mut edits = edits(&walked, pale);
        let hidden = edits.values().map(BTreeMap::len).sum();
        if hidden == 0 {
            return Ok(Some(0));
        }
        let before = (self.objects.len(), self.last, self.room);
        let own = edits.remove(&None);
        let of_forms = edits.into_iter().filter_map(|(form, edits)| Some((form?, edits))).collect();
        let done = self.change(page, &content, own, (of_forms, &walked));
        if done.is_none() {
            self.objects.truncate(before.0);
            self.copies.clear();
            (self.last, self.room) = (before.1, before.2);
        }
        Ok(done.map(|()| hidden))
    }

    fn change(
        &mut self,
        page: ObjectId,
        content: &[u8],
        own: Option<Edits>,
        (of_forms, walked): (BTreeMap<ObjectId, Edits>, &Walked),
    ) -> Option<()> {
        let mut changed = self.open.document.get_dictionary(page).ok()?.clone();
        if !of_forms.is_empty() {
            let forms = drawing(&of_forms, walked);
            let copies = self.copied((of_forms, forms))?;
            let resources = self.open.inherited(page, b"Resources")?;
            changed.set("Resources", self.redirected(resources, &copies)?);
        }
        if let Some(edits) = own {
            let content = edited(content, &edits);
            self.spend(content.len())?;
            let id = self.next_id()?;
            changed.set("Contents", Object::Reference(id));
            self.objects.push((id, Stream::new(Dictionary::new(), content).into()));
        }
        self.objects.push((page, changed.into()));
        Some(())
    }

    /// Copies forms; answers the numbers of the copies.
    fn copied(&mut self, changes: Changes) -> Option<HashMap<ObjectId, ObjectId>> {
        if let Some(copies) = self.copies.get(&changes) {
            return Some(copies.clone());
        }
        let mut copies = HashMap::new();
        for form in &changes.1 {
            copies.insert(*form, self.next_id()?);
        }
        for (form, copy) in &copies {
            let stream = self.open.document.get_object(*form).ok()?.as_stream().ok()?;
            let mut copied = match changes.0.get(form) {
                Some(edits) => {
                    let mut entries = stream.dict.clone();
                    for key in [&b"Filter"[..], b"DecodeParms", b"Length"] {
                        entries.remove(key);
                    }
                    Stream::new(entries, edited(&streams::unpacked(stream).ok()?, edits))
                }
                None => stream.clone(),
            };
            self.spend(copied.content.len())?;
            let own = stream.dict.get_deref(b"Resources", &self.open.document).and_then(Object::as_dict);
            if let Ok(own) = own {
                copied.dict.set("Resources", self.redirected(own, &copies)?);
            }
            self.objects.push((*copy, copied.into()));
        }
        self.copies.insert(changes, copies.clone());
        Some(copies)
    }

    /// Resources with copies in the places of the forms that they were made of.
    fn redirected(
        &mut self,
        resources: &Dictionary,
        copies: &HashMap<ObjectId, ObjectId>,
    ) -> Option<Dictionary> {
        let document = &self.open.document;
        let mut resources = resources.clone();
        if let Ok(objects) = resources.get_deref(b"XObject", document).and_then(Object::as_dict) {
            let mut objects = objects.clone();
            self.spend((objects.len() + resources.len()) * ENTRY)?;
            for (_, object) in objects.iter_mut() {
                let id = document.dereference(object).ok().and_then(|(id, _)| id);
                if let Some(copy) = id.and_then(|id| copies.get(&id)) {
                    *object = Object::Reference(*copy);
                }
            }
            resources.set("XObject", objects);
        }
        Some(resources)
    }

    fn next_id(&mut self) -> Option<ObjectId> {
        self.last = self.last.checked_add(1)?;
        Some((self.last, 0))
    }

    fn spend(&mut self, bytes: usize) -> Option<()> {
        self.room = self.room.checked_sub(bytes)?;
        Some(())
    }
}

/// What has to change in the content of a page and of its forms. An operation that shows something somewhere stays.
fn edits(walked: &Walked, pale: bool) -> BTreeMap<Option<ObjectId>, Edits> {
    let mut edits = BTreeMap::<_, Edits>::new();
    let mut add = |at: &At, text: String| edits.entry(at.form).or_default().insert(at.start, (at.end, text));
    let mut unseen = vec![false; walked.texts.len()];
    for (at, texts) in &walked.unseen {
        add(at, String::new());
        unseen.get_mut(texts.clone()).into_iter().flatten().for_each(|unseen| *unseen = true);
    }
    let is_hidden = |sight| sight == Sight::Hidden || (pale && sight == Sight::Pale);
    let texts = || walked.texts.iter().zip(&unseen).filter(|(_, unseen)| !**unseen).map(|(text, _)| text);
    let shown: HashSet<At> = texts().filter(|text| !is_hidden(text.sight)).map(|text| text.at).collect();
    for text in texts().filter(|text| is_hidden(text.sight) && !shown.contains(&text.at)) {
        add(&text.at, walked.instead.get(&text.at).cloned().unwrap_or_default());
    }
    edits
}

/// The forms that are changed, and all that draw them, however far inside.
fn drawing(changed: &BTreeMap<ObjectId, Edits>, walked: &Walked) -> Vec<ObjectId> {
    let mut drawn_by = HashMap::<ObjectId, Vec<ObjectId>>::new();
    for (outer, inner) in &walked.draws {
        drawn_by.entry(*inner).or_default().extend(outer);
    }
    let mut forms: HashSet<ObjectId> = changed.keys().copied().collect();
    let mut open: Vec<ObjectId> = changed.keys().copied().collect();
    while let Some(form) = open.pop() {
        let outer = drawn_by.get(&form).into_iter().flatten();
        open.extend(outer.filter(|outer| forms.insert(**outer)));
    }
    let mut forms: Vec<ObjectId> = forms.into_iter().collect();
    forms.sort_unstable();
    forms
}

/// The content with these edits.
fn edited(content: &[u8], edits: &Edits) -> Vec<u8> {
    let (mut edited, mut from) = (Vec::with_capacity(content.len()), 0);
    let part = |range: Range<usize>| content.get(range).unwrap_or_default();
    for (start, (end, text)) in edits {
        edited.extend_from_slice(part(from..*start));
        // What stands before and behind is parted from it.
        edited.extend_from_slice(format!(" {text} ").as_bytes());
        from = *end;
    }
    edited.extend_from_slice(part(from..content.len()));
    edited
}
