//! Writes a file without its hidden text, for engines that cannot detect it.
//!
//! Only the bytes of operations that show hidden text are replaced. A page gets its own contents and its own copies of the
//! forms that it draws, because a form may hide text on one page and show it on another.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    ops::Range,
};

use lkr_parsers::{Deadline, Result};
use lopdf::{Dictionary, Document, IncrementalDocument, Object, ObjectId, Stream};

use super::{
    LopdfDocument,
    content::{Interpreter, PageContent},
    streams,
    text::{OperationPosition, TextVisibility},
};
use crate::error;

/// Most bytes that are added to the file.
const MAX_WRITTEN: usize = 256 * 1024 * 1024;

/// The operation that opens marked content without a meaning.
const NEUTRAL_MARK: &str = "/Span BMC";

/// The size that an entry of a copied dictionary counts for, in bytes.
const ENTRY: usize = 64;

/// The pages on which pale text on a pale background is removed, as far as it is known without rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaleText {
    Nowhere,
    OnRotated,
    Everywhere,
}

/// A file without hidden text.
#[derive(Default)]
pub(crate) struct Scrubbed {
    /// The changed file; `None` if nothing changed.
    pub(crate) bytes: Option<Vec<u8>>,
    /// How many texts were removed.
    pub(crate) hidden: usize,
    /// The pages that were not checked, counted from 0.
    pub(crate) unchecked_pages: HashSet<usize>,
}

impl LopdfDocument {
    /// Removes the hidden text of the opened file, and repairs the text of fonts. Pages after the deadline, and those whose content cannot be read completely,
    /// stay unchanged.
    pub(crate) fn scrubbed(&self, file: &[u8], pale: PaleText, until: Option<Deadline>) -> Result<Scrubbed> {
        let mut scrub = Scrubber::new(self);
        let mut interpreter = Interpreter::new(&self.document, &self.layers, until);
        let mut scrubbed = Scrubbed::default();
        for (index, page) in self.pages.iter().enumerate() {
            let with_pale =
                pale == PaleText::Everywhere || (pale == PaleText::OnRotated && self.is_rotated(*page));
            let scrub_page = || scrub.page(*page, &mut interpreter, with_pale);
            match error::guarded(scrub_page) {
                Ok(Some(hidden)) => scrubbed.hidden += hidden,
                Ok(None) | Err(_) => drop(scrubbed.unchecked_pages.insert(index)),
            }
        }
        let repaired = error::guarded(|| Ok(self.repaired_fonts(&mut scrub.last)));
        scrub.objects.extend(repaired.unwrap_or_default());
        if !scrub.objects.is_empty() {
            scrubbed.bytes = Some(self.written(file, scrub.objects).map_err(error::write_failed)?);
        }
        Ok(scrubbed)
    }

    /// Writes the file with these objects appended, so that all else stays unchanged. If its own table of objects
    /// is invalid, the whole file is rewritten.
    fn written(&self, bytes: &[u8], objects: Vec<(ObjectId, Object)>) -> io::Result<Vec<u8>> {
        let mut written = Vec::new();
        if self.document.xref_start == 0 || self.document.xref_recovery.is_some() {
            let mut document = self.document.clone();
            document.objects.extend(objects);
            document.max_id = document.objects.keys().map(|(id, _)| *id).max().unwrap_or_default();
            document.save_to(&mut written)?;
            return Ok(written);
        }
        let mut saved = Document::new();
        saved.trailer = self.document.trailer.clone();
        saved.reference_table.cross_reference_type = self.document.reference_table.cross_reference_type;
        saved.max_id = self.document.max_id;
        saved.xref_start = self.document.xref_start;
        saved.encryption_state = self.document.encryption_state.clone();
        let mut document = IncrementalDocument::create_from(bytes.to_vec(), saved);
        for (id, object) in objects {
            document.new_document.max_id = document.new_document.max_id.max(id.0);
            document.new_document.objects.insert(id, object);
        }
        document.save_to(&mut written)?;
        Ok(written)
    }
}

/// Replacements of byte ranges, by their start.
type Edits = BTreeMap<usize, (usize, String)>;

/// The edits of forms, and all forms that are copied for them.
type Changes = (BTreeMap<ObjectId, Edits>, Vec<ObjectId>);

/// Collects the changed objects.
struct Scrubber<'a> {
    source: &'a LopdfDocument,
    objects: Vec<(ObjectId, Object)>,
    last: u32,
    /// How many more bytes may be written.
    bytes_left: usize,
    /// The copies of forms. Pages with the same edits share them.
    copies: HashMap<Changes, HashMap<ObjectId, ObjectId>>,
}

impl<'a> Scrubber<'a> {
    fn new(source: &'a LopdfDocument) -> Self {
        let last = source.document.max_id;
        Self { source, objects: Vec::new(), last, bytes_left: MAX_WRITTEN, copies: HashMap::new() }
    }

    /// Removes the hidden text of a page, and the marks of placed content, which pdf_oxide takes for pictures. Returns the
    /// number of hidden texts; `None` if unknown or too many.
    fn page(
        &mut self,
        page: ObjectId,
        interpreter: &mut Interpreter<'a>,
        is_pale: bool,
    ) -> Result<Option<usize>> {
        if interpreter.is_past_deadline() {
            return Ok(None);
        }
        let content = self.source.complete_content(page)?;
        let page_content = self.source.interpret(interpreter, page, &content);
        if page_content.is_partial {
            return Ok(None);
        }
        let mut edits = edits(&page_content, is_pale);
        if edits.is_empty() {
            return Ok(Some(0));
        }
        let count: usize = edits.values().map(BTreeMap::len).sum();
        let hidden = count.saturating_sub(page_content.placed.len());
        let saved = (self.objects.len(), self.last, self.bytes_left);
        let own_edits = edits.remove(&None);
        let of_forms = edits.into_iter().filter_map(|(form, edits)| Some((form?, edits))).collect();
        let done = self.change(page, &content, own_edits, (of_forms, &page_content));
        if done.is_none() {
            self.objects.truncate(saved.0);
            self.copies.clear();
            (self.last, self.bytes_left) = (saved.1, saved.2);
        }
        Ok(done.map(|()| hidden))
    }

