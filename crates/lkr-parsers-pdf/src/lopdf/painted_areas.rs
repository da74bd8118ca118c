use super::matrix::Matrix;
use crate::page::Rect;

/// Further areas are merged into their bounding box.
const MAX_AREAS: usize = 256;

/// Text is visible on painted areas if they cover at least this part of it. See docs/studies.md#hidden-text.
const COVERED: f32 = 0.25;

/// The painted areas of a page besides its text, as bounding rectangles.
#[derive(Debug, Clone, Default)]
pub(crate) struct PaintedAreas {
    areas: Vec<Rect>,
    /// How many areas were painted.
    painted: usize,
    is_everywhere: bool,
    /// Whether something that covers everything was blended with what is below it, so that pale text below shows.
    is_blended: bool,
}

impl PaintedAreas {
    /// Painted areas that cover everything.
    pub(crate) const fn everywhere() -> Self {
        Self { areas: Vec::new(), painted: 0, is_everywhere: true, is_blended: false }
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

    /// Marks the whole page as painted; `blends` if what is below shows.
    pub(super) const fn flood(&mut self, blends: bool) {
        self.is_everywhere = true;
        self.is_blended |= blends;
    }

    /// Whether text that was drawn before shows on what was painted over it.
    pub(super) const fn shows_text_below(&self) -> bool {
        self.is_blended
    }

    /// Adds other painted areas, transformed by this matrix.
    pub(super) fn lay(&mut self, other: &Self, matrix: Matrix) {
        self.is_everywhere |= other.is_everywhere;
        self.is_blended |= other.is_blended;
        other.areas.iter().for_each(|area| self.paint(matrix.transform(*area)));
    }

    /// Whether nothing is painted.
    pub(crate) const fn is_empty(&self) -> bool {
        self.painted == 0 && !self.is_everywhere
    }

    /// A value that changes with every painted area.
    pub(super) const fn size(&self) -> (usize, bool) {
        (self.painted, self.is_everywhere)
    }

    /// Whether enough of a rectangle is painted. Overlapping areas count twice, which errs on the side of keeping text.
    pub(crate) fn is_under(&self, place: Rect) -> bool {
        // Rotated text may have no extent in one direction.
        let grown = Rect {
            right: place.right.max(place.left + 0.5),
            top: place.top.max(place.bottom + 0.5),
            ..place
        };
        let painted: f32 = self.areas.iter().map(|area| shared(*area, grown)).sum();
        self.is_everywhere || painted >= COVERED * (grown.right - grown.left) * grown.height()
    }
}

/// The area of the intersection of two rectangles.
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
    fn painted_area_counts_if_it_covers_a_quarter() {
        let mut painted_areas = PaintedAreas::default();
        assert!(!painted_areas.is_under(rect(0.0, 0.0, 10.0, 10.0)));
        painted_areas.paint(rect(8.0, 0.0, 20.0, 10.0));
        assert!(
            !painted_areas.is_under(rect(0.0, 0.0, 10.0, 10.0))
                && painted_areas.is_under(rect(4.0, 0.0, 12.0, 10.0))
        );
        assert!(painted_areas.is_under(rect(9.0, 2.0, 9.0, 8.0)), "rotated text has no width");
        assert!(!painted_areas.is_under(rect(2.0, 2.0, 2.0, 8.0)));
    }

    #[test]
    fn areas_beyond_the_limit_are_merged() {
        let mut painted_areas = PaintedAreas::default();
        (0..=MAX_AREAS).for_each(|_| painted_areas.paint(rect(0.0, 0.0, 1.0, 1.0)));
        painted_areas.paint(rect(99.0, 99.0, 100.0, 100.0));
        assert!(
            painted_areas.areas.len() == MAX_AREAS && painted_areas.is_under(rect(50.0, 50.0, 60.0, 60.0))
        );
    }
}
