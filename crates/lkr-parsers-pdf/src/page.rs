//! Pages as lines with their positions: what every engine returns.

/// A rectangle in points; `bottom` is less than `top`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rect {
    pub(crate) left: f32,
    pub(crate) bottom: f32,
    pub(crate) right: f32,
    pub(crate) top: f32,
}

impl Rect {
    /// The smallest rectangle that contains both.
    pub(crate) fn union(self, other: Self) -> Self {
        Self {
            left: self.left.min(other.left),
            bottom: self.bottom.min(other.bottom),
            right: self.right.max(other.right),
            top: self.top.max(other.top),
        }
    }

    /// The distance from the bottom to the top.
    pub(crate) fn height(self) -> f32 {
        self.top - self.bottom
    }

    /// Whether all edges are finite.
    pub(crate) fn is_finite(self) -> bool {
        self.left.is_finite() && self.bottom.is_finite() && self.right.is_finite() && self.top.is_finite()
    }

    /// Whether its centre is inside the other.
    pub(crate) fn is_in(self, other: Self) -> bool {
        let (across, up) = (f32::midpoint(self.left, self.right), f32::midpoint(self.bottom, self.top));
        (other.left..=other.right).contains(&across) && (other.bottom..=other.top).contains(&up)
    }
}

/// A line of text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Line {
    /// The text without line breaks. Tabs separate cells.
    pub(crate) text: String,
    /// Its position, if the engine reports it.
    pub(crate) place: Option<Rect>,
    /// The font size of most letters in points; 0 if the engine does not report it.
    pub(crate) size: f32,
    /// Whether most of its letters are bold.
    pub(crate) is_bold: bool,
    /// Whether some of its letters are bold and others are not.
    pub(crate) is_mixed: bool,
    /// Whether the engine separates it from the line before.
    pub(crate) is_separate: bool,
    /// Whether it is too pale to be visible on white.
    pub(crate) is_pale: bool,
    /// Whether it is not drawn (text rendering mode 3).
    pub(crate) is_undrawn: bool,
    /// The separator from the line before, if only their colours separate them.
    pub(crate) separator: Option<&'static str>,
}

/// A page with its lines in reading order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Page {
    /// The visible part of the page, if the engine reports it.
    pub(crate) frame: Option<Rect>,
    /// Whether it is displayed rotated, so that positions differ from those in its image.
    pub(crate) is_rotated: bool,
    /// Whether the engine is not certain of the gaps between words, so that the text of another one is better.
    pub(crate) is_unsure: bool,
    /// How many invisible lines were left out.
    pub(crate) hidden: usize,
    pub(crate) lines: Vec<Line>,
}

impl Line {
    /// Whether wide gaps divide it into cells.
    pub(crate) fn has_cells(&self) -> bool {
        self.text.contains('\t')
    }
}

/// Letters of a text that is in another line not just by chance.
const LONG: usize = 8;

impl Page {
    /// Joins lines that were only separated by their colours.
    pub(crate) fn join_lines(&mut self) {
        let mut lines: Vec<Line> = Vec::with_capacity(self.lines.len());
        for line in self.lines.drain(..) {
            match (line.separator, lines.last_mut()) {
                (Some(separator), Some(last)) => {
                    last.text.push_str(separator);
                    last.text.push_str(&line.text);
                    last.place = last.place.zip(line.place).map(|(a, b)| a.union(b));
                }
                _ => lines.push(line),
            }
        }
        self.lines = lines;
    }

    /// Adds the lines whose text the page does not contain yet: some engines read the appearance of form fields.
    pub(crate) fn add_missing(&mut self, lines: Vec<Line>) {
        if lines.is_empty() {
            return;
        }
        let text = |line: &Line| line.text.split_whitespace().collect::<String>();
        let present: Vec<String> = self.lines.iter().map(text).collect();
        // A short text may be part of another line by chance.
        let is_in = |line: &str, text: &str| line == text || (text.len() >= LONG && line.contains(text));
        let mut missing = lines
            .into_iter()
            .filter(|line| {
                let text = text(line);
                !present.iter().any(|line| is_in(line, &text))
            })
            .collect();
        self.lines.append(&mut missing);
    }

    /// A page without positions, from text with blank lines between paragraphs.
    pub(crate) fn from_text(text: &str) -> Self {
        let mut lines = Vec::new();
        let mut is_separate = false;
        for text in text.lines() {
            let text = clean(text);
            if text.is_empty() {
                is_separate = true;
                continue;
            }
            lines.push(Line { text, is_separate, ..Line::default() });
            is_separate = false;
        }
        Self { lines, ..Self::default() }
    }

    /// Whether it has a letter or digit.
    pub(crate) fn has_words(&self) -> bool {
        self.lines.iter().any(|line| line.text.contains(char::is_alphanumeric))
    }

    /// How many bytes of text it has.
    pub(crate) fn len(&self) -> usize {
        self.lines.iter().map(|line| line.text.len()).sum()
    }
}

/// The words of a line without control characters, separated by single spaces.
pub(crate) fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    for word in words.filter(|word| !word.is_empty()) {
        if !clean.is_empty() {
            clean.push(' ');
        }
        clean.push_str(word);
    }
    clean
}
