//! What may be behind transparent text boxes.

/// Whether something may be behind transparent text boxes, and whether that matters.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Backdrop {
    /// Whether the document has an image or a coloured shape.
    pub(crate) exists: bool,
    /// Whether one of these is a picture.
    pub(crate) has_picture: bool,
    /// Whether white text in a transparent text box was left out.
    pub(crate) is_needed: bool,
    /// Whether white text in transparent text boxes is kept.
    pub(crate) is_assumed: bool,
}

impl Backdrop {
    pub(crate) const fn add_picture(&mut self) {
        (self.exists, self.has_picture) = (true, true);
    }

    /// The input of a second pass that keeps white text in transparent text boxes; `None` if the first pass was right.
    pub(crate) fn for_second_pass(self) -> Option<Self> {
        (self.exists && self.is_needed && !self.is_assumed).then_some(Self { is_assumed: true, ..self })
    }
}
