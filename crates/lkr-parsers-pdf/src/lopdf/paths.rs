use super::{ink::Inks, matrix::Matrix, painted_areas::PaintedAreas, state::numbers, tokens::Operation};
use crate::page::Rect;

/// Lines of at least this many points can be the background of text.
const BROAD: f32 = 4.0;

/// The current path, and the areas painted with paths.
#[derive(Debug, Default)]
pub(super) struct Paths {
    pub(super) painted_areas: PaintedAreas,
    /// The bounding box of the path.
    open: Option<Rect>,
    /// Whether the path is a single straight line.
    line: PathShape,
    /// Whether the path becomes the clipping area.
    clips: bool,
    /// Whether the clipping area became empty.
    hides_all: bool,
}

/// Whether a path is a single straight line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum PathShape {
    #[default]
    Empty,
    Begun,
    Line,
    No,
}

impl Paths {
    /// Applies an operator that builds or paints a path; returns whether it was one. `width` is the line width.
    pub(super) fn take(
        &mut self,
        operation: &Operation<'_>,
        page: Matrix,
        inks: &Inks,
        width: f32,
        text: bool,
    ) -> bool {
        let operands = operation.operands;
        let line = || (text && inks.stroke_shows()).then_some(width * page.rise());
        match operation.operator {
            "m" | "l" | "c" | "v" | "y" => {
                self.line = match (self.line, operation.operator) {
                    (PathShape::Empty | PathShape::Begun, "m") => PathShape::Begun,
                    (PathShape::Begun, "l") => PathShape::Line,
                    _ => PathShape::No,
                };
                let points = operands.as_chunks::<2>().0.iter().filter_map(|point| numbers::<2>(point));
                points.for_each(|[x, y]| self.reach(page.apply(x, y)));
            }
            "re" => {
                self.line = PathShape::No;
                if let Some([x, y, across, up]) = numbers(operands) {
                    let corners = [(x, y), (x + across, y), (x, y + up), (x + across, y + up)];
                    corners.into_iter().for_each(|(x, y)| self.reach(page.apply(x, y)));
                }
            }
            "W" | "W*" => self.clips = true,
            "f" | "F" | "f*" => self.paint(text && inks.fill_shows(), None),
            "S" | "s" => self.paint(false, line()),
            "B" | "B*" | "b" | "b*" => self.paint(text && inks.fill_shows(), line()),
            "n" => self.paint(false, None),
            "sh" if text => self.painted_areas.flood(inks.blends()),
            _ => return false,
        }
        true
    }

    /// Whether the last operator made the clipping area empty.
    pub(super) const fn hides_all(&mut self) -> bool {
        std::mem::replace(&mut self.hides_all, false)
    }

    /// Paints the unit square, as images do.
    pub(super) fn square(&mut self, page: Matrix) {
        let corners = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)];
        let points = corners.map(|(x, y)| point(page.apply(x, y)));
        if let Some(area) = points.into_iter().reduce(Rect::union) {
            self.painted_areas.paint(area);
        }
    }

    fn reach(&mut self, place: (f32, f32)) {
        let point = point(place);
        self.open = Some(self.open.map_or(point, |open| open.union(point)));
    }

    fn paint(&mut self, filled: bool, line: Option<f32>) {
        let (kind, clips) = (std::mem::take(&mut self.line), std::mem::take(&mut self.clips));
        let Some(area) = self.open.take() else { return };
        self.hides_all = clips && (area.right <= area.left || area.top <= area.bottom);
        // A thin line covers its bounding box, but several lines do not cover theirs.
        let is_upright = area.right - area.left < 0.01 || area.height() < 0.01;
        let is_area = kind == PathShape::Line && is_upright;
        let around = line.filter(|width| is_area || *width >= BROAD).map(|width| width / 2.0);
        if filled || around.is_some() {
            let more = around.unwrap_or(0.0);
            self.painted_areas.paint(Rect {
                left: area.left - more,
                bottom: area.bottom - more,
                right: area.right + more,
                top: area.top + more,
            });
        }
    }
}

const fn point((x, y): (f32, f32)) -> Rect {
    Rect { left: x, bottom: y, right: x, top: y }
}
