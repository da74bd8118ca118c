use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use lkr_domain::TaskId;
use tokio::task::spawn_blocking;

use crate::{Claim, ErrorKind, Lane, Result, TaskQueue, Work};

/// A queue of several processes whose claims this process records in a folder. If it is killed, the next process with the same
/// folder returns those tasks to the queue at once, before their leases expire.
///
/// Each claim is an empty file whose name is its task and token. The files need not be durable: without its file, a task waits
/// until its lease expires, and a file of a claim that is no longer valid changes nothing.
#[derive(Debug)]
pub struct RememberedClaims {
    queue: Arc<dyn TaskQueue>,
    folder: PathBuf,
}

impl RememberedClaims {
    /// Opens the folder, which is created if it does not exist, and returns the tasks of the claims in it to the queue. The
    /// caller makes sure that no other process uses the folder.
    ///
    /// If the queue fails to take a task back, its file stays, and the task is claimable once its lease expires.
    ///
    /// # Errors
    /// The folder cannot be created or read.
    pub async fn open(queue: Arc<dyn TaskQueue>, folder: PathBuf) -> io::Result<Self> {
        let claims = in_background(folder.clone(), |folder| read(&folder)).await?;
        let remembered = Self { queue, folder };
        let mut returned = 0_usize;
        for claim in claims {
            match remembered.retry(&claim, Duration::ZERO).await {
                Ok(()) => returned += 1,
                Err(error) if error.kind() == ErrorKind::LeaseLost => {}
                Err(error) => {
                    tracing::warn!(task = %claim.task, %error, "cannot return a task to the queue; it waits until its lease expires");
                }
            }
        }
        if returned > 0 {
            tracing::info!(tasks = returned, "returned the tasks of a killed process to the queue");
        }
        Ok(remembered)
    }

    async fn remember(&self, claim: &Claim) {
        let path = self.folder.join(file_name(claim));
        if let Err(error) = in_background(path, |path| fs::write(path, [])).await {
            tracing::warn!(task = %claim.task, %error, "cannot record a claim; after a kill its task waits until the lease expires");
        }
    }

    /// Deletes the file of a claim if `result` says that the claim ended or is no longer valid.
    async fn forget<T: Send>(&self, claim: &Claim, result: Result<T>) -> Result<T> {
        if result.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::LeaseLost) {
            let path = self.folder.join(file_name(claim));
            match in_background(path, fs::remove_file).await {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(task = %claim.task, %error, "cannot delete the file of a claim that ended");
                }
                _ => {}
            }
        }
        result
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl TaskQueue for RememberedClaims {
    async fn enqueue(&self, task: TaskId, work: Work, delay: Duration) -> Result<()> {
        self.queue.enqueue(task, work, delay).await
    }

    async fn push(&self, task: TaskId, delay: Duration) -> Result<()> {
        self.queue.push(task, delay).await
    }

    async fn claim_in(&self, lane: Lane, lease: Duration, wait: Duration) -> Result<Option<Claim>> {
        let claim = self.queue.claim_in(lane, lease, wait).await?;
        if let Some(claim) = &claim {
            self.remember(claim).await;
        }
        Ok(claim)
    }

    async fn claim(&self, lease: Duration, wait: Duration) -> Result<Option<Claim>> {
        self.claim_in(Lane::Any, lease, wait).await
    }

    async fn heartbeat(&self, claim: &Claim, lease: Duration) -> Result<()> {
        self.queue.heartbeat(claim, lease).await
    }

    async fn finish(&self, claim: &Claim) -> Result<()> {
        let result = self.queue.finish(claim).await;
        self.forget(claim, result).await
    }

    async fn retry(&self, claim: &Claim, delay: Duration) -> Result<()> {
        let result = self.queue.retry(claim, delay).await;
        self.forget(claim, result).await
    }

    async fn remove(&self, task: TaskId) -> Result<bool> {
        self.queue.remove(task).await
    }

    async fn len(&self) -> Result<u64> {
        self.queue.len().await
    }

    async fn flows(&self) -> Result<HashMap<String, u64>> {
        self.queue.flows().await
    }

    async fn oldest(&self) -> Result<Option<TaskId>> {
        self.queue.oldest().await
    }

    async fn health(&self) -> Result<()> {
        self.queue.health().await
    }
}

