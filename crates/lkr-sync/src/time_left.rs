use std::time::Duration;

/// The number of intervals that the whole work is measured in.
const INTERVALS: u64 = 200;
/// Fewer intervals than this do not tell what a file and what a byte costs.
const FEWEST: u64 = 8;

/// Estimates the remaining time of a run from the files that are done.
///
/// The time of a file is taken as a constant and a part that grows with its bytes; both are fitted by least squares. It
/// relies on the order of [`Plan::uploads`](crate::Plan::uploads).
#[derive(Debug, Clone)]
pub struct TimeLeft {
    left: Work,
    done: Work,
    elapsed: f64,
    interval: Work,
    interval_begin: f64,
    step: f64,
    sums: Sums,
}

/// Files and their bytes, in units that make both numbers similar.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    files: f64,
    mebibytes: f64,
}

/// The sums of the normal equations.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    intervals: u64,
    files_files: f64,
    files_bytes: f64,
    bytes_bytes: f64,
    files_time: f64,
    bytes_time: f64,
}

/// Seconds for each unit of work.
#[derive(Debug, Clone, Copy)]
struct Costs {
    file: f64,
    mebibyte: f64,
}

impl TimeLeft {
    /// An estimate for so much work.
    #[must_use]
    pub fn new(files: u64, bytes: u64) -> Self {
        Self {
            left: Work::new(files, bytes),
            done: Work::default(),
            elapsed: 0.0,
            interval: Work::default(),
            interval_begin: 0.0,
            step: (files / INTERVALS).max(1) as f64,
            sums: Sums::default(),
        }
    }

    /// Notes that there is more work than was known.
    pub fn add(&mut self, files: u64, bytes: u64) {
        self.left = self.left.plus(Work::new(files, bytes));
    }

    /// Notes that a file of this size is done, `elapsed` after the beginning.
    pub fn done(&mut self, elapsed: Duration, bytes: u64) {
        let work = Work::new(1, bytes);
        self.left = self.left.minus(work);
        self.done = self.done.plus(work);
        self.interval = self.interval.plus(work);
        self.elapsed = elapsed.as_secs_f64();
        if self.interval.files >= self.step {
            self.sums.add(self.interval, self.elapsed - self.interval_begin);
            self.interval = Work::default();
            self.interval_begin = self.elapsed;
        }
    }

    /// The remaining time, or `None` if nothing is done yet.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        let costs = self.sums.costs().unwrap_or_else(|| self.equal_shares());
        let spent = costs.of(self.done);
        if spent <= 0.0 {
            return None;
        }
        Duration::try_from_secs_f64(self.elapsed * costs.of(self.left) / spent).ok()
    }

    /// Costs by which all files together take as long as all bytes together.
    fn equal_shares(&self) -> Costs {
        let all = self.left.plus(self.done);
        Costs { file: 1.0 / all.files.max(1.0), mebibyte: 1.0 / all.mebibytes.max(f64::MIN_POSITIVE) }
    }
}

impl Work {
    fn new(files: u64, bytes: u64) -> Self {
        Self { files: files as f64, mebibytes: bytes as f64 / f64::from(1 << 20) }
    }

    fn plus(self, other: Self) -> Self {
        Self { files: self.files + other.files, mebibytes: self.mebibytes + other.mebibytes }
    }

    /// Not less than nothing: a file that changed may be larger than it was.
    fn minus(self, other: Self) -> Self {
        Self {
            files: (self.files - other.files).max(0.0),
            mebibytes: (self.mebibytes - other.mebibytes).max(0.0),
        }
    }
}

impl Sums {
    fn add(&mut self, work: Work, seconds: f64) {
        self.intervals += 1;
        self.files_files += work.files * work.files;
        self.files_bytes += work.files * work.mebibytes;
        self.bytes_bytes += work.mebibytes * work.mebibytes;
        self.files_time += work.files * seconds;
        self.bytes_time += work.mebibytes * seconds;
    }

    /// The costs that fit best and are not negative.
    fn costs(&self) -> Option<Costs> {
        if self.intervals < FEWEST || self.bytes_bytes <= 0.0 {
            return None;
        }
        let determinant = self.files_files * self.bytes_bytes - self.files_bytes * self.files_bytes;
        let file = self.files_time * self.bytes_bytes - self.bytes_time * self.files_bytes;
        let mebibyte = self.bytes_time * self.files_files - self.files_time * self.files_bytes;
        // Intervals with the same mix of files and bytes cannot tell the costs apart.
        if determinant <= 1e-9 * self.files_files * self.bytes_bytes || file < 0.0 {
            return Some(Costs { file: 0.0, mebibyte: self.bytes_time / self.bytes_bytes });
        }
        if mebibyte < 0.0 {
            return Some(Costs { file: self.files_time / self.files_files, mebibyte: 0.0 });
        }
        Some(Costs { file: file / determinant, mebibyte: mebibyte / determinant })
    }
}

impl Costs {
    fn of(self, work: Work) -> f64 {
        self.file * work.files + self.mebibyte * work.mebibytes
    }
}

#[cfg(test)]
mod tests;
