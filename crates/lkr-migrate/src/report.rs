use std::collections::BTreeMap;

use crate::Checksum;

/// What was compared, and found equal on both sides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of records by row of the [table](crate::TABLE); `(unknown)` for keys that are in no row.
    pub records: BTreeMap<String, u64>,
    /// The number of records of the source that are not copied, by row of the table.
    pub left_out: BTreeMap<String, u64>,
    /// The number of points by collection.
    pub points: BTreeMap<String, u64>,
    /// The number of texts, blocks and notes.
    pub texts: u64,
    /// The number of originals.
    pub originals: u64,
    /// The length of texts, blocks, notes and originals in bytes.
    pub bytes: u64,
    /// The checksum of records; `None` if they are not migrated.
    pub records_checksum: Option<Checksum>,
    /// The checksum of points; `None` if they are not migrated.
    pub points_checksum: Option<Checksum>,
    /// The checksum of texts and originals; `None` if neither are migrated.
    pub blobs_checksum: Option<Checksum>,
}