    fn change(
        &mut self,
        page: ObjectId,
        content: &[u8],
        own_edits: Option<Edits>,
        (of_forms, page_content): (BTreeMap<ObjectId, Edits>, &PageContent),
    ) -> Option<()> {
        let mut changed = self.source.document.get_dictionary(page).ok()?.clone();
        if !of_forms.is_empty() {
            let forms = forms_to_copy(&of_forms, page_content);
            let copies = self.copy_forms((of_forms, forms))?;
            let resources = self.source.inherited(page, b"Resources")?;
            changed.set("Resources", self.redirect_forms(resources, &copies)?);
        }
        if let Some(edits) = own_edits {
            let content = apply_edits(content, &edits);
            self.reserve(content.len())?;
            let id = self.next_id()?;
            changed.set("Contents", Object::Reference(id));
            self.objects.push((id, Stream::new(Dictionary::new(), content).into()));
        }
        self.objects.push((page, changed.into()));
        Some(())
    }

    /// Copies forms; returns the numbers of the copies.
    fn copy_forms(&mut self, changes: Changes) -> Option<HashMap<ObjectId, ObjectId>> {
        if let Some(copies) = self.copies.get(&changes) {
            return Some(copies.clone());
        }
        let mut copies = HashMap::new();
        for form in &changes.1 {
            copies.insert(*form, self.next_id()?);
        }
        for (form, copy) in &copies {
            let stream = self.source.document.get_object(*form).ok()?.as_stream().ok()?;
            let mut copied = match changes.0.get(form) {
                Some(edits) => {
                    let mut entries = stream.dict.clone();
                    for key in [&b"Filter"[..], b"DecodeParms", b"Length"] {
                        entries.remove(key);
                    }
                    Stream::new(entries, apply_edits(&streams::unpacked(stream).ok()?, edits))
                }
                None => stream.clone(),
            };
            self.reserve(copied.content.len())?;
            let resources =
                stream.dict.get_deref(b"Resources", &self.source.document).and_then(Object::as_dict);
            if let Ok(resources) = resources {
                copied.dict.set("Resources", self.redirect_forms(resources, &copies)?);
            }
            self.objects.push((*copy, copied.into()));
        }
        self.copies.insert(changes, copies.clone());
        Some(copies)
    }

    /// The resources with forms replaced by their copies.
    fn redirect_forms(
        &mut self,
        resources: &Dictionary,
        copies: &HashMap<ObjectId, ObjectId>,
    ) -> Option<Dictionary> {
        let document = &self.source.document;
        let mut resources = resources.clone();
        if let Ok(objects) = resources.get_deref(b"XObject", document).and_then(Object::as_dict) {
            let mut objects = objects.clone();
            self.reserve((objects.len() + resources.len()) * ENTRY)?;
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

    fn reserve(&mut self, bytes: usize) -> Option<()> {
        self.bytes_left = self.bytes_left.checked_sub(bytes)?;
        Some(())
    }
}

/// The edits of the content of a page and of its forms. An operation that shows visible text anywhere is kept.
fn edits(page_content: &PageContent, is_pale: bool) -> BTreeMap<Option<ObjectId>, Edits> {
    let mut edits = BTreeMap::<_, Edits>::new();
    let mut add = |at: &OperationPosition, text: String| {
        edits.entry(at.form).or_default().insert(at.start, (at.end, text))
    };
    for at in &page_content.placed {
        add(at, NEUTRAL_MARK.to_owned());
    }
    let mut invisible = vec![false; page_content.texts.len()];
    for (at, texts) in &page_content.invisible {
        add(at, String::new());
        invisible.get_mut(texts.clone()).into_iter().flatten().for_each(|invisible| *invisible = true);
    }
    let is_hidden = |visibility| {
        visibility == TextVisibility::Hidden || (is_pale && visibility == TextVisibility::PaleText)
    };
    let texts = || {
        page_content.texts.iter().zip(&invisible).filter(|(_, invisible)| !**invisible).map(|(text, _)| text)
    };
    let shown: HashSet<OperationPosition> =
        texts().filter(|text| !is_hidden(text.visibility)).map(|text| text.at).collect();
    for text in texts().filter(|text| is_hidden(text.visibility) && !shown.contains(&text.at)) {
        add(&text.at, page_content.replacement.get(&text.at).cloned().unwrap_or_default());
    }
    edits
}

/// The changed forms, and all forms that draw them directly or indirectly.
fn forms_to_copy(changed: &BTreeMap<ObjectId, Edits>, page_content: &PageContent) -> Vec<ObjectId> {
    let mut drawn_by = HashMap::<ObjectId, Vec<ObjectId>>::new();
    for (outer, inner) in &page_content.draws {
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
fn apply_edits(content: &[u8], edits: &Edits) -> Vec<u8> {
    let (mut apply_edits, mut from) = (Vec::with_capacity(content.len()), 0);
    let part = |range: Range<usize>| content.get(range).unwrap_or_default();
    for (start, (end, text)) in edits {
        apply_edits.extend_from_slice(part(from..*start));
        // Spaces separate the replacement from the bytes around it.
        apply_edits.extend_from_slice(format!(" {text} ").as_bytes());
        from = *end;
    }
    apply_edits.extend_from_slice(part(from..content.len()));
    apply_edits
}