fn file_name(claim: &Claim) -> String {
    format!("{}.{}", claim.task, claim.token)
}

/// The claim of a file's name; `None` for another file.
fn parse(name: &str) -> Option<Claim> {
    let (task, token) = name.split_once('.')?;
    Some(Claim { task: task.parse().ok()?, token: token.parse().ok()? })
}

/// The claims in a folder, which is created if it does not exist.
fn read(folder: &Path) -> io::Result<Vec<Claim>> {
    fs::create_dir_all(folder)?;
    let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name()));
    let names: Vec<_> = names.collect::<io::Result<_>>()?;
    Ok(names.iter().filter_map(|name| parse(name.to_str()?)).collect())
}

/// Runs a short operation on files where it may block.
async fn in_background<T: Send + 'static>(
    path: PathBuf,
    run: impl FnOnce(PathBuf) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    spawn_blocking(move || run(path)).await?
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::MemoryQueue;

    const LEASE: Duration = Duration::from_secs(600);

    async fn open(queue: &Arc<dyn TaskQueue>, folder: &TempDir) -> RememberedClaims {
        RememberedClaims::open(Arc::clone(queue), folder.path().join("claims")).await.unwrap()
    }

    fn files(folder: &TempDir) -> usize {
        fs::read_dir(folder.path().join("claims")).unwrap().count()
    }

    async fn claim(queue: &RememberedClaims) -> Claim {
        queue.claim(LEASE, Duration::ZERO).await.unwrap().unwrap()
    }

    #[tokio::test]
    async fn tasks_of_a_killed_process_are_claimed_at_once_by_the_next_with_its_folder() {
        let (queue, folder) =
            (Arc::new(MemoryQueue::default()) as Arc<dyn TaskQueue>, TempDir::new().unwrap());
        let killed = open(&queue, &folder).await;
        let tasks = [TaskId::new(), TaskId::new(), TaskId::new()];
        for task in tasks {
            killed.push(task, Duration::ZERO).await.unwrap();
        }
        let [done, returned, _held] = [claim(&killed).await, claim(&killed).await, claim(&killed).await];
        killed.finish(&done).await.unwrap();
        killed.retry(&returned, LEASE).await.unwrap();
        assert_eq!(files(&folder), 1);
        drop(killed);
        assert!(queue.claim(LEASE, Duration::ZERO).await.unwrap().is_none());

        let next = open(&queue, &folder).await;
        assert_eq!(files(&folder), 0);
        assert_eq!(claim(&next).await.task, tasks[2]);
        assert!(next.claim(LEASE, Duration::ZERO).await.unwrap().is_none(), "a delay ends only by time");
    }

    #[tokio::test]
    async fn claims_that_others_took_over_are_forgotten_and_left_to_them() {
        let (queue, folder) =
            (Arc::new(MemoryQueue::default()) as Arc<dyn TaskQueue>, TempDir::new().unwrap());
        let killed = open(&queue, &folder).await;
        let task = TaskId::new();
        killed.push(task, Duration::ZERO).await.unwrap();
        killed.claim(Duration::ZERO, Duration::ZERO).await.unwrap().unwrap();
        drop(killed);
        let theirs = queue.claim(LEASE, Duration::ZERO).await.unwrap().unwrap();

        let next = open(&queue, &folder).await;
        assert_eq!(files(&folder), 0);
        assert!(next.claim(LEASE, Duration::ZERO).await.unwrap().is_none());
        queue.finish(&theirs).await.unwrap();
    }

    #[tokio::test]
    async fn other_files_in_the_folder_are_left_alone() {
        let (queue, folder) =
            (Arc::new(MemoryQueue::default()) as Arc<dyn TaskQueue>, TempDir::new().unwrap());
        fs::create_dir(folder.path().join("claims")).unwrap();
        for name in ["notes.txt", "a.b", "lock"] {
            fs::write(folder.path().join("claims").join(name), "x").unwrap();
        }
        open(&queue, &folder).await;
        assert_eq!(files(&folder), 3);
    }

    mod conformance {
        use super::*;

        async fn queue() -> (Arc<dyn TaskQueue>, TempDir) {
            let folder = TempDir::new().unwrap();
            let inner = Arc::new(MemoryQueue::default()) as Arc<dyn TaskQueue>;
            (Arc::new(open(&inner, &folder).await), folder)
        }

        crate::task_queue_suite!(queue());
    }
}
