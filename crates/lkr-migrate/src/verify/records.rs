use std::{cmp::Ordering, collections::BTreeMap, vec};

use lkr_domain::hex;
use lkr_state::{Key, Record, ScanOrder, StateStore};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

use super::{Checksums, different};
use crate::{
    MigrateOptions, Result,
    checksum::{Checksum, ItemDigest, ItemHasher},
    progress::Meter,
    retry::retried,
    stores::Stores,
    table::{Lifetime, Treatment, group_of, treatment_of},
};

/// The compared records.
#[derive(Debug, Default)]
pub(crate) struct ComparedRecords {
    /// The number of records by row of the table.
    pub(crate) counts: BTreeMap<String, u64>,
    /// The number of records of the source that are not copied, by row of the table.
    pub(crate) left_out: BTreeMap<String, u64>,
    pub(crate) checksum: Checksum,
}

/// Compares all records in the order of their keys. A record that has expired on one side may be absent there.
///
/// # Errors
/// `Different`, with the first key whose record differs.
pub(crate) async fn compare(
    source: &Stores,
    target: &Stores,
    options: &MigrateOptions,
    meter: &Meter<'_>,
) -> Result<ComparedRecords> {
    let mut compared = ComparedRecords::default();
    let mut sums = Checksums::default();
    let mut sources = Reader::new(&*source.state, options, "read source records");
    let mut targets = Reader::new(&*target.state, options, "read target records");
    let (mut left, mut right) = (sources.next().await?, targets.next().await?);
    loop {
        let order = match (&left, &right) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((left, _)), Some((right, _))) => left.cmp(right),
        };
        let (ours, theirs) = match order {
            Ordering::Less => (left.take(), None),
            Ordering::Greater => (None, right.take()),
            Ordering::Equal => (left.take(), right.take()),
        };
        compared.add(&mut sums, ours.as_ref(), theirs.as_ref(), meter)?;
        if order.is_le() {
            left = sources.next().await?;
        }
        if order.is_ge() {
            right = targets.next().await?;
        }
    }
    compared.checksum = sums.equal("records")?;
    Ok(compared)
}

impl ComparedRecords {
    /// Compares the records of one key.
    fn add(
        &mut self,
        sums: &mut Checksums,
        source: Option<&(Key, Record)>,
        target: Option<&(Key, Record)>,
        meter: &Meter<'_>,
    ) -> Result<()> {
        let Some((key, record)) = source.or(target) else { return Ok(()) };
        let treatment = treatment_of(key);
        if treatment == Treatment::LeaveOut {
            if source.is_some() {
                *self.left_out.entry(group_of(key).to_owned()).or_default() += 1;
            }
            return Ok(());
        }
        let is_over = treatment.lifetime(key, &record.value, OffsetDateTime::now_utc()) == Lifetime::Over;
        match (source, target) {
            (Some((_, source)), Some((_, target))) => {
                if source.value != target.value {
                    let [source, target] = [source, target].map(|record| summary(&record.value));
                    return Err(different(format!(
                        "record {key} is {source} in the source and {target} in the target"
                    )));
                }
                sums.source.add(&digest(key, source));
                sums.target.add(&digest(key, target));
                *self.counts.entry(group_of(key).to_owned()).or_default() += 1;
                meter.add(1, 0);
                Ok(())
            }
            (Some(_), _) if is_over => Ok(()),
            (Some(_), _) => Err(different(format!("record {key} is missing in the target"))),
            // It expired in the source since it was copied.
            (None, _) if treatment.expires() => Ok(()),
            (None, _) => Err(different(format!("record {key} is in the target and not in the source"))),
        }
    }
}

fn digest(key: &str, record: &Record) -> ItemDigest {
    let mut hasher = ItemHasher::default();
    hasher.bytes(key.as_bytes());
    hasher.bytes(&record.value);
    hasher.finish()
}

/// A value as messages show it: values may contain secrets.
fn summary(value: &[u8]) -> String {
    let digest: String = hex(&Sha256::digest(value)).chars().take(12).collect();
    format!("{} bytes with SHA-256 {digest}…", value.len())
}

/// The records of a store one by one.
struct Reader<'a> {
    state: &'a dyn StateStore,
    options: &'a MigrateOptions,
    operation: &'static str,
    page: vec::IntoIter<(Key, Record)>,
    after: Option<Key>,
}

impl<'a> Reader<'a> {
    fn new(state: &'a dyn StateStore, options: &'a MigrateOptions, operation: &'static str) -> Self {
        Self { state, options, operation, page: Vec::new().into_iter(), after: None }
    }

    async fn next(&mut self) -> Result<Option<(Key, Record)>> {
        if let Some(next) = self.page.next() {
            return Ok(Some(next));
        }
        let Self { state, options, after, .. } = self;
        let page = retried(options.retry_for, self.operation, || {
            state.scan("", after.as_deref(), ScanOrder::Ascending, options.records_per_batch)
        });
        let page = page.await?;
        self.after = page.last().map(|(key, _)| key.clone()).or_else(|| self.after.take());
        self.page = page.into_iter();
        Ok(self.page.next())
    }
}
