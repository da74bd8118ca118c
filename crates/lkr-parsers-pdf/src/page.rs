//! What every engine answers: pages as lines with their places, and nothing of the engine itself.

/// A rectangle in points; `bottom` is less than `top`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rect {
    pub(crate) left: f32,
    pub(crate) bottom: f32,
    pub(crate) right: f32,
    pub(crate) top: f32,
}

impl Rect {
    /// The least rectangle that holds both.
    pub(crate) fn union(self, other: Self) -> Self {
        Self {
            left: self.left.min(other.left),
            bottom: self.bottom.min(other.bottom),
            right: self.right.max(other.right),
            top: self.top.max(other.top),
        }
    }

    /// The distance from the lower to the upper edge.
    pub(crate) fn height(self) -> f32 {
        self.top - self.bottom
    }

    /// Whether all edges are numbers.
    pub(crate) fn is_finite(self) -> bool {
        self.left.is_finite() && self.bottom.is_finite() && self.right.is_finite() && self.top.is_finite()
    }

    /// Whether its middle lies in the other.
    pub(crate) fn is_in(self, other: Self) -> bool {
        let (across, up) = (f32::midpoint(self.left, self.right), f32::midpoint(self.bottom, self.top));
        (other.left..=other.right).contains(&across) && (other.bottom..=other.top).contains(&up)
    }
}

/// A line of text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Line {
    /// Its words; never a line break. A tab parts cells.
    pub(crate) text: String,
    /// Where it stands, if the engine knows.
    pub(crate) place: Option<Rect>,
    /// The size of most of its letters in points; 0 where the engine does not know.
    pub(crate) size: f32,
    /// Whether most of its letters are bold.
    pub(crate) bold: bool,
    /// Whether the engine sets it apart from the line before.
    pub(crate) apart: bool,
    /// Whether it is so pale that white paper does not show it.
    pub(crate) pale: bool,
    /// Whether it is not drawn at all.
    pub(crate) undrawn: bool,
    /// What stands between it and the line before, where both are one but for their colours.
    pub(crate) glue: Option<&'static str>,
}

/// A page: its lines in reading order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Page {
    /// The visible part of the page, if the engine knows.
    pub(crate) frame: Option<Rect>,
    /// Whether it is shown turned, so that places are no places in its picture.
    pub(crate) turned: bool,
    /// How many lines were left out because nobody sees them.
    pub(crate) hidden: usize,
    pub(crate) lines: Vec<Line>,
}

impl Line {
    /// Whether wide gaps part it into cells.
    pub(crate) fn has_cells(&self) -> bool {
        self.text.contains('\t')
    }
}

impl Page {
    /// Makes one again of the lines that were parted for their colours.
    pub(crate) fn mend(&mut self) {
        let mut lines: Vec<Line> = Vec::with_capacity(self.lines.len());
        for line in self.lines.drain(..) {
            match (line.glue, lines.last_mut()) {
                (Some(glue), Some(last)) => {
                    last.text.push_str(glue);
                    last.text.push_str(&line.text);
                    last.place = last.place.zip(line.place).map(|(a, b)| a.union(b));
                }
                _ => lines.push(line),
            }
        }
        self.lines = lines;
    }

    /// A page without places from text whose paragraphs are parted by blank lines.
    pub(crate) fn from_text(text: &str) -> Self {
        let mut lines = Vec::new();
        let mut apart = false;
        for text in text.lines() {
            let text = clean(text);
            if text.is_empty() {
                apart = true;
                continue;
            }
            lines.push(Line { text, apart, ..Line::default() });
            apart = false;
        }
        Self { lines, ..Self::default() }
    }

    /// Whether there is a letter or digit on it.
    pub(crate) fn has_words(&self) -> bool {
        self.lines.iter().any(|line| line.text.contains(char::is_alphanumeric))
    }

    /// How many bytes of text there are.
    pub(crate) fn len(&self) -> usize {
        self.lines.iter().map(|line| line.text.len()).sum()
    }
}

/// The words of a line without control characters, parted by single spaces.
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
