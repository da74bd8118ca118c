//! What the kernel tells of the process, on Linux.

/// The state of the process. What is unknown is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ProcessStatus {
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) open_files: Option<u64>,
    /// The processor time of all threads, in seconds.
    pub(crate) processor_seconds: Option<f64>,
    /// The start, in seconds since 1970.
    pub(crate) started: Option<f64>,
}

impl ProcessStatus {
    /// Reads the state of this process.
    #[cfg(target_os = "linux")]
    pub(crate) fn read() -> Self {
        linux::read().unwrap_or_default()
    }

    /// Reads the state of this process.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn read() -> Self {
        Self::default()
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    use rustix::param::{clock_ticks_per_second, page_size};

    use super::ProcessStatus;

    pub(super) fn read() -> Option<ProcessStatus> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let boot = fs::read_to_string("/proc/stat").ok().as_deref().and_then(boot_time);
        let ProcessFields { user_ticks, system_ticks, start_ticks, resident_pages } = fields(&stat)?;
        let seconds = |ticks: u64| ticks as f64 / clock_ticks_per_second() as f64;
        Some(ProcessStatus {
            resident_bytes: Some(resident_pages * page_size() as u64),
            open_files: open_files(),
            processor_seconds: Some(seconds(user_ticks + system_ticks)),
            started: boot.map(|boot| boot as f64 + seconds(start_ticks)),
        })
    }

    /// The number of open files: since Linux 6.2 the size of the folder that lists them, which only its owner may list.
    fn open_files() -> Option<u64> {
        const FOLDER: &str = "/proc/self/fd";
        let size = fs::metadata(FOLDER).ok()?.len();
        // The listing has the folder itself open.
        let listed = || fs::read_dir(FOLDER).ok().map(|files| files.count().saturating_sub(1) as u64);
        if size > 0 { Some(size) } else { listed() }
    }

    struct ProcessFields {
        user_ticks: u64,
        system_ticks: u64,
        start_ticks: u64,
        resident_pages: u64,
    }

    /// Some of the fields of `/proc/self/stat`, counted as in proc_pid_stat(5). The second field, the name of the program,
    /// is in parentheses and may contain any character.
    fn fields(stat: &str) -> Option<ProcessFields> {
        let (_, after_name) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = after_name.split(' ').collect();
        let field = |number: usize| fields.get(number - 3)?.parse().ok();
        Some(ProcessFields {
            user_ticks: field(14)?,
            system_ticks: field(15)?,
            start_ticks: field(22)?,
            resident_pages: field(24)?,
        })
    }

    /// The line `btime` of `/proc/stat`.
    fn boot_time(stat: &str) -> Option<u64> {
        stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
    }

    #[cfg(test)]
    mod tests {
        use std::time::{SystemTime, UNIX_EPOCH};

        use super::*;

        #[test]
        fn status_tells_the_memory_and_the_start_of_this_process() {
            let status = read().unwrap();
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
            let started = status.started.unwrap();
            assert!(started <= now + 1.0 && started > now - 86_400.0, "{started} {now}");
            let grows = |_| {
                let before = read().unwrap().resident_bytes.unwrap();
                let held = vec![1_u8; 64 << 20];
                let grown = read().unwrap().resident_bytes.unwrap();
                drop(held);
                grown >= before + (48 << 20)
            };
            assert!((0..20).any(grows), "other tests free memory, too");
        }

        #[test]
        fn open_files_are_counted() {
            let before = open_files().unwrap();
            let files: Vec<_> = (0..20).map(|_| fs::File::open("/proc/self/stat").unwrap()).collect();
            assert!(open_files().unwrap() >= before + 10, "other tests open and close files too");
            drop(files);
        }

        #[test]
        fn name_of_the_program_may_contain_anything() {
            let stat = format!("7 (a b) c) S{}", " 5".repeat(40));
            assert_eq!(fields(&stat).unwrap().resident_pages, 5);
            assert!(fields("7 (x) S 1 2").is_none());
            assert_eq!(boot_time("cpu 1\nbtime 17\n"), Some(17));
        }
    }
}
