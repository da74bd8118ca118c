//! A walk through the content of a page: what text it sets, and whether that is seen.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    rc::Rc,
    time::Instant,
};

use lopdf::{Dictionary, Document, Object, ObjectId};

use super::{
    fonts::Font,
    forms::{Form, Textless},
    ground::Ground,
    layers::Layers,
    marks::Marks,
    paths::Paths,
    shown::{At, Set, Sight},
    state::State,
    tokens::{Operation, Tokens},
};
use crate::page::Rect;

/// Operations of one page beyond this many are left out.
const MAX_OPERATIONS: usize = 5_000_000;

/// Bytes of content of one page beyond this many are left out. A form counts each time that it is walked through.
const MAX_BYTES: usize = 512 * 1024 * 1024;

/// States that are kept at once beyond this many end the walk.
const MAX_KEPT: usize = 10_000;

/// So many fonts are kept.
const MAX_FONTS: usize = 512;

/// Between so many operations the clock is looked at.
const UNTIMED: usize = 1024;

/// What a page is made of.
#[derive(Default)]
pub(super) struct Walked {
    pub(super) texts: Vec<Set>,
    pub(super) ground: Ground,
    /// What does as operations do beside showing text, for those whose text is not all shown.
    pub(super) instead: HashMap<At, String>,
    /// The operations of the page's own content that draw forms of which nothing is shown, with the texts of each.
    pub(super) unseen: Vec<(At, Range<usize>)>,
    /// Which forms draw which; the page's own content has no number.
    pub(super) draws: HashSet<(Option<ObjectId>, ObjectId)>,
    /// Whether there is content that was not walked through.
    pub(super) is_partial: bool,
}

impl Walked {
    /// Text that is not drawn is what a scanner has read where something else is painted there; beside more text that
    /// is drawn it is hidden.
    fn judge_undrawn(&mut self) {
        let count = |sight| -> usize {
            self.texts.iter().filter(|text| text.sight == sight).map(|text| text.length).sum()
        };
        let shows_more = count(Sight::Shown) > count(Sight::Undrawn);
        for text in self.texts.iter_mut().filter(|text| text.sight == Sight::Undrawn) {
            if shows_more || !self.ground.is_under(text.run.place) {
                text.sight = Sight::Hidden;
            }
        }
    }
}

/// Walks through pages, and keeps what they share.
pub(super) struct Walker<'a> {
    pub(super) document: &'a Document,
    layers: &'a Layers,
    /// When to stop.
    until: Option<Instant>,
    fonts: HashMap<*const Dictionary, Rc<Font<'a>>>,
    pub(super) forms: HashMap<ObjectId, Rc<Form<'a>>>,
    /// How many bytes of forms are kept.
    pub(super) kept: usize,
}

impl<'a> Walker<'a> {
    pub(super) fn new(document: &'a Document, layers: &'a Layers, until: Option<Instant>) -> Self {
        Self { document, layers, until, fonts: HashMap::new(), forms: HashMap::new(), kept: 0 }
    }

    /// Whether it is time to stop.
    pub(super) fn is_over(&self) -> bool {
        self.until.is_some_and(|until| until <= Instant::now())
    }

    /// Walks through the content of a page whose units are so many points.
    pub(super) fn walk(
        &mut self,
        resources: Option<&'a Dictionary>,
        content: &[u8],
        (frame, unit): (Option<Rect>, f32),
    ) -> Walked {
        let mut reader = Reader {
            walker: self,
            frame,
            unit,
            paths: Paths::default(),
            walked: Walked::default(),
            operations: 0,
            bytes: 0,
            has_ended: false,
            shows: 0,
            left_out: 0,
            open: Vec::new(),
            textless: HashMap::new(),
        };
        reader.content(content, resources, &State::new());
        let mut walked = reader.walked;
        walked.ground = reader.paths.ground;
        walked.judge_undrawn();
        walked
    }
}

/// The walk through one page.
pub(super) struct Reader<'w, 'a> {
    pub(super) walker: &'w mut Walker<'a>,
    pub(super) frame: Option<Rect>,
    /// How many points the unit of the page is.
    pub(super) unit: f32,
    pub(super) paths: Paths,
    pub(super) walked: Walked,
    operations: usize,
    bytes: usize,
    has_ended: bool,
    /// How many operations have shown text.
    pub(super) shows: usize,
    /// How many forms were left out.
    pub(super) left_out: usize,
    /// The forms that are being walked through.
    pub(super) open: Vec<ObjectId>,
    /// What forms without text paint, by their numbers and resources.
    pub(super) textless: HashMap<(ObjectId, *const Dictionary), Textless>,
}

