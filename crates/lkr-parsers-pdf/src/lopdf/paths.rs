use lopdf::content::Operation;

use super::{content::numbers, ground::Ground, ink::Inks, matrix::Matrix};
use crate::page::Rect;

/// Lines at least so wide, in points, may have text on them.
const BROAD: f32 = 4.0;

/// The path that is being made, and what was painted along such paths.
#[derive(Debug, Default)]
pub(super) struct Paths {
    pub(super) ground: Ground,
    /// What holds the path so far.
    open: Option<Rect>,
}

impl Paths {
    /// Takes in an operator that makes or paints a path; whether it was one. `width` is that of lines.
    pub(super) fn take(
        &mut self,
        operation: &Operation,
        page: Matrix,
        inks: &Inks,
        width: f32,
        shown: bool,
    ) -> bool {
        let operands = &operation.operands;
        match operation.operator.as_str() {
            "m" | "l" | "c" | "v" | "y" => {
                let points = operands.as_chunks::<2>().0.iter().filter_map(|point| numbers::<2>(point));
                points.for_each(|[x, y]| self.reach(page.apply(x, y)));
            }
            "re" => {
                if let Some([x, y, across, up]) = numbers(operands) {
                    let corners = [(x, y), (x + across, y), (x, y + up), (x + across, y + up)];
                    corners.into_iter().for_each(|(x, y)| self.reach(page.apply(x, y)));
                }
            }
            "f" | "F" | "f*" => self.paint(shown && inks.fill_shows(), None),
            "S" | "s" => self.paint(false, (shown && inks.stroke_shows()).then_some(width * page.rise())),
            "B" | "B*" | "b" | "b*" => {
                let line = (shown && inks.stroke_shows()).then_some(width * page.rise());
                self.paint(shown && inks.fill_shows(), line);
            }
            "n" => self.open = None,
            "sh" if shown => self.ground.flood(),
            _ => return false,
        }
        true
    }

    /// Paints the unit square, as pictures do.
    pub(super) fn square(&mut self, page: Matrix) {
        let before = self.open.take();
        [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
            .into_iter()
            .for_each(|(x, y)| self.reach(page.apply(x, y)));
        self.paint(true, None);
        self.open = before;
    }

    fn reach(&mut self, (x, y): (f32, f32)) {
        let point = Rect { left: x, bottom: y, right: x, top: y };
        self.open = Some(self.open.map_or(point, |open| open.union(point)));
    }

    fn paint(&mut self, filled: bool, line: Option<f32>) {
        let Some(area) = self.open.take() else { return };
        let around = line.filter(|width| *width >= BROAD).map(|width| width / 2.0);
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
