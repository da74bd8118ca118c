//! Recording: a file of lines per process, which remains readable whenever the process is killed.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::{Call, Operation, Outcome};

const SUFFIX: &str = "jsonl";

/// The machine's monotonic clock in nanoseconds. All processes see the same clock, and libraries that show a process another
/// time do not change it, because it is read without the C library.
#[must_use]
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    seconds.unwrap_or_default() * 1_000_000_000 + nanos.unwrap_or_default()
}

/// Records the calls of one process. Calls may overlap.
#[derive(Debug)]
pub struct Recorder {
    file: File,
    next: AtomicU64,
}

/// A line of a file.
#[derive(Serialize, Deserialize)]
enum Line {
    Begin { number: u64, at: u64, call: Call },
    End { number: u64, at: u64, outcome: Outcome },
}

impl Recorder {
    /// Records into a new file in `folder`, which is named after the process.
    pub fn create(folder: &Path, process: u32) -> io::Result<Self> {
        let path = folder.join(format!("{process}.{SUFFIX}"));
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        Ok(Self { file, next: AtomicU64::new(0) })
    }

    /// Records that a call begins; to be called before it. Returns its number.
    pub fn begin(&self, call: Call) -> io::Result<u64> {
        let (number, at) = (self.next.fetch_add(1, Ordering::Relaxed), now());
        self.append(&Line::Begin { number, at, call })?;
        Ok(number)
    }

    /// Records the outcome of a call; to be called after it.
    pub fn end(&self, number: u64, outcome: Outcome) -> io::Result<()> {
        self.append(&Line::End { number, at: now(), outcome })
    }

    /// One write per line, so that calls that overlap do not mix their lines.
    fn append(&self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        (&self.file).write_all(&text)
    }
}

/// The operations that the processes recorded in `folder` until the time `until`, by their start. The processes may still run
/// if that time is not in the future. Claims that found nothing, and reads without an answer, say nothing and are left out.
pub fn load(folder: &Path, until: u64) -> io::Result<Vec<Operation>> {
    let mut operations = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let process = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        if let (Some(process), true) =
            (process, path.extension().is_some_and(|extension| extension == SUFFIX))
        {
            operations.extend(parse(&fs::read(&path)?, process, until)?);
        }
    }
    operations.sort_by_key(|operation| operation.start);
    Ok(operations)
}

/// The operations in a file. What follows the last end of a line was cut off by a kill.
fn parse(text: &[u8], process: u32, until: u64) -> io::Result<Vec<Operation>> {
    let mut operations = BTreeMap::new();
    for line in text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        match serde_json::from_slice(line)? {
            Line::Begin { number, at, call } if at <= until => {
                let operation = Operation { process, start: at, end: None, call, outcome: Outcome::Unknown };
                operations.insert(number, operation);
            }
            Line::End { number, at, outcome } if at <= until => {
                let unknown = || io::Error::new(io::ErrorKind::InvalidData, "an end without its beginning");
                let operation = operations.get_mut(&number).ok_or_else(unknown)?;
                let is_known = !matches!(outcome, Outcome::Unknown | Outcome::Failed(_));
                operation.end = is_known.then_some(at);
                operation.outcome = outcome;
            }
            _ => {}
        }
    }
    Ok(operations.into_values().filter(says_something).collect())
}

fn says_something(operation: &Operation) -> bool {
    match operation.call {
        Call::Read(_) => matches!(operation.outcome, Outcome::Found(_) | Outcome::Failed(_)),
        _ => operation.outcome != Outcome::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seen;

    fn read(keys: &[&str]) -> Call {
        Call::Read(keys.iter().map(|key| (*key).to_owned()).collect())
    }

    #[test]
    fn overlapping_calls_are_loaded_with_their_outcomes() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::create(folder.path(), 7).unwrap();
        let first = recorder.begin(Call::Enqueue("t".to_owned())).unwrap();
        let second = recorder.begin(read(&["a"])).unwrap();
        let found = Outcome::Found(vec![Some(Seen { version: 3, value: "v".to_owned() })]);
        recorder.end(second, found.clone()).unwrap();
        recorder.end(first, Outcome::Done).unwrap();
        let unanswered = recorder.begin(Call::Claim { lease_ms: 5 }).unwrap();
        recorder.end(unanswered, Outcome::Unknown).unwrap();
        let loaded = load(folder.path(), u64::MAX).unwrap();
        let outcomes: Vec<_> = loaded.iter().map(|operation| operation.outcome.clone()).collect();
        assert_eq!(outcomes, [Outcome::Done, found, Outcome::Unknown]);
        assert!(loaded[0].start < loaded[1].start && loaded[1].end < loaded[0].end);
        assert_eq!(loaded[2].end, None, "a call without an answer has no end");
        assert!(loaded.iter().all(|operation| operation.process == 7));
        let earlier = load(folder.path(), loaded[1].end.unwrap()).unwrap();
        assert_eq!((earlier.len(), &earlier[0].outcome), (2, &Outcome::Unknown), "it had not ended then");
    }

    #[test]
    fn killed_process_leaves_its_last_call_with_unknown_outcome() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::create(folder.path(), 1).unwrap();
        recorder.begin(Call::Enqueue("t".to_owned())).unwrap();
        let path = folder.path().join("1.jsonl");
        let mut text = fs::read(&path).unwrap();
        text.extend_from_slice(b"{\"End\":{\"numb");
        fs::write(&path, text).unwrap();
        let loaded = load(folder.path(), u64::MAX).unwrap();
        assert_eq!((loaded.len(), &loaded[0].outcome), (1, &Outcome::Unknown));
    }
}
