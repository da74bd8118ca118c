//! Interprets the content of a page: its text and whether it is visible.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    rc::Rc,
};

use lkr_parsers::Deadline;
use lopdf::{Dictionary, Document, Object, ObjectId};

use super::{
    fonts::Font,
    forms::{Form, Textless},
    layers::Layers,
    marked_content::MarkedContent,
    painted_areas::PaintedAreas,
    paths::Paths,
    state::State,
    text::{OperationPosition, TextItem, TextVisibility},
    tokens::{Operation, Tokens},
};
use crate::page::Rect;

/// The tag of content that was placed from another file.
const PLACED: &[u8] = b"PlacedPDF";

/// A page of which at most one letter in this many is drawn is a scanned one.
const TRACE: usize = 20;

/// Most operations of a page.
const MAX_OPERATIONS: usize = 5_000_000;

/// Most bytes of content of a page. A form counts each time it is interpreted.
const MAX_BYTES: usize = 512 * 1024 * 1024;

/// Most saved graphics states; more end the interpretation.
const MAX_SAVED_STATES: usize = 10_000;

/// Most fonts in the cache.
const MAX_FONTS: usize = 512;

/// The deadline is checked after this many operations.
const OPERATIONS_PER_DEADLINE_CHECK: usize = 1024;

/// The interpreted content of a page.
#[derive(Default)]
pub(super) struct PageContent {
    pub(super) texts: Vec<TextItem>,
    pub(super) painted_areas: PaintedAreas,
    /// For operations with hidden text, a replacement with the same effects except for showing text.
    pub(super) replacement: HashMap<OperationPosition, String>,
    /// The operations of the page's own content that draw invisible forms, with the texts of each.
    pub(super) invisible: Vec<(OperationPosition, Range<usize>)>,
    /// Which forms draw which; `None` is the page's own content.
    pub(super) draws: HashSet<(Option<ObjectId>, ObjectId)>,
    /// The operations that mark content as placed from another file.
    pub(super) placed: HashSet<OperationPosition>,
    /// How many more texts on vertical lines are read upward than downward.
    pub(super) upward: i32,
    /// Whether some content was not interpreted.
    pub(super) is_partial: bool,
}

impl PageContent {
    /// Undrawn text over a painted area is the OCR text of a scanner. It is hidden if more text is drawn on the page. So is
    /// transparent text, but it is hidden if more than a trace of text is drawn: only scanners' pages have nothing else.
    /// Pale text is visible if it was drawn below a gradient that is blended with it.
    fn hide_undrawn(&mut self) {
        let count = |visibility| -> usize {
            self.texts.iter().filter(|text| text.visibility == visibility).map(|text| text.length).sum()
        };
        let (shown, undrawn) = (count(TextVisibility::Shown), count(TextVisibility::Undrawn));
        let transparent = count(TextVisibility::Transparent);
        for text in &mut self.texts {
            let shows_more = match text.visibility {
                TextVisibility::Undrawn => shown > undrawn,
                TextVisibility::Transparent => (shown + undrawn) * TRACE > transparent,
                TextVisibility::PaleText if self.painted_areas.shows_text_below() => {
                    text.visibility = TextVisibility::Shown;
                    continue;
                }
                _ => continue,
            };
            if shows_more || !self.painted_areas.is_under(text.run.place) {
                text.visibility = TextVisibility::Hidden;
            }
        }
    }
}

/// Interprets pages, and caches what they share.
pub(super) struct Interpreter<'a> {
    pub(super) document: &'a Document,
    layers: &'a Layers,
    /// The deadline.
    until: Option<Deadline>,
    fonts: HashMap<*const Dictionary, Rc<Font>>,
    pub(super) forms: HashMap<ObjectId, Rc<Form<'a>>>,
    /// How many bytes of forms are cached.
    pub(super) kept: usize,
}

