use super::matrix::Matrix;
use crate::page::Rect;

/// Areas beyond this many are one that holds them all.
const MAX_AREAS: usize = 256;

/// This part of a text has to stand on something painted for it to be seen there.
const COVERED: f32 = 0.25;

/// What a page paints beside its text, as the rectangles that hold it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ground {
    areas: Vec<Rect>,
    /// How often something was painted.
    painted: usize,
    is_everywhere: bool,
}

impl Ground {
    /// The ground of a page of which it does not matter.
    pub(crate) const fn everywhere() -> Self {
        Self { areas: Vec::new(), painted: 0, is_everywhere: true }
    }

    pub(super) fn paint(&mut self, area: Rect) {
        self.painted += 1;
        if !area.is_finite() {
            self.is_everywhere = true;
        } else if self.areas.len() < MAX_AREAS {
            self.areas.push(area);
        } else if let Some(last) = self.areas.last_mut() {
            *last = last.union(area);
        }
    }

    /// What paints all that may be painted.
    pub(super) const fn flood(&mut self) {
        self.is_everywhere = true;
    }

    /// Paints all that another ground paints, as this matrix transforms it.
    pub(super) fn lay(&mut self, other: &Self, matrix: Matrix) {
        self.is_everywhere |= other.is_everywhere;
        other.areas.iter().for_each(|area| self.paint(matrix.transform(*area)));
    }

    /// How much was painted, in no unit: it grows with all that is.
    pub(super) const fn size(&self) -> (usize, bool) {
        (self.painted, self.is_everywhere)
    }

    /// Whether enough of a place is painted. Areas that overlap count twice: text is rather kept than left out.
    pub(crate) fn is_under(&self, place: Rect) -> bool {
        // Upright text that is turned has no height of its own here.
        let grown = Rect {
            right: place.right.max(place.left + 0.5),
            top: place.top.max(place.bottom + 0.5),
            ..place
        };
        let painted: f32 = self.areas.iter().map(|area| shared(*area, grown)).sum();
        self.is_everywhere || painted >= COVERED * (grown.right - grown.left) * grown.height()
    }
}

/// The size of what two rectangles share.
fn shared(a: Rect, b: Rect) -> f32 {
    let across = a.right.min(b.right) - a.left.max(b.left);
    let up = a.top.min(b.top) - a.bottom.max(b.bottom);
    across.max(0.0) * up.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn rect(left: f32, bottom: f32, right: f32, top: f32) -> Rect {
        Rect { left, bottom, right, top }
    }

    #[test]
    fn a_place_is_on_ground_where_a_quarter_of_it_is_painted() {
        let mut ground = Ground::default();
        assert!(!ground.is_under(rect(0.0, 0.0, 10.0, 10.0)));
        ground.paint(rect(8.0, 0.0, 20.0, 10.0));
        assert!(!ground.is_under(rect(0.0, 0.0, 10.0, 10.0)) && ground.is_under(rect(4.0, 0.0, 12.0, 10.0)));
        assert!(ground.is_under(rect(9.0, 2.0, 9.0, 8.0)), "text on its side has no width");
        assert!(!ground.is_under(rect(2.0, 2.0, 2.0, 8.0)));
    }

    #[test]
    fn many_areas_become_one() {
        let mut ground = Ground::default();
        (0..=MAX_AREAS).for_each(|_| ground.paint(rect(0.0, 0.0, 1.0, 1.0)));
        ground.paint(rect(99.0, 99.0, 100.0, 100.0));
        assert!(ground.areas.len() == MAX_AREAS && ground.is_under(rect(50.0, 50.0, 60.0, 60.0)));
    }
}
