//! Lines from runs of text that an engine gives in its order.

use std::borrow::Cow;

use crate::page::{Line, Rect, clean};

/// Text in one font and at one place.
pub(crate) struct Run<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) place: Rect,
    pub(crate) size: f32,
    pub(crate) bold: bool,
    /// Whether it is so pale that white paper does not show it.
    pub(crate) pale: bool,
    /// Whether it is not drawn at all.
    pub(crate) undrawn: bool,
    /// Whether it runs from left to right.
    pub(crate) upright: bool,
}

/// A gap wider than this part of the size parts words.
const WORD_GAP: f32 = 0.15;

/// A step back by more than this part of the size parts words, too.
const BACK_GAP: f32 = -2.0;

/// A gap wider than this many times the size parts cells.
pub(crate) const CELL_GAP: f32 = 1.8;

/// The lines that the runs make, in their order.
pub(crate) fn lines<'a>(runs: impl Iterator<Item = Run<'a>>) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut open: Option<Open> = None;
    for run in runs {
        match open.as_mut().filter(|line| line.holds(&run)) {
            Some(line) if line.is_alike(&run) => line.push(&run),
            line => {
                let glue = line.map(|line| line.between(&run));
                lines.extend(open.replace(Open::new(&run, glue)).and_then(Open::close));
            }
        }
    }
    lines.extend(open.and_then(Open::close));
    lines
}

/// A line that may go on.
struct Open {
    text: String,
    place: Rect,
    /// The run added last.
    last: Rect,
    size: f32,
    upright: bool,
    pale: bool,
    undrawn: bool,
    glue: Option<&'static str>,
    letters: Letters,
}

impl Open {
    fn new(run: &Run<'_>, glue: Option<&'static str>) -> Self {
        let mut line = Self {
            text: String::new(),
            place: run.place,
            last: run.place,
            size: run.size,
            upright: run.upright,
            pale: run.pale,
            undrawn: run.undrawn,
            glue,
            letters: Letters::default(),
        };
        line.add(run);
        line
    }

    /// Whether the run stands on this line, behind what is there.
    fn holds(&self, run: &Run<'_>) -> bool {
        if self.upright != run.upright {
            return false;
        }
        let size = self.size.max(run.size);
        let down =
            if self.upright { self.last.bottom - run.place.bottom } else { self.last.left - run.place.left };
        down.abs() < 0.5 * size
    }

    /// Whether the run shows as what is on the line does.
    fn is_alike(&self, run: &Run<'_>) -> bool {
        run.text.trim().is_empty() || (self.pale == run.pale && self.undrawn == run.undrawn)
    }

    fn push(&mut self, run: &Run<'_>) {
        let between = self.between(run);
        self.text.push_str(between);
        self.add(run);
    }

    /// What the gap before a run stands for.
    fn between(&self, run: &Run<'_>) -> &'static str {
        let gap = if self.upright { run.place.left - self.last.right } else { self.gap_across(run) };
        if gap > CELL_GAP * run.size {
            "\t"
        } else if gap > WORD_GAP * run.size || gap < BACK_GAP * run.size {
            " "
        } else {
            ""
        }
    }

    /// The gap to a run on a line that does not run from left to right.
    fn gap_across(&self, run: &Run<'_>) -> f32 {
        (run.place.bottom - self.last.top).max(self.last.bottom - run.place.top)
    }

    fn add(&mut self, run: &Run<'_>) {
        self.text.push_str(&run.text);
        self.place = self.place.union(run.place);
        self.last = run.place;
        self.size = run.size;
        let letters = run.text.chars().filter(|c| !c.is_whitespace()).count();
        self.letters.add(run.size, run.bold, letters);
    }

    /// The line; nothing where it is blank.
    fn close(self) -> Option<Line> {
        let text = clean_cells(&self.text);
        let (size, bold) = self.letters.most();
        (!text.is_empty()).then_some(Line {
            text,
            place: Some(self.place),
            size,
            bold,
            apart: false,
            pale: self.pale,
            undrawn: self.undrawn,
            glue: self.glue,
        })
    }
}

/// Sizes in one line beyond this many are not counted.
const MAX_SIZES: usize = 32;

/// How the letters of a line are set.
#[derive(Default)]
pub(crate) struct Letters {
    sizes: Vec<(f32, usize)>,
    bold: usize,
}

impl Letters {
    pub(crate) fn add(&mut self, size: f32, bold: bool, count: usize) {
        let room = self.sizes.len() < MAX_SIZES;
        match self.sizes.iter_mut().find(|(known, _)| (*known - size).abs() < 0.05) {
            Some((_, letters)) => *letters += count,
            None if room => self.sizes.push((size, count)),
            None => {}
        }
        self.bold += if bold { count } else { 0 };
    }

    /// The size of most letters, and whether most are bold.
    pub(crate) fn most(&self) -> (f32, bool) {
        let all: usize = self.sizes.iter().map(|(_, count)| count).sum();
        let size = self.sizes.iter().max_by_key(|(_, count)| *count).map_or(0.0, |(size, _)| *size);
        (size, self.bold * 2 > all)
    }
}

/// The cells of a line, clean, parted by tabs.
pub(crate) fn clean_cells(text: &str) -> String {
    let cells: Vec<String> = text.split('\t').map(clean).filter(|cell| !cell.is_empty()).collect();
    cells.join("\t")
}