impl<'a> Interpreter<'a> {
    pub(super) fn new(document: &'a Document, layers: &'a Layers, until: Option<Deadline>) -> Self {
        Self { document, layers, until, fonts: HashMap::new(), forms: HashMap::new(), kept: 0 }
    }

    /// Whether the deadline has passed.
    pub(super) fn is_past_deadline(&self) -> bool {
        self.until.is_some_and(Deadline::has_passed)
    }

    /// Interprets the content of a page. `unit` is the size of its user unit in points.
    pub(super) fn interpret(
        &mut self,
        resources: Option<&'a Dictionary>,
        content: &[u8],
        (frame, unit): (Option<Rect>, f32),
    ) -> PageContent {
        let mut reader = PageInterpreter {
            interpreter: self,
            frame,
            unit,
            paths: Paths::default(),
            content_of: PageContent::default(),
            operations: 0,
            bytes: 0,
            has_ended: false,
            shows: 0,
            left_out: 0,
            open: Vec::new(),
            textless: HashMap::new(),
        };
        reader.content(content, resources, &State::new());
        let mut content_of = reader.content_of;
        content_of.painted_areas = reader.paths.painted_areas;
        content_of.hide_undrawn();
        content_of
    }
}

/// The interpretation of one page.
pub(super) struct PageInterpreter<'w, 'a> {
    pub(super) interpreter: &'w mut Interpreter<'a>,
    pub(super) frame: Option<Rect>,
    /// The user unit of the page in points.
    pub(super) unit: f32,
    pub(super) paths: Paths,
    pub(super) content_of: PageContent,
    operations: usize,
    bytes: usize,
    has_ended: bool,
    /// How many operations showed text.
    pub(super) shows: usize,
    /// How many forms were skipped.
    pub(super) left_out: usize,
    /// The open forms.
    pub(super) open: Vec<ObjectId>,
    /// The painted areas of forms without text, by their numbers and resources.
    pub(super) textless: HashMap<(ObjectId, *const Dictionary), Textless>,
}

