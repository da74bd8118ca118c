//! A walk through the content of a page: what text it sets, and whether that is seen.

use std::{borrow::Cow, collections::HashMap, ops::Range, rc::Rc};

use lopdf::{
    Dictionary, Document, Object, ObjectId, Stream,
    content::{Content, Operation},
};

use super::{
    MAX_STREAM, fonts::Font, ground::Ground, ink::Inks, layers::Layers, marks::Marks, matrix::Matrix,
    paths::Paths,
};
use crate::{page::Rect, runs::Run};

/// Forms inside forms beyond this are left out.
const MAX_DEPTH: usize = 8;

/// Operations of one page beyond this many are left out.
const MAX_OPERATIONS: usize = 5_000_000;

/// Smaller letters, in points, are there for machines alone.
const LEAST_SIZE: f32 = 1.0;

/// Where an operation stands: in the form of that number, or in the page's own content, and the how many-th it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct At {
    pub(super) form: Option<ObjectId>,
    pub(super) operation: usize,
}

/// Whether a reader of the page sees text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    Shown,
    /// It is not drawn, as what a scanner has read.
    Undrawn,
    /// Nobody sees it.
    Hidden,
    /// It lies outside the page.
    Outside,
}

/// Text that an operation sets.
pub(super) struct Set {
    pub(super) run: Run<'static>,
    pub(super) sight: Sight,
    pub(super) at: At,
}

/// What a page is made of.
#[derive(Default)]
pub(super) struct Walked {
    pub(super) texts: Vec<Set>,
    pub(super) ground: Ground,
    /// How far operations move the place of text, in thousandths of its size, if not all they set is shown.
    pub(super) moves: HashMap<At, f32>,
    /// The operations of the page's own content that draw forms of which nothing is shown, with the texts of each.
    pub(super) unseen: Vec<(At, Range<usize>)>,
}

/// Walks through the content of a page.
pub(super) fn walk<'a>(
    (document, layers): (&'a Document, &'a Layers),
    resources: Option<&'a Dictionary>,
    content: &[u8],
    frame: Option<Rect>,
) -> Walked {
    let (fonts, paths, walked) = (HashMap::new(), Paths::default(), Walked::default());
    let mut reader = Reader { document, layers, frame, fonts, paths, walked, operations: 0 };
    reader.content(content, resources, &State::new(), (None, 0));
    let mut walked = reader.walked;
    walked.ground = reader.paths.ground;
    walked.judge_undrawn();
    walked
}

impl Walked {
    /// Text that is not drawn is what a scanner has read where something else is painted there; beside more text that
    /// is drawn it is hidden.
    fn judge_undrawn(&mut self) {
        let count = |sight| -> usize {
            self.texts.iter().filter(|text| text.sight == sight).map(|text| text.run.text.len()).sum()
        };
        let shows_more = count(Sight::Shown) > count(Sight::Undrawn);
        for text in self.texts.iter_mut().filter(|text| text.sight == Sight::Undrawn) {
            if shows_more || !self.ground.is_under(text.run.place) {
                text.sight = Sight::Hidden;
            }
        }
    }
}

struct Reader<'a> {
    document: &'a Document,
    layers: &'a Layers,
    frame: Option<Rect>,
    fonts: HashMap<*const Dictionary, Rc<Font<'a>>>,
    paths: Paths,
    walked: Walked,
    operations: usize,
}

/// What operators set and `q` keeps.
#[derive(Clone)]
struct State<'a> {
    page: Matrix,
    text: Matrix,
    line: Matrix,
    font: Option<Rc<Font<'a>>>,
    size: f32,
    between: f32,
    blank: f32,
    stretch: f32,
    leading: f32,
    rise: f32,
    inks: Inks,
    line_width: f32,
    /// Whether it belongs to a layer that is off.
    is_off: bool,
}

impl State<'_> {
    const fn new() -> Self {
        Self {
            page: Matrix::IDENTITY,
            text: Matrix::IDENTITY,
            line: Matrix::IDENTITY,
            font: None,
            size: 0.0,
            between: 0.0,
            blank: 0.0,
            stretch: 1.0,
            leading: 0.0,
            rise: 0.0,
            inks: Inks::new(),
            line_width: 1.0,
            is_off: false,
        }
    }

    fn next_line(&mut self, x: f32, y: f32) {
        self.line = Matrix::shift(x, y).then(self.line);
        self.text = self.line;
    }
}

