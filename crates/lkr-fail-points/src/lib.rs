#![doc = include_str!("../README.md")]

/// Whether this build can be told to end.
pub const ENABLED: bool = cfg!(feature = "armed");

/// Ends the process where it was told to end here.
#[inline]
pub fn reach(point: &str) {
    #[cfg(feature = "armed")]
    armed::reach(point);
    #[cfg(not(feature = "armed"))]
    let _ = point;
}

/// Has the process end when a point is reached for the n-th time from now on: `<point>:<n>`, with n from 1 on. Answers
/// whether it will; it does not where it was told before, or not like that.
pub fn arm(told: &str) -> bool {
    #[cfg(feature = "armed")]
    return armed::arm(told);
    #[cfg(not(feature = "armed"))]
    {
        let _ = told;
        false
    }
}

#[cfg(feature = "armed")]
mod armed {
    use std::sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    };

    use rustix::process::{Signal, getpid, kill_process};

    struct Armed {
        point: String,
        left: AtomicU64,
    }

    static ARMED: OnceLock<Armed> = OnceLock::new();

    pub(super) fn arm(told: &str) -> bool {
        let parts = told.split_once(':').and_then(|(point, n)| Some((point, n.parse::<u64>().ok()?)));
        let Some((point, n @ 1..)) = parts else { return false };
        ARMED.set(Armed { point: point.to_owned(), left: AtomicU64::new(n) }).is_ok()
    }

    pub(super) fn reach(point: &str) {
        let Some(armed) = ARMED.get().filter(|armed| armed.point == point) else { return };
        if armed.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }
}