impl<'a> Reader<'_, 'a> {
    /// Ends the walk.
    pub(super) const fn give_up(&mut self) {
        (self.has_ended, self.walked.is_partial) = (true, true);
    }

    /// Walks through the content of the innermost form that is open, or of the page.
    pub(super) fn content(&mut self, content: &[u8], resources: Option<&'a Dictionary>, state: &State<'a>) {
        self.bytes = self.bytes.saturating_add(content.len());
        if self.bytes > MAX_BYTES || self.walker.is_over() {
            return self.give_up();
        }
        let mut state = state.clone();
        let (form, mut kept, mut marks) = (self.open.last().copied(), Vec::new(), Marks::new(state.is_off));
        let mut tokens = Tokens::new(content);
        while let Some(operation) = tokens.next() {
            self.count();
            if self.has_ended {
                return;
            }
            let at = At::new(form, &operation);
            match operation.operator {
                "q" if kept.len() < MAX_KEPT => kept.push(state.clone()),
                "q" => self.give_up(),
                "Q" => state = kept.pop().unwrap_or(state),
                "Do" => drop(self.object(&operation, resources, &state, at)),
                "Tf" => drop(self.font(&operation, resources, &mut state)),
                "Tj" | "TJ" | "'" | "\"" => self.show(&operation, &mut state, at),
                "gs" => drop(self.graphics(&operation, resources, &mut state)),
                "BI" if state.is_shown() && !state.inks.fill_is_clear() => self.paths.square(state.page),
                "BMC" => marks.open(false),
                "BDC" => marks.open(self.is_off(resources, &operation)),
                "EMC" => marks.close(),
                _ => self.other(&operation, resources, &mut state),
            }
            state.is_off = marks.are_off();
        }
    }

    fn count(&mut self) {
        self.operations += 1;
        let is_over = self.operations.is_multiple_of(UNTIMED) && self.walker.is_over();
        if self.operations > MAX_OPERATIONS || is_over {
            self.give_up();
        }
    }

    fn other(&mut self, operation: &Operation<'_>, resources: Option<&'a Dictionary>, state: &mut State<'a>) {
        let painted = self.paths.take(operation, state.page, &state.inks, state.line_width, state.is_shown());
        state.is_cut_away |= self.paths.hides_all();
        if !painted && !state.inks.color(self.walker.document, resources, operation) {
            state.place(operation);
        }
    }

    /// Whether marked content belongs to a layer that is off.
    fn is_off(&self, resources: Option<&'a Dictionary>, operation: &Operation<'_>) -> bool {
        let [.., Object::Name(tag), properties] = operation.operands else { return false };
        if tag != b"OC" || self.walker.layers.is_empty() {
            return false;
        }
        let find = || {
            let all = resources?.get_deref(b"Properties", self.walker.document).ok()?.as_dict().ok()?;
            all.get(properties.as_name().ok()?).ok()
        };
        find().is_some_and(|content| self.hides(content))
    }

    /// Whether content that belongs to this layer, or to layers by this membership, is not shown.
    pub(super) fn hides(&self, layer: &Object) -> bool {
        self.walker.layers.hide(self.walker.document, layer)
    }

    fn font(
        &mut self,
        operation: &Operation<'_>,
        resources: Option<&'a Dictionary>,
        state: &mut State<'a>,
    ) -> Option<()> {
        let [.., name, size] = operation.operands else { return None };
        let size = size.as_float().ok()?;
        let font = self.resource(resources, b"Font", name.as_name().ok()?);
        self.set_font(font.map(|(_, font)| font), size, state);
        Some(())
    }

    fn set_font(&mut self, font: Option<&'a Object>, size: f32, state: &mut State<'a>) {
        state.size = size;
        state.font = font.and_then(|font| font.as_dict().ok()).map(|font| {
            let key = std::ptr::from_ref(font);
            if let Some(font) = self.walker.fonts.get(&key) {
                return Rc::clone(font);
            }
            if self.walker.fonts.len() >= MAX_FONTS {
                self.walker.fonts.clear();
            }
            let font = Rc::new(Font::new(self.walker.document, font));
            self.walker.fonts.insert(key, Rc::clone(&font));
            if self.walker.is_over() {
                self.give_up();
            }
            font
        });
    }

    fn graphics(
        &mut self,
        operation: &Operation<'_>,
        resources: Option<&'a Dictionary>,
        state: &mut State<'a>,
    ) -> Option<()> {
        let name = operation.operands.last()?.as_name().ok()?;
        let document = self.walker.document;
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

    /// The resource of that kind and name, with its number.
    pub(super) fn resource(
        &self,
        resources: Option<&'a Dictionary>,
        kind: &[u8],
        name: &[u8],
    ) -> Option<(Option<ObjectId>, &'a Object)> {
        let document = self.walker.document;
        let all = resources?.get_deref(kind, document).ok()?.as_dict().ok()?;
        document.dereference(all.get(name).ok()?).ok()
    }
}
