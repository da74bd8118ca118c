//! The text of operators, and whether it is visible on the page.

use std::{borrow::Cow, ops::Range};

use lopdf::{Object, ObjectId};

use super::{
    content::PageInterpreter, ink::LETTERS_ARE_GROUND, matrix::Matrix, state::State, tokens::Operation,
};
use crate::{page::Rect, runs::Run};

/// Letters below this size, in points, are meant for machines.
pub(crate) const LEAST_SIZE: f32 = 1.0;

/// Letters scaled to less than this width, in points for each unit, are meant for machines.
const LEAST_WIDTH: f32 = 0.2;

/// Most texts of a page.
const MAX_TEXTS: usize = 1_000_000;

/// The position of an operation: its form, or `None` for the page's own content, and its byte range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct OperationPosition {
    pub(super) form: Option<ObjectId>,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl OperationPosition {
    pub(super) const fn new(form: Option<ObjectId>, operation: &Operation<'_>) -> Self {
        let Range { start, end } = operation.range();
        Self { form, start, end }
    }
}

/// Whether text is visible on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextVisibility {
    Shown,
    /// Not drawn, like the OCR text of a scanner.
    Undrawn,
    /// Drawn so transparent that it cannot be seen, like the OCR text of some programs.
    Transparent,
    /// Pale on a pale background, as far as known.
    PaleText,
    /// Invisible.
    Hidden,
    /// Outside of the page.
    Outside,
}

/// Text of an operation.
pub(super) struct TextItem {
    pub(super) run: Run<'static>,
    pub(super) visibility: TextVisibility,
    pub(super) at: OperationPosition,
    /// Its length, even if it cannot be decoded.
    pub(super) length: usize,
}

impl<'a> PageInterpreter<'_, 'a> {
    pub(super) fn show(&mut self, operation: &Operation<'_>, state: &mut State, at: OperationPosition) {
        self.shows += 1;
        if matches!(operation.operator, "'" | "\"") {
            if let ("\"", [.., blank, between, _]) = (operation.operator, operation.operands) {
                state.blank = blank.as_float().unwrap_or(state.blank);
                state.between = between.as_float().unwrap_or(state.between);
            }
            state.next_line(0.0, -state.leading);
        }
        let Some(text) = operation.operands.last() else { return };
        let (before, mut moved) = (self.content_of.texts.len(), 0.0);
        for part in text.as_array().map_or(std::slice::from_ref(text), Vec::as_slice) {
            let by = match part {
                Object::String(bytes, _) => self.string(bytes, state, at),
                part => -part.as_float().unwrap_or(0.0) / 1000.0 * state.size * state.stretch,
            };
            state.text = Matrix::shift(by, 0.0).then(state.text);
            moved += by;
        }
        let texts = self.content_of.texts.get(before..).unwrap_or_default();
        if texts.iter().any(|text| text.visibility != TextVisibility::Shown) {
            let thousandths = moved * 1000.0 / (state.size * state.stretch);
            let thousandths = if thousandths.is_finite() { thousandths } else { 0.0 };
            self.content_of.replacement.insert(at, replacement(operation, thousandths));
        }
    }

    /// Sets a string; returns how far it moves the text position.
    fn string(&mut self, bytes: &[u8], state: &State, at: OperationPosition) -> f32 {
        if self.content_of.texts.len() >= MAX_TEXTS {
            self.give_up();
            return 0.0;
        }
        let advance = |(width, blank): (f32, bool)| {
            width * state.size + state.between + if blank { state.blank } else { 0.0 }
        };
        let font = state.font.as_deref();
        let width = font.map_or(0.0, |font| font.codes(bytes).map(advance).sum::<f32>() * state.stretch);
        let text_to_page = Matrix::shift(0.0, state.rise).then(state.text).then(state.page);
        let (from, to) = (text_to_page.apply(0.0, 0.0), text_to_page.apply(width, 0.0));
        let height = font.map_or(1.0, |font| font.height);
        let size = (state.size * height * text_to_page.rise()).abs();
        let is_horizontal = text_to_page.is_upright();
        let place = Rect {
            left: from.0.min(to.0),
            bottom: from.1.min(to.1),
            right: from.0.max(to.0),
            top: from.1.max(to.1) + if is_horizontal { size } else { 0.0 },
        };
        if place.is_finite() && !bytes.is_empty() {
            self.content_of.upward = self.content_of.upward.saturating_add(text_to_page.upward());
            let text = font.map(|font| font.text(bytes)).unwrap_or_default();
            let (is_bold, is_undrawn) = (font.is_some_and(|font| font.is_bold), state.inks.is_undrawn());
            let length = if text.is_empty() { bytes.len() } else { text.len() };
            let visibility = self.visibility(state, text_to_page, place);
            let run = Run {
                text: Cow::Owned(text),
                place,
                size,
                is_bold,
                is_pale: false,
                is_undrawn,
                is_horizontal,
            };
            self.content_of.texts.push(TextItem { run, visibility, at, length });
        }
        width
    }

    fn visibility(&mut self, state: &State, text_to_page: Matrix, place: Rect) -> TextVisibility {
        let inks = &state.inks;
        let is_drawn = state.font.as_ref().is_some_and(|font| font.drawn);
        let size = (state.size * text_to_page.rise()).abs() * self.unit;
        // Without a font the size is unknown, and letters of Type 3 fonts may have any size.
        let is_sized = state.font.is_some() && !is_drawn;
        let is_narrow = || (state.size * state.stretch * text_to_page.run()).abs() * self.unit < LEAST_WIDTH;
        if !state.is_shown() || (is_sized && (size < LEAST_SIZE || is_narrow())) {
            return TextVisibility::Hidden;
        }
        if inks.text_is_clear() {
            return TextVisibility::Transparent;
        }
        if is_drawn {
            // Its letters are drawings with their own colours, and may make up a scanned page.
            self.paths.painted_areas.paint(place);
        } else if inks.is_undrawn() {
            return TextVisibility::Undrawn;
        } else if inks.text_is_pale() {
            // The position of vertical text is unknown.
            let is_placed = state.font.as_ref().is_some_and(|font| !font.downward);
            if is_placed && !self.paths.painted_areas.is_under(place) {
                return TextVisibility::PaleText;
            }
        } else if size >= LETTERS_ARE_GROUND {
            self.paths.painted_areas.paint(place);
        }
        let is_outside = self.frame.is_some_and(|frame| !place.is_in(frame));
        if is_outside { TextVisibility::Outside } else { TextVisibility::Shown }
    }
}

/// A replacement for an operation with the same effects except for showing its text.
fn replacement(operation: &Operation<'_>, moves: f32) -> String {
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
