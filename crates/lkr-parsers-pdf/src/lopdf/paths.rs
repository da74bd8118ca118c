use super::{ground::Ground, ink::Inks, matrix::Matrix, state::numbers, tokens::Operation};
use crate::page::Rect;

/// Lines at least so wide, in points, may have text on them.
const BROAD: f32 = 4.0;

/// The path that is being made, and what was painted along such paths.
#[derive(Debug, Default)]
pub(super) struct Paths {
    pub(super) ground: Ground,
    /// What holds the path so far.
    open: Option<Rect>,
    /// Whether the path is a single straight line so far.
    line: Straight,
    /// Whether what follows is to be seen only inside of the path.
    clips: bool,
    /// Whether it was, and nothing is inside.
    hides_all: bool,
}

/// How far a path is a single straight line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Straight {
    #[default]
    Empty,
    Begun,
    Line,
    No,
}

impl Paths {
    /// Takes in an operator that makes or paints a path; whether it was one. `width` is that of lines.
    pub(super) fn take(
        &mut self,
        operation: &Operation<'_>,
        page: Matrix,
        inks: &Inks,
        width: f32,
        shown: bool,
    ) -> bool {
        let operands = operation.operands;
        let line = || (shown && inks.stroke_shows()).then_some(width * page.rise());
        match operation.operator {
            "m" | "l" | "c" | "v" | "y" => {
                self.line = match (self.line, operation.operator) {
                    (Straight::Empty | Straight::Begun, "m") => Straight::Begun,
                    (Straight::Begun, "l") => Straight::Line,
                    _ => Straight::No,
                };
                let points = operands.as_chunks::<2>().0.iter().filter_map(|point| numbers::<2>(point));
                points.for_each(|[x, y]| self.reach(page.apply(x, y)));
            }
            "re" => {
                self.line = Straight::No;
                if let Some([x, y, across, up]) = numbers(operands) {
                    let corners = [(x, y), (x + across, y), (x, y + up), (x + across, y + up)];
                    corners.into_iter().for_each(|(x, y)| self.reach(page.apply(x, y)));
                }
            }
            "W" | "W*" => self.clips = true,
            "f" | "F" | "f*" => self.paint(shown && inks.fill_shows(), None),
            "S" | "s" => self.paint(false, line()),
            "B" | "B*" | "b" | "b*" => self.paint(shown && inks.fill_shows(), line()),
            "n" => self.paint(false, None),
            "sh" if shown => self.ground.flood(),
            _ => return false,
        }
        true
    }

    /// Whether the last operator lets nothing be seen of what follows.
    pub(super) const fn hides_all(&mut self) -> bool {
        std::mem::replace(&mut self.hides_all, false)
    }

    /// Paints the unit square, as pictures do.
    pub(super) fn square(&mut self, page: Matrix) {
        let corners = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)];
        let points = corners.map(|(x, y)| point(page.apply(x, y)));
        if let Some(area) = points.into_iter().reduce(Rect::union) {
            self.ground.paint(area);
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
        // Thin lines cover what their own areas do, but the area that holds several lines is not covered by them.
        let is_upright = area.right - area.left < 0.01 || area.height() < 0.01;
        let is_area = kind == Straight::Line && is_upright;
        let around = line.filter(|width| is_area || *width >= BROAD).map(|width| width / 2.0);
        if filled || around.is_some() {
            let more = around.unwrap_or(0.0);
            self.ground.paint(Rect {
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
