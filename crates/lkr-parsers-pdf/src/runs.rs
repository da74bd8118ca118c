//! Builds lines from the runs of text that an engine returns, in its order.

use std::borrow::Cow;

use crate::page::{Line, Rect, clean};

/// Text in one font at one position.
pub(crate) struct Run<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) place: Rect,
    pub(crate) size: f32,
    pub(crate) is_bold: bool,
    /// Whether it is too pale to be visible on white.
    pub(crate) is_pale: bool,
    /// Whether it is not drawn (text rendering mode 3).
    pub(crate) is_undrawn: bool,
    /// Whether it is horizontal.
    pub(crate) is_horizontal: bool,
}

/// A gap wider than this part of the font size separates words. See docs/studies.md#pdf-layout.
const WORD_GAP: f32 = 0.15;

/// Baselines and sizes that differ by less than this part of the font size are one.
const SAME_BASE: f32 = 0.05;

/// A step back by more than this part of the font size separates words too. See docs/studies.md#pdf-layout.
const BACK_GAP: f32 = -2.0;

/// A gap wider than this many times the font size separates cells. See docs/studies.md#pdf-layout.
pub(crate) const CELL_GAP: f32 = 1.8;

/// Builds lines from runs, in their order.
pub(crate) fn lines<'a>(runs: impl Iterator<Item = Run<'a>>) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut open: Option<LineBuilder> = None;
    for run in runs {
        match open.as_mut().filter(|line| line.accepts(&run)) {
            Some(line) if line.has_same_visibility(&run) => line.push(&run),
            line => {
                let separator = line.map(|line| line.between(&run));
                lines.extend(open.replace(LineBuilder::new(&run, separator)).and_then(LineBuilder::close));
            }
        }
    }
    lines.extend(open.and_then(LineBuilder::close));
    lines
}

/// A line that the next text may continue.
struct LineBuilder {
    text: String,
    place: Rect,
    /// The position of the last run.
    last: Rect,
    size: f32,
    is_horizontal: bool,
    is_pale: bool,
    is_undrawn: bool,
    separator: Option<&'static str>,
    letters: Letters,
}

impl LineBuilder {
    fn new(run: &Run<'_>, separator: Option<&'static str>) -> Self {
        let mut line = Self {
            text: String::new(),
            place: run.place,
            last: run.place,
            size: run.size,
            is_horizontal: run.is_horizontal,
            is_pale: run.is_pale,
            is_undrawn: run.is_undrawn,
            separator,
            letters: Letters::default(),
        };
        line.add(run);
        line
    }

    /// Whether the run continues this line.
    fn accepts(&self, run: &Run<'_>) -> bool {
        if self.is_horizontal != run.is_horizontal {
            return false;
        }
        let size = self.size.max(run.size);
        let down = if self.is_horizontal {
            self.last.bottom - run.place.bottom
        } else {
            self.last.left - run.place.left
        };
        down.abs() < 0.5 * size
    }

    /// Whether the run has the same visibility as the line.
    fn has_same_visibility(&self, run: &Run<'_>) -> bool {
        run.text.trim().is_empty() || (self.is_pale == run.is_pale && self.is_undrawn == run.is_undrawn)
    }

    fn push(&mut self, run: &Run<'_>) {
        if self.begins_with(run) {
            self.text.insert_str(0, &run.text);
            self.place = self.place.union(run.place);
            self.count_letters(run);
            return;
        }
        let between = self.between(run);
        self.text.push_str(between);
        self.add(run);
    }

    /// Whether a run ends exactly where the line begins. Engines that look for columns take a narrow letter for a gap, and
    /// return the end of a word before its beginning.
    fn begins_with(&self, run: &Run<'_>) -> bool {
        let touches = (self.place.left - run.place.right).abs() < WORD_GAP * run.size;
        let is_level = (self.place.bottom - run.place.bottom).abs() < SAME_BASE * run.size;
        let is_as_large = (self.size - run.size).abs() < SAME_BASE * run.size;
        let is_word = run.text.ends_with(is_latin) && self.text.starts_with(is_latin);
        self.is_horizontal && touches && is_level && is_as_large && is_word
    }