impl<'a> Reader<'a> {
    fn content(
        &mut self,
        content: &[u8],
        resources: Option<&'a Dictionary>,
        state: &State<'a>,
        (form, depth): (Option<ObjectId>, usize),
    ) {
        let mut state = state.clone();
        let (mut kept, mut marks) = (Vec::new(), Marks::new(state.is_off));
        for (number, operation) in Content::decode_iter(content).enumerate() {
            let Ok(operation) = operation else { return };
            self.operations += 1;
            if self.operations > MAX_OPERATIONS {
                return;
            }
            let at = At { form, operation: number };
            match operation.operator.as_str() {
                "q" if kept.len() < 1000 => kept.push(state.clone()),
                "Q" => state = kept.pop().unwrap_or(state),
                "Do" => drop(self.object(&operation, resources, &state, (at, depth))),
                "Tf" => drop(self.font(&operation, resources, &mut state)),
                "Tj" | "TJ" | "'" | "\"" => self.show(&operation, &mut state, at),
                "gs" => drop(self.graphics(&operation, resources, &mut state)),
                "BI" if !state.is_off => self.paths.square(state.page),
                "BMC" => marks.open(false),
                "BDC" => marks.open(self.is_off(resources, &operation)),
                "EMC" => marks.close(),
                _ => self.other(&operation, resources, &mut state),
            }
            state.is_off = marks.are_off();
        }
    }

    fn other(&mut self, operation: &Operation, resources: Option<&'a Dictionary>, state: &mut State<'a>) {
        let painted = self.paths.take(operation, state.page, &state.inks, state.line_width, !state.is_off);
        if !painted && !state.inks.color(self.document, resources, operation) {
            place(operation, state);
        }
    }

    /// Whether marked content belongs to a layer that is off.
    fn is_off(&self, resources: Option<&'a Dictionary>, operation: &Operation) -> bool {
        let [Object::Name(tag), properties] = operation.operands.as_slice() else { return false };
        if tag != b"OC" || self.layers.is_empty() {
            return false;
        }
        let find = || {
            let all = resources?.get_deref(b"Properties", self.document).ok()?.as_dict().ok()?;
            all.get(properties.as_name().ok()?).ok()
        };
        find().is_some_and(|content| self.layers.hide(self.document, content))
    }

    /// A form or a picture.
    fn object(
        &mut self,
        operation: &Operation,
        resources: Option<&'a Dictionary>,
        state: &State<'a>,
        (at, depth): (At, usize),
    ) -> Option<()> {
        let (id, object) = self.resource(resources, b"XObject", operation)?;
        let object = object.as_stream().ok()?;
        let layer = object.dict.get(b"OC").ok();
        let is_off = state.is_off || layer.is_some_and(|layer| self.layers.hide(self.document, layer));
        if object.dict.get_deref(b"Subtype", self.document).ok()?.as_name().ok()? != b"Form" {
            if !is_off {
                self.paths.square(state.page);
            }
            return None;
        }
        if depth < MAX_DEPTH {
            let before = self.walked.texts.len();
            self.form(object, resources, &State { is_off, ..state.clone() }, (id, depth + 1));
            let texts = self.walked.texts.get(before..).unwrap_or_default();
            let is_clear = at.form.is_none() && (is_off || state.inks.fill_is_clear());
            if is_clear && !texts.is_empty() && texts.iter().all(|text| text.sight == Sight::Hidden) {
                self.walked.unseen.push((at, before..self.walked.texts.len()));
            }
        }
        Some(())
    }

    fn form(
        &mut self,
        form: &'a Stream,
        resources: Option<&'a Dictionary>,
        state: &State<'a>,
        inside: (Option<ObjectId>, usize),
    ) -> Option<()> {
        let content = form.get_plain_content_with_limit(MAX_STREAM).ok()?;
        let own = form.dict.get_deref(b"Resources", self.document).and_then(Object::as_dict).ok();
        let mut state = state.clone();
        let matrix = form.dict.get_deref(b"Matrix", self.document).and_then(Object::as_array);
        if let Some(matrix) = matrix.ok().and_then(|matrix| numbers(matrix)) {
            state.page = Matrix::new(matrix).then(state.page);
        }
        self.content(&content, own.or(resources), &state, inside);
        Some(())
    }

    fn font(
        &mut self,
        operation: &Operation,
        resources: Option<&'a Dictionary>,
        state: &mut State<'a>,
    ) -> Option<()> {
        state.size = operation.operands.get(1)?.as_float().ok()?;
        let font = self.resource(resources, b"Font", operation).and_then(|(_, font)| font.as_dict().ok());
        state.font = font.map(|font| {
            let new = || Rc::new(Font::new(self.document, font));
            Rc::clone(self.fonts.entry(std::ptr::from_ref(font)).or_insert_with(new))
        });
        Some(())
    }

    fn graphics(
        &self,
        operation: &Operation,
        resources: Option<&'a Dictionary>,
        state: &mut State<'a>,
    ) -> Option<()> {
        let (_, graphics) = self.resource(resources, b"ExtGState", operation)?;
        state.inks.cover(self.document, graphics.as_dict().ok()?);
        Some(())
    }

    /// The resource of this kind that the first operand names, with its number.
    fn resource(
        &self,
        resources: Option<&'a Dictionary>,
        kind: &[u8],
        operation: &Operation,
    ) -> Option<(Option<ObjectId>, &'a Object)> {
        let name = operation.operands.first()?.as_name().ok()?;
        let all = resources?.get_deref(kind, self.document).ok()?.as_dict().ok()?;
        self.document.dereference(all.get(name).ok()?).ok()
    }

