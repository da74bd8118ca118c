/// Marks that are open at once beyond this many have no meaning of their own.
const MAX_OPEN: usize = 1000;

/// The marked content that is open in a stream, and whether it is shown.
#[derive(Debug)]
pub(super) struct Marks {
    /// Whether all of the stream belongs to a layer that is off.
    is_off: bool,
    open: Vec<bool>,
    /// How many more are open.
    beyond: usize,
    /// How many of the open ones are off.
    off: usize,
}

impl Marks {
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
