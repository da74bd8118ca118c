//! What a process and the processes that it started use.

use std::time::Duration;

/// Memory and processor time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Resident memory in bytes.
    pub(crate) resident: u64,
    /// Processor time, with that of descendants that have ended and were waited for.
    pub(crate) processor: Duration,
}

/// How many generations of processes are counted: worker, OCR process, OCR program.
#[cfg(target_os = "linux")]
const GENERATIONS: usize = 3;

/// The usage of a process and its descendants; nothing where it cannot be determined.
#[cfg(target_os = "linux")]
pub(crate) fn usage(id: u32) -> Usage {
    let (mut total, mut generation) = (Usage::default(), vec![id]);
    for _ in 0..GENERATIONS {
        for usage in generation.iter().filter_map(|id| usage_of_process(*id)) {
            total.resident += usage.resident;
            total.processor += usage.processor;
        }
        generation = generation.into_iter().flat_map(children).collect();
    }
    total
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn usage(_: u32) -> Usage {
    Usage::default()
}

#[cfg(target_os = "linux")]
fn children(id: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

#[cfg(target_os = "linux")]
fn usage_of_process(id: u32) -> Option<Usage> {
    parse_stat(&std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

/// Parses `/proc/<id>/stat`, whose fields are described in proc_pid_stat(5).
#[cfg(target_os = "linux")]
fn parse_stat(stat: &str) -> Option<Usage> {
    /// The first of four fields: time in user mode, in the kernel, and both of the children; counted from the field after
    /// the name, which is in parentheses and may contain anything.
    const FIRST_TIME: usize = 11;
    const RESIDENT_PAGES: usize = 21;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let ticks: u64 = (FIRST_TIME..FIRST_TIME + 4).filter_map(field).sum();
    let milliseconds = ticks.saturating_mul(1_000) / rustix::param::clock_ticks_per_second().max(1);
    Some(Usage {
        resident: field(RESIDENT_PAGES)?.saturating_mul(rustix::param::page_size() as u64),
        processor: Duration::from_millis(milliseconds),
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let stat = "7 (a) b) (c) R 1 7 7 0 -1 4194560 93 0 0 0 5 6 7 8 20 0 1 0 9 3133440 190 18446744";
        let ticks = rustix::param::clock_ticks_per_second();
        let expected = Usage {
            resident: 190 * rustix::param::page_size() as u64,
            processor: Duration::from_millis(26 * 1_000 / ticks),
        };
        assert_eq!(parse_stat(stat), Some(expected));
        assert_eq!(parse_stat("7 (a) R"), None);
    }

    #[test]
    fn usage_of_this_process_is_found() {
        assert!(usage(std::process::id()).resident > 0);
    }
}
