use bytes::Bytes;
use lkr_state::{Expect, Key, ScanOrder, Write};
use time::OffsetDateTime;

use crate::{
    MigrateOptions, Result,
    marker::{Marker, Step},
    progress::{Meter, Phase, ProgressSink},
    retry::retried,
    stores::Stores,
    table::{Lifetime, treatment_of},
};

/// The bytes of values in one step, if no single record has more.
const STEP_BYTES: usize = 1 << 20;

/// Copies the records in the order of their keys, from the marker's place on.
pub(crate) async fn copy(
    source: &Stores,
    marker: &mut Marker<'_>,
    options: &MigrateOptions,
    sink: ProgressSink<'_>,
) -> Result<()> {
    let (mut after, mut done) = match marker.step() {
        Step::Records { after, done } => (after.clone(), *done),
        _ => (None, 0),
    };
    let meter = Meter::begin(sink, Phase::Records, Some(marker.fingerprint().records), done);
    loop {
        let page = retried(options.retry_for, "read source records", || {
            source.state.scan("", after.as_deref(), ScanOrder::Ascending, options.records_per_batch)
        });
        let page = page.await?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        let last = last.clone();
        let records = page.into_iter().map(|(key, record)| (key, record.value));
        for writes in copies(records, OffsetDateTime::now_utc()) {
            done += writes.len() as u64;
            let step = Step::Records { after: writes.last().map(|write| write.key.clone()), done };
            meter.add(writes.len() as u64, 0);
            marker.advance(step, writes).await?;
        }
        after = Some(last);
    }
}

/// The steps that write copies of records into another store at the time `now`, each with at most 1 MiB of values or with one
/// record. What [`TABLE`](crate::TABLE) leaves out is missing.
#[must_use]
pub fn copies(records: impl IntoIterator<Item = (Key, Bytes)>, now: OffsetDateTime) -> Vec<Vec<Write>> {
    split(records.into_iter().filter_map(|(key, value)| write(key, value, now)).collect())
}

/// The write of a record's copy; `None` if it is left out.
fn write(key: Key, value: Bytes, now: OffsetDateTime) -> Option<Write> {
    match treatment_of(&key).lifetime(&key, &value, now) {
        Lifetime::ForEver => Some(Write::put(key, Expect::Any, value)),
        Lifetime::For(ttl) => Some(Write::put_for(key, Expect::Any, value, ttl)),
        Lifetime::Over => None,
    }
}

/// Steps of a bounded size.
fn split(writes: Vec<Write>) -> Vec<Vec<Write>> {
    let (mut steps, mut bytes) = (Vec::<Vec<Write>>::new(), 0);
    for write in writes {
        let size = match &write.op {
            lkr_state::Op::Put { value, .. } => value.len(),
            _ => 0,
        };
        match steps.last_mut().filter(|_| bytes + size <= STEP_BYTES) {
            Some(step) => {
                bytes += size;
                step.push(write);
            }
            None => {
                bytes = size;
                steps.push(vec![write]);
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_values_are_written_in_several_steps() {
        let put = |n: usize| Write::put("key", Expect::Any, vec![0; n]);
        let sizes = |writes| split(writes).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(vec![put(10), put(STEP_BYTES), put(10), put(20)]), [1, 1, 2]);
        assert_eq!(sizes(vec![put(STEP_BYTES / 2), put(STEP_BYTES / 2), put(1)]), [2, 1]);
        assert!(split(Vec::new()).is_empty());
    }
}