impl<'a> PageInterpreter<'_, 'a> {
    /// Ends the interpretation.
    pub(super) const fn give_up(&mut self) {
        (self.has_ended, self.content_of.is_partial) = (true, true);
    }

    /// Interprets the content of the innermost open form, or of the page.
    pub(super) fn content(&mut self, content: &[u8], resources: Option<&'a Dictionary>, state: &State) {
        self.bytes = self.bytes.saturating_add(content.len());
        if self.bytes > MAX_BYTES || self.interpreter.is_past_deadline() {
            return self.give_up();
        }
        let mut state = state.clone();
        let (form, mut kept, mut marked_content) =
            (self.open.last().copied(), Vec::new(), MarkedContent::new(state.is_off));
        let mut tokens = Tokens::new(content);
        while let Some(operation) = tokens.next() {
            self.count();
            if self.has_ended {
                return;
            }
            let at = OperationPosition::new(form, &operation);
            match operation.operator {
                "q" if kept.len() < MAX_SAVED_STATES => kept.push(state.clone()),
                "q" => self.give_up(),
                "Q" => state = kept.pop().unwrap_or(state),
                "Do" => drop(self.object(&operation, resources, &state, at)),
                "Tf" => drop(self.font(&operation, resources, &mut state)),
                "Tj" | "TJ" | "'" | "\"" => self.show(&operation, &mut state, at),
                "gs" => drop(self.graphics(&operation, resources, &mut state)),
                "BI" if state.is_shown() && !state.inks.fill_is_clear() => self.paths.square(state.page),
                "BMC" | "BDC" => {
                    let tag = operation.operands.first().and_then(|tag| tag.as_name().ok());
                    if tag == Some(PLACED) {
                        self.content_of.placed.insert(at);
                    }
                    let is_off = operation.operator == "BDC" && self.is_off(resources, &operation);
                    marked_content.open(is_off);
                }
                "EMC" => marked_content.close(),
                _ => self.other(&operation, resources, &mut state),
            }
            state.is_off = marked_content.are_off();
        }
    }

    fn count(&mut self) {
        self.operations += 1;
        let is_past_deadline = self.operations.is_multiple_of(OPERATIONS_PER_DEADLINE_CHECK)
            && self.interpreter.is_past_deadline();
        if self.operations > MAX_OPERATIONS || is_past_deadline {
            self.give_up();
        }
    }

    fn other(&mut self, operation: &Operation<'_>, resources: Option<&'a Dictionary>, state: &mut State) {
        let painted = self.paths.take(operation, state.page, &state.inks, state.line_width, state.is_shown());
        state.is_cut_away |= self.paths.hides_all();
        if !painted && !state.inks.color(self.interpreter.document, resources, operation) {
            state.place(operation);
        }
    }

    /// Whether marked content belongs to a layer that is off.
    fn is_off(&self, resources: Option<&'a Dictionary>, operation: &Operation<'_>) -> bool {
        let [.., Object::Name(tag), properties] = operation.operands else { return false };
        if tag != b"OC" || self.interpreter.layers.is_empty() {
            return false;
        }
        let find = || {
            let all = resources?.get_deref(b"Properties", self.interpreter.document).ok()?.as_dict().ok()?;
            all.get(properties.as_name().ok()?).ok()
        };
        find().is_some_and(|content| self.hides(content))
    }

    /// Whether content of this layer or membership is hidden.
    pub(super) fn hides(&self, layer: &Object) -> bool {
        self.interpreter.layers.hide(self.interpreter.document, layer)
    }

    fn font(
        &mut self,
        operation: &Operation<'_>,
        resources: Option<&'a Dictionary>,
        state: &mut State,
    ) -> Option<()> {
        let [.., name, size] = operation.operands else { return None };
        let size = size.as_float().ok()?;
        let font = self.resource(resources, b"Font", name.as_name().ok()?);
        self.set_font(font.map(|(_, font)| font), size, state);
        Some(())
    }

    fn set_font(&mut self, font: Option<&'a Object>, size: f32, state: &mut State) {
        state.size = size;
        state.font = font.and_then(|font| font.as_dict().ok()).map(|font| {
            let key = std::ptr::from_ref(font);
            if let Some(font) = self.interpreter.fonts.get(&key) {
                return Rc::clone(font);
            }
            if self.interpreter.fonts.len() >= MAX_FONTS {
                self.interpreter.fonts.clear();
            }
            let font = Rc::new(Font::new(self.interpreter.document, font));
            self.interpreter.fonts.insert(key, Rc::clone(&font));
            if self.interpreter.is_past_deadline() {
                self.give_up();
            }
            font
        });
    }

    fn graphics(
        &mut self,
        operation: &Operation<'_>,
        resources: Option<&'a Dictionary>,
        state: &mut State,
    ) -> Option<()> {
        let name = operation.operands.last()?.as_name().ok()?;
        let document = self.interpreter.document;
        let graphics = self.resource(resources, b"ExtGState", name)?.1.as_dict().ok()?;
        state.inks.cover(document, graphics);
        if let Ok([font, size]) =
            graphics.get_deref(b"Font", document).and_then(Object::as_array).map(Vec::as_slice)
        {
            let font = document.dereference(font).ok().map(|(_, font)| font);
            self.set_font(font, size.as_float().ok()?, state);
        }
        Some(())
    }

    /// The resource of this kind and name, with its number.
    pub(super) fn resource(
        &self,
        resources: Option<&'a Dictionary>,
        kind: &[u8],
        name: &[u8],
    ) -> Option<(Option<ObjectId>, &'a Object)> {
        let document = self.interpreter.document;
        let all = resources?.get_deref(kind, document).ok()?.as_dict().ok()?;
        document.dereference(all.get(name).ok()?).ok()
    }
}