    /// The separator for the gap before a run.
    fn between(&self, run: &Run<'_>) -> &'static str {
        let gap = if self.is_horizontal { run.place.left - self.last.right } else { self.gap_across(run) };
        if gap > CELL_GAP * run.size {
            "\t"
        } else if gap > WORD_GAP * run.size || gap < BACK_GAP * run.size {
            " "
        } else {
            ""
        }
    }

    /// The gap to a run on a line that is not horizontal.
    fn gap_across(&self, run: &Run<'_>) -> f32 {
        (run.place.bottom - self.last.top).max(self.last.bottom - run.place.top)
    }

    fn add(&mut self, run: &Run<'_>) {
        self.text.push_str(&run.text);
        self.place = self.place.union(run.place);
        self.last = run.place;
        self.size = run.size;
        self.count_letters(run);
    }

    fn count_letters(&mut self, run: &Run<'_>) {
        let letters = run.text.chars().filter(|c| !c.is_whitespace()).count();
        self.letters.add(run.size, run.is_bold, letters);
    }

    /// The line; `None` if it is blank.
    fn close(self) -> Option<Line> {
        let text = clean_cells(&self.text);
        let (size, is_bold) = self.letters.predominant_style();
        (!text.is_empty()).then_some(Line {
            text,
            place: Some(self.place),
            size,
            is_bold,
            is_mixed: self.letters.is_mixed(),
            is_separate: false,
            is_pale: self.is_pale,
            is_undrawn: self.is_undrawn,
            separator: self.separator,
        })
    }
}

/// Whether a letter is of the Latin script, which is written from left to right.
fn is_latin(c: char) -> bool {
    c.is_alphabetic() && u32::from(c) < 0x250
}

/// Most font sizes that are counted in one line.
const MAX_SIZES: usize = 32;

/// Up to this many letters in another weight, such as those of a number, do not make a line mixed.
const FEW_LETTERS: usize = 4;

/// Parts of the names of bold fonts. The last ones are bold Computer Modern fonts and Nimbus Roman.
const BOLD_NAMES: [&str; 9] = ["Bold", "bold", "Black", "Heavy", "Demi", "CMBX", "CMSSBX", "SFBX", "-Medi"];

/// Whether the name of a font says that it is bold.
pub(crate) fn is_bold_name(name: &str) -> bool {
    BOLD_NAMES.iter().any(|part| name.contains(part))
}

/// The font sizes and weights of the letters of a line.
#[derive(Default)]
pub(crate) struct Letters {
    sizes: Vec<(f32, usize)>,
    is_bold: usize,
    all: usize,
}

impl Letters {
    pub(crate) fn add(&mut self, size: f32, is_bold: bool, count: usize) {
        let has_space = self.sizes.len() < MAX_SIZES;
        match self.sizes.iter_mut().find(|(counted_size, _)| (*counted_size - size).abs() < 0.05) {
            Some((_, letters)) => *letters += count,
            None if has_space => self.sizes.push((size, count)),
            None => {}
        }
        self.is_bold += if is_bold { count } else { 0 };
        self.all += count;
    }

    /// Whether some letters are bold and more than a few are not.
    pub(crate) fn is_mixed(&self) -> bool {
        self.is_bold > 0 && self.all - self.is_bold > FEW_LETTERS.max(self.all / 7)
    }

    /// The font size of most letters, and whether most are bold.
    pub(crate) fn predominant_style(&self) -> (f32, bool) {
        let size = self.sizes.iter().max_by_key(|(_, count)| *count).map_or(0.0, |(size, _)| *size);
        (size, self.is_bold * 2 > self.all)
    }
}

/// The cleaned cells of a line, separated by tabs.
pub(crate) fn clean_cells(text: &str) -> String {
    let cells: Vec<String> = text.split('\t').map(clean).filter(|cell| !cell.is_empty()).collect();
    cells.join("\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str, left: f32, right: f32, bottom: f32) -> Run<'_> {
        Run {
            text: text.into(),
            place: Rect { left, bottom, right, top: bottom + 10.0 },
            size: 10.0,
            is_bold: false,
            is_pale: false,
            is_undrawn: false,
            is_horizontal: true,
        }
    }

    fn texts(runs: impl IntoIterator<Item = Run<'static>>) -> Vec<String> {
        lines(runs.into_iter()).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn beginning_of_a_word_that_comes_after_its_end_is_put_first() {
        let after = |first: Run<'static>| texts([run("ested: all", 60.2, 120.0, 700.0), first]);
        assert_eq!(after(run("4.3 V", 30.0, 60.0, 700.0)), ["4.3 Vested: all"]);
        let more = [
            run("ested:", 60.2, 100.0, 700.0),
            run("4.3 V", 30.0, 60.0, 700.0),
            run("all", 105.0, 120.0, 700.0),
        ];
        assert_eq!(texts(more), ["4.3 Vested: all"]);
        for other in [
            run("4.3 V", 20.0, 50.0, 700.0),
            run("4.3 V", 30.0, 60.0, 702.0),
            Run { size: 12.0, ..run("4.3 V", 30.0, 60.0, 700.0) },
            run("=", 50.0, 60.0, 700.0),
        ] {
            let found = after(other);
            assert!(found.iter().all(|text| !text.contains("4.3 Vested")), "{found:?}");
        }
    }

    #[test]
    fn names_of_bold_fonts_are_known() {
        for name in
            ["Helvetica-Bold", "ABCDEF+CMBX10", "NimbusRomNo9L-Medi", "Arial-BoldMT", "HelveticaNeue-Heavy"]
        {
            assert!(is_bold_name(name), "{name}");
        }
        for name in ["Helvetica", "ABCDEF+CMR10", "NimbusRomNo9L-Regu", "TimesNewRoman"] {
            assert!(!is_bold_name(name), "{name}");
        }
    }
}
