//! Text that operators set, and whether a reader of the page sees it.

use std::{borrow::Cow, ops::Range};

use lopdf::{Object, ObjectId};

use super::{content::Reader, ink::LETTERS_ARE_GROUND, matrix::Matrix, state::State, tokens::Operation};
use crate::{page::Rect, runs::Run};

/// Smaller letters, in points, are there for machines alone.
const LEAST_SIZE: f32 = 1.0;

/// Letters that are narrower than this, in points, for each point of their width, are there for machines alone.
const LEAST_WIDTH: f32 = 0.2;

/// Texts of one page beyond this many are left out.
const MAX_TEXTS: usize = 1_000_000;

/// Where an operation stands: in the form of that number, or in the page's own content, and which bytes it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct At {
    pub(super) form: Option<ObjectId>,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl At {
    pub(super) const fn new(form: Option<ObjectId>, operation: &Operation<'_>) -> Self {
        let Range { start, end } = operation.range();
        Self { form, start, end }
    }
}

/// Whether a reader of the page sees text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    Shown,
    /// It is not drawn, as what a scanner has read.
    Undrawn,
    /// It is as pale as what it stands on, as far as that is known.
    Pale,
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
    /// How much text it is, where it cannot be read too.
    pub(super) length: usize,
}

impl<'a> Reader<'_, 'a> {
    pub(super) fn show(&mut self, operation: &Operation<'_>, state: &mut State<'a>, at: At) {
        self.shows += 1;
        if matches!(operation.operator, "'" | "\"") {
            if let ("\"", [.., blank, between, _]) = (operation.operator, operation.operands) {
                state.blank = blank.as_float().unwrap_or(state.blank);
                state.between = between.as_float().unwrap_or(state.between);
            }
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
            let thousandths = if thousandths.is_finite() { thousandths } else { 0.0 };
            self.walked.instead.insert(at, instead(operation, thousandths));
        }
    }

    /// Sets a string; answers how far it moves the text.
    fn string(&mut self, bytes: &[u8], state: &State<'a>, at: At) -> f32 {
        if self.walked.texts.len() >= MAX_TEXTS {
            self.give_up();
            return 0.0;
        }
        let advance = |(width, blank): (f32, bool)| {
            width / 1000.0 * state.size + state.between + if blank { state.blank } else { 0.0 }
        };
        let font = state.font.as_deref();
        let width = font.map_or(0.0, |font| font.codes(bytes).map(advance).sum::<f32>() * state.stretch);
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
        if place.is_finite() && !bytes.is_empty() {
            let text = font.map(|font| font.text(bytes)).unwrap_or_default();
            let (bold, undrawn) = (font.is_some_and(|font| font.bold), state.inks.is_undrawn());
            let length = if text.is_empty() { bytes.len() } else { text.len() };
            let sight = self.sight(state, whole, place);
            let run = Run { text: Cow::Owned(text), place, size, bold, pale: false, undrawn, upright };
            self.walked.texts.push(Set { run, sight, at, length });
        }
        width
    }

    fn sight(&mut self, state: &State<'a>, whole: Matrix, place: Rect) -> Sight {
        let inks = &state.inks;
        let is_drawn = state.font.as_ref().is_some_and(|font| font.drawn);
        let size = (state.size * whole.rise()).abs() * self.unit;
        // Without a font its size is not known either, and letters that the file draws may have any size.
        let is_sized = state.font.is_some() && !is_drawn;
        let is_narrow = || (state.size * state.stretch * whole.run()).abs() * self.unit < LEAST_WIDTH;
        if !state.is_shown() || (is_sized && (size < LEAST_SIZE || is_narrow())) || inks.text_is_clear() {
            return Sight::Hidden;
        }
        if is_drawn {
            // Its letters are pictures with colours of their own, and may be all that a scanned page consists of.
            self.paths.ground.paint(place);
        } else if inks.is_undrawn() {
            return Sight::Undrawn;
        } else if inks.text_is_pale() {
            // Where text stands that runs downwards is not known.
            let is_placed = state.font.as_ref().is_some_and(|font| !font.downward);
            if is_placed && !self.paths.ground.is_under(place) {
                return Sight::Pale;
            }
        } else if size >= LETTERS_ARE_GROUND {
            self.paths.ground.paint(place);
        }
        let is_outside = self.frame.is_some_and(|frame| !place.is_in(frame));
        if is_outside { Sight::Outside } else { Sight::Shown }
    }
}

/// What does as an operation that shows text does, beside that.
fn instead(operation: &Operation<'_>, moves: f32) -> String {
    let before = match (operation.operator, operation.operands) {
        ("\"", [.., blank, between, _]) => {
            let number = |number: &Object| number.as_float().unwrap_or(0.0);
            format!("{} Tw {} Tc T* ", number(blank), number(between))
        }
        ("'" | "\"", _) => "T* ".to_owned(),
        _ => String::new(),
    };
    format!("{before}[{}] TJ", -moves)
}
