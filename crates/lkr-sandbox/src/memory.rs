//! The memory usage of a process.

/// The resident memory of a process and its children in bytes; `None` if it cannot be determined.
#[cfg(target_os = "linux")]
pub(crate) fn resident_bytes(pid: u32) -> Option<u64> {
    let of_process = resident_bytes_of_process(pid)?;
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let of_children =
        children.split_whitespace().filter_map(|child| resident_bytes_of_process(child.parse().ok()?));
    Some(of_process + of_children.sum::<u64>())
}

#[cfg(target_os = "linux")]
fn resident_bytes_of_process(pid: u32) -> Option<u64> {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// The resident memory of a process in bytes; `None` if it cannot be determined.
#[cfg(not(target_os = "linux"))]
pub(crate) fn resident_bytes(_: u32) -> Option<u64> {
    None
}
