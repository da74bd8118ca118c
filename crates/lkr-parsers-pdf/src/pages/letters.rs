//! The letters of a page as its image shows them.

use crate::page::Rect;

/// A letter with its left, upper, right and lower edge, in points from the upper left corner of the image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Letter {
    pub(crate) c: char,
    pub(crate) place: [f32; 4],
    /// Whether white space precedes it.
    pub(crate) begins_word: bool,
    /// Whether its line runs up or down in the image.
    pub(crate) is_vertical: bool,
}

impl Letter {
    /// Whether its centre is in a place.
    pub(super) fn is_in(&self, [left, upper, right, lower]: [f32; 4]) -> bool {
        let [from_left, from_top, to_right, to_bottom] = self.place;
        let (x, y) = (f32::midpoint(from_left, to_right), f32::midpoint(from_top, to_bottom));
        (left..=right).contains(&x) && (upper..=lower).contains(&y)
    }
}

/// The visible part of a page, and by how many quarters of a turn it is displayed clockwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PageFrame {
    visible: Rect,
    quarter_turns: u8,
}

impl PageFrame {
    pub(crate) const fn new(visible: Rect, quarter_turns: u8) -> Self {
        Self { visible, quarter_turns: quarter_turns % 4 }
    }

    /// Whether the page is displayed on its side.
    pub(crate) const fn is_on_side(&self) -> bool {
        self.quarter_turns % 2 == 1
    }

    /// The width and the height of the page as its image shows it, in points.
    pub(crate) fn size(&self) -> (f32, f32) {
        let (width, height) = (self.visible.right - self.visible.left, self.visible.height());
        if self.is_on_side() { (height, width) } else { (width, height) }
    }

    /// Where the image shows a rectangle of the page, cut to the image; `None` if it does not show its centre.
    pub(crate) fn place(&self, rect: Rect) -> Option<[f32; 4]> {
        if !rect.is_finite() || !rect.is_in(self.visible) {
            return None;
        }
        let visible = self.visible;
        let (from_left, to_left) = (rect.left - visible.left, rect.right - visible.left);
        let (from_right, to_right) = (visible.right - rect.right, visible.right - rect.left);
        let (from_top, to_top) = (visible.top - rect.top, visible.top - rect.bottom);
        let (from_bottom, to_bottom) = (rect.bottom - visible.bottom, rect.top - visible.bottom);
        let [left, upper, right, lower] = match self.quarter_turns {
            0 => [from_left, from_top, to_left, to_top],
            1 => [from_bottom, from_left, to_bottom, to_left],
            2 => [from_right, from_bottom, to_right, to_bottom],
            _ => [from_top, from_right, to_top, to_right],
        };
        let (width, height) = self.size();
        let (cut_x, cut_y) = (|x: f32| x.clamp(0.0, width), |y: f32| y.clamp(0.0, height));
        Some([cut_x(left), cut_y(upper), cut_x(right), cut_y(lower)])
    }
}

/// A gap along a line of more than this many times its height begins another line, such as that of another column.
const LINE_GAP: f32 = 2.0;

/// The number of each letter's line. Letters of one line follow each other in the order of the reader.
pub(super) fn line_numbers(letters: &[Letter]) -> Vec<u32> {
    let mut line = 0;
    let mut last: Option<&Letter> = None;
    let mut lines = Vec::with_capacity(letters.len());
    for letter in letters {
        line += u32::from(last.is_some_and(|last| !continues_line(last, letter)));
        lines.push(line);
        last = Some(letter);
    }
    lines
}

/// Whether two letters that follow each other are on one line.
fn continues_line(last: &Letter, next: &Letter) -> bool {
    if last.is_vertical != next.is_vertical {
        return false;
    }
    let [along, across] = if last.is_vertical { [1, 0] } else { [0, 1] };
    let edges = |letter: &Letter, axis: usize| match (letter.place, axis) {
        ([left, _, right, _], 0) => (left, right),
        ([_, upper, _, lower], _) => (upper, lower),
    };
    let (last_across, next_across) = (edges(last, across), edges(next, across));
    let middle = |(from, to): (f32, f32)| f32::midpoint(from, to);
    let has = |(from, to): (f32, f32), at: f32| from <= at && at <= to;
    if !has(last_across, middle(next_across)) && !has(next_across, middle(last_across)) {
        return false;
    }
    let height = (last_across.1 - last_across.0).max(next_across.1 - next_across.0);
    let (last_along, next_along) = (edges(last, along), edges(next, along));
    let gap = (next_along.0 - last_along.1).max(last_along.0 - next_along.1);
    gap <= LINE_GAP * height
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_the_rotation_of_the_page() {
        let visible = Rect { left: 100.0, bottom: 50.0, right: 700.0, top: 850.0 };
        let rect = Rect { left: 110.0, bottom: 800.0, right: 130.0, top: 810.0 };
        let place = |turns| PageFrame::new(visible, turns).place(rect).unwrap();
        assert_eq!(place(0), [10.0, 40.0, 30.0, 50.0]);
        assert_eq!(place(1), [750.0, 10.0, 760.0, 30.0]);
        assert_eq!(place(2), [570.0, 750.0, 590.0, 760.0]);
        assert_eq!(place(3), [40.0, 570.0, 50.0, 590.0]);
        assert_eq!(PageFrame::new(visible, 1).size(), (800.0, 600.0));
        let outside = Rect { left: 0.0, right: 90.0, ..rect };
        assert_eq!(PageFrame::new(visible, 0).place(outside), None);
    }

    #[test]
    fn wide_gap_and_another_baseline_begin_a_line() {
        let letter = |x: f32, y: f32| Letter {
            c: 'a',
            place: [x, y, x + 5.0, y + 10.0],
            begins_word: false,
            is_vertical: false,
        };
        let letters =
            [letter(0.0, 0.0), letter(6.0, 2.0), letter(40.0, 0.0), letter(0.0, 12.0), letter(6.0, 12.0)];
        assert_eq!(line_numbers(&letters), [0, 0, 1, 2, 2]);
        let upright = letters.map(|letter| {
            let [left, upper, right, lower] = letter.place;
            Letter { place: [upper, left, lower, right], is_vertical: true, ..letter }
        });
        assert_eq!(line_numbers(&upright), [0, 0, 1, 2, 2]);
    }
}
