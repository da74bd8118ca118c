use lkr_domain::{Fingerprint, SpaceName};

/// A text and the space in which its duplicates are looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpaceText<'a> {
    pub(crate) space: &'a SpaceName,
    pub(crate) fingerprint: &'a Fingerprint,
}
