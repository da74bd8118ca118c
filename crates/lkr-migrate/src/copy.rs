//! Copying the parts. Each module goes on where the marker says, and every batch may be copied twice.

pub(crate) mod blobs;
pub(crate) mod points;
pub(crate) mod records;
