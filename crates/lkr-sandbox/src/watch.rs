//! How much memory a process uses.

/// The bytes of memory that the process of this id has in use, with those that it started; `None` where that cannot
/// be told.
#[cfg(target_os = "linux")]
pub(crate) fn resident(pid: u32) -> Option<u64> {
    let own = resident_alone(pid)?;
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let started = children.split_whitespace().filter_map(|child| resident_alone(child.parse().ok()?));
    Some(own + started.sum::<u64>())
}

#[cfg(target_os = "linux")]
fn resident_alone(pid: u32) -> Option<u64> {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// The bytes of memory that the process of this id has in use; `None` where that cannot be told.
#[cfg(not(target_os = "linux"))]
pub(crate) fn resident(_: u32) -> Option<u64> {
    None
}
