//! Keeps the memory of the process small, where the C library is GNU's. By itself that one makes up to eight pools of
//! memory for each core, because many threads come and go here, and what is freed in a pool serves no thread of
//! another and stays with the process.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod gnu {
    use std::{fs, num::NonZero, thread, time::Duration};

    /// How often the process looks at its memory.
    const ROUND: Duration = Duration::from_secs(5);

    /// By how many pages it must have grown for a look at what is free to be worth it: 32 MiB of the usual pages.
    const GROWN: u64 = 8_192;

    /// What changes by fewer pages rests.
    const STILL: u64 = 128;

    /// Bounds the number of pools, and from now on gives back what is free in them.
    pub(crate) fn keep_small() {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        #[expect(unsafe_code, reason = "the C library's own interface")]
        // SAFETY: the call takes numbers alone, and no other thread runs yet. Where it is refused, nothing changes.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, cores.clamp(2, 8) as libc::c_int);
        }
        // Without the thread, memory is only larger than it need be.
        let _ = thread::Builder::new().name("lkr-memory".to_owned()).spawn(give_back);
    }

    /// Looks for what is free whenever the process has grown, and once when it comes to rest.
    fn give_back() {
        let mut last = pages().unwrap_or_default();
        let (mut least, mut was_busy) = (last, false);
        loop {
            thread::sleep(ROUND);
            let Some(now) = pages() else { return };
            let rests = now.abs_diff(last) < STILL;
            if now > least + GROWN || (rests && was_busy) {
                #[expect(unsafe_code, reason = "the C library's own interface")]
                // SAFETY: it may be called at any time, by any thread.
                unsafe {
                    libc::malloc_trim(0);
                }
                last = pages().unwrap_or(now);
                (least, was_busy) = (last, !rests);
            } else {
                (last, least, was_busy) = (now, least.min(now), was_busy || !rests);
            }
        }
    }

    /// How many pages of memory the process has of its own, those of files not counted.
    fn pages() -> Option<u64> {
        let text = fs::read_to_string("/proc/self/statm").ok()?;
        let mut numbers = text.split_whitespace().skip(1).map(str::parse::<u64>);
        let (resident, of_files) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(resident.saturating_sub(of_files))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn pages_are_counted() {
            let before = pages().unwrap();
            let held = vec![1_u8; 256 << 20];
            let during = pages().unwrap();
            assert!(during > before + GROWN, "{before} {during}");
            drop(held);
        }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) use gnu::keep_small;

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) const fn keep_small() {}
