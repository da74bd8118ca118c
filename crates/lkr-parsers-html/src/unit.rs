use dom_query::NodeId;

/// The kind of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UnitKind {
    Heading(u8),
    Paragraph,
    /// A line of a list, with its nesting depth and the marker in front of it.
    ListItem {
        depth: usize,
        marker: String,
    },
    /// A row of the table with this number.
    Row(usize),
    Code,
    /// The title of the page.
    Title,
}

/// A unit of a page's text, such as a paragraph.
#[derive(Debug, Clone)]
pub(crate) struct TextUnit {
    pub(crate) kind: UnitKind,
    pub(crate) text: String,
    /// The nodes that the text comes from, in order.
    pub(crate) spans: Vec<Span>,
    /// The index of the innermost boilerplate element around it.
    pub(crate) boilerplate: Option<usize>,
}

/// A part of a unit's text that comes from one node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    /// The offset of the byte after it.
    pub(crate) end: usize,
    pub(crate) node: NodeId,
    pub(crate) is_linked: bool,
}

impl TextUnit {
    pub(crate) const fn new(kind: UnitKind, boilerplate: Option<usize>) -> Self {
        Self { kind, text: String::new(), spans: Vec::new(), boilerplate }
    }

    /// Adds the text of a node unchanged.
    pub(crate) fn push(&mut self, text: &str, node: NodeId, is_linked: bool) {
        self.text.push_str(text);
        let end = self.text.len();
        match self.spans.last_mut() {
            Some(last) if last.node == node => last.end = end,
            _ => self.spans.push(Span { end, node, is_linked }),
        }
    }

    /// Adds the text of a node with its white space collapsed.
    pub(crate) fn push_words(&mut self, text: &str, node: NodeId, is_linked: bool) {
        let mut words = String::with_capacity(text.len());
        let mut after_space = self.text.is_empty() || self.text.ends_with([' ', '\n']);
        for c in text.chars() {
            let is_space = matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}');
            if !is_space {
                words.push(c);
            } else if !after_space {
                words.push(' ');
            }
            after_space = is_space;
        }
        if !words.is_empty() {
            self.push(&words, node, is_linked);
        }
    }

    /// The parts of the text with their spans.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&str, Span)> {
        let starts = std::iter::once(0).chain(self.spans.iter().map(|span| span.end));
        starts.zip(&self.spans).filter_map(|(start, span)| Some((self.text.get(start..span.end)?, *span)))
    }

    /// Whether it has no text.
    pub(crate) fn is_blank(&self) -> bool {
        let is_empty = |c: char| c.is_whitespace() || matches!(self.kind, UnitKind::Row(_)) && c == '|';
        self.text.chars().all(is_empty)
    }
}
