//! Formulas in one line.

use quick_xml::events::BytesStart;

use crate::xml::{ElementKind, attribute};

/// The open parts of a formula, and the signs before its next text. What has no text has no signs.
#[derive(Debug, Default)]
pub(crate) struct Formula {
    signs: String,
    parts: Vec<OpenPart>,
}

#[derive(Debug)]
struct OpenPart {
    kind: PartKind,
    /// How many bytes of text and of signs came before it.
    text: usize,
    signs: usize,
    /// Where its own text begins, if it has any.
    start: usize,
}

#[derive(Debug)]
enum PartKind {
    /// A numerator, a denominator, an exponent, an index, or what is below a root.
    Operand,
    Delimiters {
        begin: String,
        separator: String,
        end: String,
        arguments: usize,
    },
    /// An operator with limits, such as a sum.
    Operator {
        sign: String,
        is_written: bool,
    },
    Root,
    /// The rows of a matrix or of an array of equations, or the cells of a row.
    Rows {
        separator: &'static str,
        count: usize,
    },
    Argument,
}

impl Formula {
    /// Removes and returns the signs before the next text.
    pub(crate) fn take_signs(&mut self) -> String {
        std::mem::take(&mut self.signs)
    }

    /// Opens a part, or applies a property to the open one. `text` precedes it.
    pub(crate) fn start(&mut self, kind: ElementKind, tag: &BytesStart<'_>, text: &str) {
        let follows = self.signs.is_empty() && text.ends_with(char::is_alphanumeric);
        let sign = match kind {
            // A number before the fraction is another one: two and a half is not twenty-one halves.
            ElementKind::Numerator if follows => " ",
            ElementKind::Subscript => "_",
            ElementKind::Superscript => "^",
            ElementKind::Denominator => "/",
            _ => "",
        };
        self.begin_child(kind);
        let part = match kind {
            ElementKind::Subscript
            | ElementKind::Superscript
            | ElementKind::Numerator
            | ElementKind::Denominator => PartKind::Operand,
            ElementKind::Delimiters => PartKind::Delimiters {
                begin: "(".to_owned(),
                separator: "|".to_owned(),
                end: ")".to_owned(),
                arguments: 0,
            },
            ElementKind::Operator => PartKind::Operator { sign: "∫".to_owned(), is_written: false },
            ElementKind::Root => PartKind::Root,
            ElementKind::Rows => PartKind::Rows { separator: "; ", count: 0 },
            ElementKind::MatrixRow => PartKind::Rows { separator: " ", count: 0 },
            ElementKind::Argument if matches!(self.open(), Some(PartKind::Root)) => PartKind::Operand,
            ElementKind::Argument => PartKind::Argument,
            _ => return self.apply(kind, tag),
        };
        let signs = self.signs.len();
        self.signs.push_str(sign);
        self.parts.push(OpenPart {
            kind: part,
            text: text.len(),
            signs,
            start: text.len() + self.signs.len(),
        });
    }

    /// Closes a part, whose text is at the end of `text`. Returns where it put an opening bracket into the text.
    pub(crate) fn end(&mut self, kind: ElementKind, text: &mut String) -> Option<usize> {
        if !is_part(kind) {
            return None;
        }
        let part = self.parts.pop()?;
        if text.len() == part.text {
            self.signs.truncate(part.signs);
            return None;
        }
        // What is left was meant for parts of it without text.
        self.signs.clear();
        match part.kind {
            PartKind::Operand => return bracket(text, part.start),
            PartKind::Delimiters { end, .. } => text.push_str(&end),
            _ => {}
        }
        None
    }

    fn open(&self) -> Option<&PartKind> {
        self.parts.last().map(|part| &part.kind)
    }

    /// Adds the signs that come before a child of the open part.
    fn begin_child(&mut self, child: ElementKind) {
        let Some(part) = self.parts.last_mut() else { return };
        let is_limit = matches!(child, ElementKind::Subscript | ElementKind::Superscript);
        match (&mut part.kind, child) {
            (PartKind::Delimiters { begin, separator, arguments, .. }, ElementKind::Argument) => {
                self.signs.push_str(if *arguments == 0 { begin } else { separator });
                *arguments += 1;
            }
            (PartKind::Operator { sign, is_written }, child)
                if !*is_written && (is_limit || child == ElementKind::Argument) =>
            {
                self.signs.push_str(sign);
                *is_written = true;
            }
            (PartKind::Root, ElementKind::Argument) => self.signs.push('√'),
            (PartKind::Rows { separator, count }, ElementKind::Argument | ElementKind::MatrixRow) => {
                self.signs.push_str(if *count == 0 { "" } else { separator });
                *count += 1;
            }
            _ => {}
        }
    }

    fn apply(&mut self, kind: ElementKind, tag: &BytesStart<'_>) {
        let value = || attribute(tag, "val").unwrap_or_default().chars().take(1).collect::<String>();
        match (kind, self.parts.last_mut().map(|part| &mut part.kind)) {
            (ElementKind::DelimiterBegin, Some(PartKind::Delimiters { begin, .. })) => *begin = value(),
            (ElementKind::DelimiterSeparator, Some(PartKind::Delimiters { separator, .. })) => {
                *separator = value();
            }
            (ElementKind::DelimiterEnd, Some(PartKind::Delimiters { end, .. })) => *end = value(),
            (ElementKind::OperatorSign, Some(PartKind::Operator { sign, .. })) => *sign = value(),
            _ => {}
        }
    }
}

const fn is_part(kind: ElementKind) -> bool {
    matches!(
        kind,
        ElementKind::Subscript
            | ElementKind::Superscript
            | ElementKind::Numerator
            | ElementKind::Denominator
            | ElementKind::Delimiters
            | ElementKind::Operator
            | ElementKind::Root
            | ElementKind::Rows
            | ElementKind::MatrixRow
            | ElementKind::Argument
    )
}

/// Puts the end of `text` in brackets if it has an operator: without them, `2^n+1` would be another number. Returns where they begin.
fn bracket(text: &mut String, start: usize) -> Option<usize> {
    let operand = text.get(start..).unwrap_or_default().trim();
    let has_operator = operand.chars().skip(1).any(is_operator) && !operand.ends_with(is_operator);
    if !has_operator || is_bracketed(operand) {
        return None;
    }
    text.insert(start, '(');
    text.push(')');
    Some(start)
}

const fn is_operator(c: char) -> bool {
    matches!(c, '+' | '-' | '−' | '±' | '/' | '*' | '·' | '×' | '=' | '<' | '>' | '≤' | '≥')
}

/// Whether the brackets at the ends of a text belong together.
fn is_bracketed(text: &str) -> bool {
    let mut depth = 0_usize;
    let is_within = |(at, c): (usize, char)| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > 0 || at + c.len_utf8() == text.len()
    };
    text.starts_with('(') && text.ends_with(')') && text.char_indices().all(is_within)
}
