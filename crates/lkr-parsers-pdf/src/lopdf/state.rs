//! The graphics state, which `q` saves.

use std::rc::Rc;

use lopdf::Object;

use super::{fonts::Font, ink::Inks, matrix::Matrix, tokens::Operation};

/// The graphics state, which `q` saves.
#[derive(Clone)]
pub(super) struct State {
    pub(super) page: Matrix,
    pub(super) text: Matrix,
    pub(super) line: Matrix,
    pub(super) font: Option<Rc<Font>>,
    pub(super) size: f32,
    pub(super) between: f32,
    pub(super) blank: f32,
    pub(super) stretch: f32,
    pub(super) leading: f32,
    pub(super) rise: f32,
    pub(super) inks: Inks,
    pub(super) line_width: f32,
    /// Whether the content belongs to a layer that is off.
    pub(super) is_off: bool,
    /// Whether the clipping area is empty.
    pub(super) is_cut_away: bool,
}

impl State {
    pub(super) const fn new() -> Self {
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
            is_cut_away: false,
        }
    }

    /// Whether content may be visible.
    pub(super) const fn is_shown(&self) -> bool {
        !self.is_off && !self.is_cut_away
    }

    pub(super) fn next_line(&mut self, x: f32, y: f32) {
        self.line = Matrix::shift(x, y).then(self.line);
        self.text = self.line;
    }

    /// Applies operators that position or format text.
    pub(super) fn place(&mut self, operation: &Operation<'_>) {
        let one = numbers(operation.operands).map(|[number]| number);
        let two = numbers::<2>(operation.operands);
        match (operation.operator, one, two) {
            ("cm", ..) => {
                if let Some(matrix) = numbers(operation.operands) {
                    self.page = Matrix::new(matrix).then(self.page);
                }
            }
            ("BT", ..) => (self.text, self.line) = (Matrix::IDENTITY, Matrix::IDENTITY),
            ("Tm", ..) => {
                if let Some(matrix) = numbers(operation.operands) {
                    (self.text, self.line) = (Matrix::new(matrix), Matrix::new(matrix));
                }
            }
            ("Td", _, Some([x, y])) => self.next_line(x, y),
            ("TD", _, Some([x, y])) => {
                self.leading = -y;
                self.next_line(x, y);
            }
            ("T*", ..) => self.next_line(0.0, -self.leading),
            ("Tc", Some(number), _) => self.between = number,
            ("Tw", Some(number), _) => self.blank = number,
            ("Tz", Some(number), _) => self.stretch = number / 100.0,
            ("TL", Some(number), _) => self.leading = number,
            ("Ts", Some(number), _) => self.rise = number,
            ("Tr", mode, _) => self.inks.set_mode(mode),
            ("w", Some(number), _) => self.line_width = number,
            _ => {}
        }
    }
}

/// The last `N` operands as numbers.
pub(super) fn numbers<const N: usize>(operands: &[Object]) -> Option<[f32; N]> {
    let mut numbers = [0.0; N];
    for (number, operand) in numbers.iter_mut().zip(operands.last_chunk::<N>()?) {
        *number = operand.as_float().ok()?;
    }
    Some(numbers)
}
