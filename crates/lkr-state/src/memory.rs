mod dump;
mod queue;
mod state;

pub use self::{queue::MemoryQueue, state::MemoryState};

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use super::{MemoryQueue, MemoryState};
    use crate::{ErrorKind, StateStore, TaskQueue};

    async fn state() -> (Arc<dyn StateStore>, ()) {
        (Arc::new(MemoryState::new()), ())
    }

    async fn copy(folder: &Path) -> (Arc<dyn StateStore>, ()) {
        (Arc::new(MemoryState::open_snapshot(folder).unwrap()), ())
    }

    async fn queue() -> (Arc<dyn TaskQueue>, ()) {
        (Arc::new(MemoryQueue::new()), ())
    }

    #[test]
    fn open_snapshot_without_a_valid_file_fails() {
        let folder = tempfile::tempdir().unwrap();
        let kind = || MemoryState::open_snapshot(folder.path()).unwrap_err().kind();
        assert_eq!(kind(), ErrorKind::Internal);
        for text in ["", "{}", r#"{"format":2,"version":0,"records":[]}"#] {
            std::fs::write(folder.path().join("state.json"), text).unwrap();
            assert_eq!(kind(), ErrorKind::Corrupt, "{text}");
        }
    }

    mod state_suite {
        crate::state_store_suite!(super::state(), copy: super::copy);
    }

    mod queue_suite {
        crate::task_queue_suite!(super::queue());
    }
}