    fn show(&mut self, operation: &Operation, state: &mut State<'a>, at: At) {
        if matches!(operation.operator.as_str(), "'" | "\"") {
            state.next_line(0.0, -state.leading);
        }
        let Some(shown) = operation.operands.last() else { return };
        let (before, mut moved) = (self.walked.texts.len(), 0.0);
        for part in shown.as_array().map_or(std::slice::from_ref(shown), Vec::as_slice) {
            let by = match part {
                Object::String(bytes, _) => self.string(bytes, state, at),
                part => -part.as_float().unwrap_or(0.0) / 1000.0 * state.size * state.stretch,
            };
            state.text = Matrix::shift(by, 0.0).then(state.text);
            moved += by;
        }
        let texts = self.walked.texts.get(before..).unwrap_or_default();
        if texts.iter().any(|text| text.sight != Sight::Shown) {
            let thousandths = moved * 1000.0 / (state.size * state.stretch);
            self.walked.moves.insert(at, if thousandths.is_finite() { thousandths } else { 0.0 });
        }
    }

    /// Sets a string; answers how far it moves the text.
    fn string(&mut self, bytes: &[u8], state: &State<'a>, at: At) -> f32 {
        let Some(font) = &state.font else { return 0.0 };
        let advance = |(width, blank): (f32, bool)| {
            width / 1000.0 * state.size + state.between + if blank { state.blank } else { 0.0 }
        };
        let width = font.codes(bytes).map(advance).sum::<f32>() * state.stretch;
        let whole = Matrix::shift(0.0, state.rise).then(state.text).then(state.page);
        let (from, to) = (whole.apply(0.0, 0.0), whole.apply(width, 0.0));
        let size = (state.size * whole.rise()).abs();
        let upright = whole.is_upright();
        let place = Rect {
            left: from.0.min(to.0),
            bottom: from.1.min(to.1),
            right: from.0.max(to.0),
            top: from.1.max(to.1) + if upright { size } else { 0.0 },
        };
        let text = font.text(bytes);
        if place.is_finite() && !text.is_empty() {
            let (bold, undrawn) = (font.bold, state.inks.is_undrawn());
            let sight = self.sight(font, state, size, place);
            let text = Cow::Owned(text);
            let run = Run { text, place, size, bold, pale: false, undrawn, upright };
            self.walked.texts.push(Set { run, sight, at });
        }
        width
    }

    fn sight(&mut self, font: &Font<'a>, state: &State<'a>, size: f32, place: Rect) -> Sight {
        let inks = &state.inks;
        if state.is_off || (size < LEAST_SIZE && !font.drawn) || inks.text_is_clear() {
            return Sight::Hidden;
        }
        if font.drawn {
            // Its letters are pictures with colours of their own, and may be all that a scanned page consists of.
            self.paths.ground.paint(place);
        } else if inks.is_undrawn() {
            return Sight::Undrawn;
        } else if inks.text_is_pale() && !self.paths.ground.is_under(place) {
            return Sight::Hidden;
        }
        let is_outside = self.frame.is_some_and(|frame| !place.is_in(frame));
        if is_outside { Sight::Outside } else { Sight::Shown }
    }
}

/// Operators that move the text or say how it is set.
fn place(operation: &Operation, state: &mut State<'_>) {
    let one = numbers(&operation.operands).map(|[number]| number);
    let two = numbers::<2>(&operation.operands);
    match (operation.operator.as_str(), one, two) {
        ("cm", ..) => {
            if let Some(matrix) = numbers(&operation.operands) {
                state.page = Matrix::new(matrix).then(state.page);
            }
        }
        ("BT", ..) => (state.text, state.line) = (Matrix::IDENTITY, Matrix::IDENTITY),
        ("Tm", ..) => {
            if let Some(matrix) = numbers(&operation.operands) {
                (state.text, state.line) = (Matrix::new(matrix), Matrix::new(matrix));
            }
        }
        ("Td", _, Some([x, y])) => state.next_line(x, y),
        ("TD", _, Some([x, y])) => {
            state.leading = -y;
            state.next_line(x, y);
        }
        ("T*", ..) => state.next_line(0.0, -state.leading),
        ("Tc", Some(number), _) => state.between = number,
        ("Tw", Some(number), _) => state.blank = number,
        ("Tz", Some(number), _) => state.stretch = number / 100.0,
        ("TL", Some(number), _) => state.leading = number,
        ("Ts", Some(number), _) => state.rise = number,
        ("Tr", Some(number), _) => state.inks.set_mode(number),
        ("w", Some(number), _) => state.line_width = number,
        _ => {}
    }
}

/// The first `N` operands as numbers.
pub(super) fn numbers<const N: usize>(operands: &[Object]) -> Option<[f32; N]> {
    let mut numbers = [0.0; N];
    for (number, operand) in numbers.iter_mut().zip(operands.get(..N)?) {
        *number = operand.as_float().ok()?;
    }
    Some(numbers)
}
