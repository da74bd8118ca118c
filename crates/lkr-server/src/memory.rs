//! Limits the memory of the process with the GNU C library. The library creates up to eight arenas for each core, since
//! many threads come and go here. Memory freed in one arena serves no thread of another, and stays with the process.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod gnu {
    use std::{fs, num::NonZero, thread, time::Duration};

    /// How often the process reads its memory size.
    const CHECK_INTERVAL: Duration = Duration::from_secs(5);

    /// The growth in pages after which free memory is returned: 32 MiB of 4-KiB pages.
    const GROWTH_PAGES: u64 = 8_192;

    /// A process whose size changes by fewer pages is idle.
    const IDLE_PAGES: u64 = 128;

    /// Limits the number of arenas, and starts a thread that returns their free memory to the system.
    pub(crate) fn limit_memory() {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        #[expect(unsafe_code, reason = "the C library's own interface")]
        // SAFETY: the call takes numbers only, and no other thread runs yet. If it fails, nothing changes.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, cores.clamp(2, 8) as libc::c_int);
        }
        // Without the thread the process only uses more memory.
        let _ = thread::Builder::new().name("lkr-memory".to_owned()).spawn(trim_memory);
    }

    /// Returns free memory whenever the process has grown, and once when it becomes idle.
    fn trim_memory() {
        let mut last = anonymous_pages().unwrap_or_default();
        let (mut minimum, mut was_busy) = (last, false);
        loop {
            thread::sleep(CHECK_INTERVAL);
            let Some(now) = anonymous_pages() else { return };
            let is_idle = now.abs_diff(last) < IDLE_PAGES;
            if now > minimum + GROWTH_PAGES || (is_idle && was_busy) {
                #[expect(unsafe_code, reason = "the C library's own interface")]
                // SAFETY: any thread may call it at any time.
                unsafe {
                    libc::malloc_trim(0);
                }
                last = anonymous_pages().unwrap_or(now);
                (minimum, was_busy) = (last, !is_idle);
            } else {
                (last, minimum, was_busy) = (now, minimum.min(now), was_busy || !is_idle);
            }
        }
    }

    /// The number of resident pages of the process, without pages of files.
    fn anonymous_pages() -> Option<u64> {
        let text = fs::read_to_string("/proc/self/statm").ok()?;
        let mut numbers = text.split_whitespace().skip(1).map(str::parse::<u64>);
        let (resident, file_backed) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(resident.saturating_sub(file_backed))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn anonymous_pages_grow_with_an_allocation() {
            let before = anonymous_pages().unwrap();
            let allocation = vec![1_u8; 256 << 20];
            let during = anonymous_pages().unwrap();
            assert!(during > before + GROWTH_PAGES, "{before} {during}");
            drop(allocation);
        }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) use gnu::limit_memory;

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) const fn limit_memory() {}
