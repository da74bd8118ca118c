//! What lies behind text boxes through which it is seen.

/// What may lie behind text boxes that are clear, and whether that matters.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Scenery {
    /// Whether there is a picture or a coloured shape.
    pub(crate) is_there: bool,
    /// Whether white words were left out that can be read where such a thing lies behind them.
    pub(crate) is_needed: bool,
    /// Whether white words in such boxes are kept.
    pub(crate) keeps: bool,
}

impl Scenery {
    /// What tells a second reading that all words in clear boxes may be seen; nothing where the first one was right.
    pub(crate) fn again(self) -> Option<Self> {
        (self.is_there && self.is_needed && !self.keeps).then_some(Self { keeps: true, ..self })
    }
}
