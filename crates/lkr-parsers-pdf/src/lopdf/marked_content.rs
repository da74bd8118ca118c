/// Most open marks that are tracked separately.
const MAX_OPEN: usize = 1000;

/// The open marked content of a stream, and whether it is visible.
#[derive(Debug)]
pub(super) struct MarkedContent {
    /// Whether the whole stream belongs to a layer that is off.
    is_off: bool,
    open: Vec<bool>,
    /// How many further marks are open.
    beyond: usize,
    /// How many open marks are off.
    off: usize,
}

impl MarkedContent {
    pub(super) const fn new(is_off: bool) -> Self {
        Self { is_off, open: Vec::new(), beyond: 0, off: 0 }
    }

    pub(super) fn open(&mut self, is_off: bool) {
        if self.open.len() < MAX_OPEN {
            self.open.push(is_off);
            self.off += usize::from(is_off);
        } else {
            self.beyond += 1;
        }
    }

    pub(super) fn close(&mut self) {
        if self.beyond > 0 {
            self.beyond -= 1;
        } else {
            self.off -= usize::from(self.open.pop().unwrap_or_default());
        }
    }

    pub(super) const fn are_off(&self) -> bool {
        self.is_off || self.off > 0
    }
}
