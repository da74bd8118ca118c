//! What tells whether the source changed between two runs.

use std::collections::BTreeMap;

use lkr_state::ScanOrder;
use serde::{Deserialize, Serialize};

use crate::{
    MigrateOptions, Parts, Result,
    checksum::{Checksum, ItemHasher},
    progress::Meter,
    retry::retried,
    stores::Stores,
    table::{Treatment, treatment_of},
};

/// A summary of the source: its records by version, and the sizes of its collections.
///
/// Every change of documents, tasks, accounts and settings writes records, and a version is never used twice. Records that
/// are left out do not count. Records that expire count by the newest version, so that an expiry is no change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    /// The number of records to copy.
    pub(crate) records: u64,
    /// The checksum of the keys and versions of the records that do not expire.
    versions: String,
    /// The newest version of a record that expires.
    newest_expiring: u64,
    /// The number of points of each collection.
    pub(crate) points: BTreeMap<String, u64>,
}

impl Fingerprint {
    pub(crate) async fn of(
        source: &Stores,
        parts: Parts,
        options: &MigrateOptions,
        meter: &Meter<'_>,
    ) -> Result<Self> {
        let mut fingerprint = Self::of_records(source, options, meter).await?;
        if let Some(vectors) = source.vectors.as_ref().filter(|_| parts.points) {
            let retry_for = options.retry_for;
            let specs = retried(retry_for, "read source collections", || vectors.collections()).await?;
            for spec in specs {
                let all = lkr_vectors::Filter::all();
                let count =
                    retried(retry_for, "count source points", || vectors.count(&spec.collection, &all));
                fingerprint.points.insert(spec.collection.name().to_owned(), count.await?);
            }
        }
        Ok(fingerprint)
    }

    async fn of_records(source: &Stores, options: &MigrateOptions, meter: &Meter<'_>) -> Result<Self> {
        let (mut records, mut newest_expiring, mut versions) = (0, 0, Checksum::default());
        let mut after: Option<String> = None;
        loop {
            let page = retried(options.retry_for, "read source records", || {
                source.state.scan("", after.as_deref(), ScanOrder::Ascending, options.records_per_batch)
            });
            let page = page.await?;
            meter.add(page.len() as u64, 0);
            for (key, record) in &page {
                let treatment = treatment_of(key);
                match treatment {
                    Treatment::LeaveOut => continue,
                    _ if treatment.expires() => newest_expiring = newest_expiring.max(record.version),
                    _ => versions.add(&{
                        let mut hasher = ItemHasher::default();
                        hasher.bytes(key.as_bytes());
                        hasher.number(record.version);
                        hasher.finish()
                    }),
                }
                records += 1;
            }
            let Some((last, _)) = page.into_iter().next_back() else { break };
            after = Some(last);
        }
        let points = BTreeMap::new();
        Ok(Self { records, versions: versions.to_string(), newest_expiring, points })
    }

    /// Whether the source with this fingerprint is the one with the `earlier` fingerprint, unchanged.
    pub(crate) fn is_unchanged_since(&self, earlier: &Self) -> bool {
        self.versions == earlier.versions
            && self.points == earlier.points
            && self.newest_expiring <= earlier.newest_expiring
    }
}
