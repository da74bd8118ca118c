#![doc = include_str!("../README.md")]

/// Whether fail points can be armed in this build.
pub const ENABLED: bool = cfg!(feature = "armed");

/// Kills the process if this point is armed and its count is reached.
#[inline]
pub fn reach(point: &str) {
    #[cfg(feature = "armed")]
    armed::reach(point);
    #[cfg(not(feature = "armed"))]
    let _ = point;
}

/// Arms a point: `<point>:<n>` kills the process when the point is reached for the n-th time from now on (n ≥ 1). Returns
/// `false` if a point was armed before or `spec` has another form.
pub fn arm(spec: &str) -> bool {
    #[cfg(feature = "armed")]
    return armed::arm(spec);
    #[cfg(not(feature = "armed"))]
    {
        let _ = spec;
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
        remaining: AtomicU64,
    }

    static ARMED: OnceLock<Armed> = OnceLock::new();

    pub(super) fn arm(spec: &str) -> bool {
        let parts = spec.split_once(':').and_then(|(point, n)| Some((point, n.parse::<u64>().ok()?)));
        let Some((point, n @ 1..)) = parts else { return false };
        ARMED.set(Armed { point: point.to_owned(), remaining: AtomicU64::new(n) }).is_ok()
    }

    pub(super) fn reach(point: &str) {
        let Some(armed) = ARMED.get().filter(|armed| armed.point == point) else { return };
        if armed.remaining.fetch_sub(1, Ordering::SeqCst) == 1 {
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }
}
