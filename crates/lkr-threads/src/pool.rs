//! Threads for short jobs.

use std::{
    collections::VecDeque,
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use crate::{priority::give_way, processors::Placement};

/// A thread without a job ends after so long.
const KEPT_IDLE: Duration = if cfg!(test) { Duration::from_secs(1) } else { Duration::from_secs(10) };

type Job = Box<dyn FnOnce() + Send>;

/// Threads for jobs of a millisecond or so that someone waits for, such as a part of a search. They are started when needed, and end
/// when they were idle for seconds. Jobs begin in order.
///
/// A job is for a thread *beside* the calling one, which goes on meanwhile. Linux often wakes a thread on the processor of the thread
/// that wakes it, and leaves it there behind that one for milliseconds while another processor is idle. So a thread of the pool is
/// woken on another processor, if it may run on another one. See docs/studies.md#threads-of-a-search.
///
/// When the pool is dropped, the jobs that wait are still run.
pub struct ThreadPool {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    /// The most threads.
    most: usize,
    gives_way: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    /// The threads that wait for a job. The last one has been idle for the shortest time.
    idle: Vec<Arc<Idle>>,
    /// How many threads there are.
    threads: usize,
    /// Whether the pool was dropped.
    closed: bool,
}

/// A thread that waits for a job, or did.
struct Idle {
    thread: Thread,
    placement: Placement,
}

impl ThreadPool {
    /// A pool of at most `most` threads, at least one. `name` is that of the threads, of which Linux shows 15 bytes. On Linux, a thread has
    /// the priority of the one whose job started it.
    #[must_use]
    pub fn new(name: &str, most: usize) -> Self {
        Self::of(name, most, false)
    }

    /// The same, of threads that [give way](crate::give_way).
    #[must_use]
    pub fn giving_way(name: &str, most: usize) -> Self {
        Self::of(name, most, true)
    }

    fn of(name: &str, most: usize, gives_way: bool) -> Self {
        let (name, most, state) = (name.to_owned(), most.max(1), Mutex::default());
        Self { shared: Arc::new(Shared { name, most, gives_way, state }) }
    }

    /// Runs `job` on a thread of the pool, or on the first that has ended its jobs. A panic of the job ends only the job.
    ///
    /// # Errors
    /// If there is no thread, and the system refuses one. The job is dropped.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut state = self.shared.state();
        state.waiting.push_back(Box::new(job));
        if let Some(idle) = state.idle.pop() {
            drop(state);
            idle.wake();
            return Ok(());
        }
        if state.threads == self.shared.most {
            return Ok(());
        }
        state.threads += 1;
        drop(state);
        let shared = Arc::clone(&self.shared);
        let started = thread::Builder::new().name(self.shared.name.clone()).spawn(move || shared.run_jobs());
        started.map(drop).or_else(|error| self.shared.lacks_thread(error))
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.closed = true;
        state.idle.drain(..).for_each(|idle| idle.thread.unpark());
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool")
            .field("name", &self.shared.name)
            .field("most", &self.shared.most)
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // No operation leaves the state inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread could not be started. Without any, the jobs that wait are dropped.
    fn lacks_thread(&self, error: io::Error) -> io::Result<()> {
        let mut state = self.state();
        state.threads -= 1;
        if state.threads > 0 {
            return Ok(());
        }
        let dropped = std::mem::take(&mut state.waiting);
        drop(state);
        drop(dropped);
        Err(error)
    }

    /// What a thread does.
    fn run_jobs(&self) {
        if self.gives_way {
            give_way();
        }
        let idle = Arc::new(Idle { thread: thread::current(), placement: Placement::of_this_thread() });
        while let Some(job) = self.next_job(&idle) {
            // The panic has been reported, and what the job was for is dropped.
            let _ = catch_unwind(AssertUnwindSafe(job));
        }
    }

    /// Waits for a job; `None` if there was none for so long that the thread ends.
    fn next_job(&self, idle: &Arc<Idle>) -> Option<Job> {
        let mut state = self.state();
        let mut idle_since = None;
        loop {
            if let Some(job) = state.waiting.pop_front() {
                return Some(job);
            }
            let is_idle_since = *idle_since.get_or_insert_with(Instant::now);
            let left = KEPT_IDLE.saturating_sub(is_idle_since.elapsed());
            if state.closed || left.is_zero() {
                state.threads -= 1;
                return None;
            }
            state.idle.push(Arc::clone(idle));
            drop(state);
            thread::park_timeout(left);
            idle.placement.restore();
            state = self.state();
            // It is still there if nobody woke it.
            state.idle.retain(|other| !Arc::ptr_eq(other, idle));
        }
    }
}

impl Idle {
    /// Wakes the thread on another processor than that of the caller.
    fn wake(&self) {
        self.placement.keep_from_this_processor();
        self.thread.unpark();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashSet,
        sync::mpsc::{self, Receiver},
    };

    use super::*;

    /// Runs a job on each of the pool's threads, which lasts until the sender is dropped.
    fn occupy(pool: &ThreadPool, threads: usize) -> mpsc::Sender<()> {
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let (started, starts) = mpsc::channel();
        for _ in 0..threads {
            let (held, started) = (Arc::clone(&held), started.clone());
            pool.run(move || {
                started.send(()).unwrap();
                let _ = held.lock().unwrap().recv();
            })
            .unwrap();
        }
        starts.iter().take(threads).for_each(drop);
        release
    }

    /// Where `jobs` jobs run.
    fn run(pool: &ThreadPool, jobs: usize) -> Receiver<(usize, thread::ThreadId)> {
        let (sender, receiver) = mpsc::channel();
        for n in 0..jobs {
            let sender = sender.clone();
            pool.run(move || sender.send((n, thread::current().id())).unwrap()).unwrap();
        }
        receiver
    }

    #[test]
    fn jobs_wait_in_order_for_the_threads_there_may_be() {
        let pool = ThreadPool::new("test", 2);
        let busy = occupy(&pool, 2);
        let more = occupy(&ThreadPool::new("other", 1), 1);
        let jobs = run(&pool, 1000);
        assert!(jobs.try_recv().is_err());
        drop((busy, more));
        let (mut numbers, threads): (Vec<_>, HashSet<_>) = jobs.iter().unzip();
        assert!((1..=2).contains(&threads.len()), "{threads:?}");
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..1000));
    }

    #[test]
    fn one_thread_runs_jobs_in_order() {
        let pool = ThreadPool::new("test", 0);
        assert!(run(&pool, 1000).iter().map(|(n, _)| n).eq(0..1000));
    }

    #[test]
    fn idle_thread_is_woken_before_another_is_started() {
        let pool = ThreadPool::new("test", 100);
        let mut threads = HashSet::new();
        for _ in 0..100 {
            threads.extend(run(&pool, 1).iter().map(|(_, thread)| thread));
            while pool.shared.state().idle.is_empty() {
                thread::yield_now();
            }
        }
        assert_eq!(threads.len(), 1);
    }

    #[test]
    fn jobs_of_a_dropped_pool_still_run() {
        let pool = ThreadPool::new("test", 1);
        let busy = occupy(&pool, 1);
        let jobs = run(&pool, 10);
        let shared = Arc::clone(&pool.shared);
        drop((pool, busy));
        assert_eq!(jobs.iter().count(), 10);
        while shared.state().threads > 0 {
            thread::yield_now();
        }
    }

    #[test]
    fn panic_ends_only_the_job() {
        let pool = ThreadPool::new("test", 1);
        let (dropped, receiver) = mpsc::channel::<()>();
        pool.run(move || {
            let _dropped = dropped;
            panic!("on purpose");
        })
        .unwrap();
        assert!(receiver.recv().is_err());
        assert_eq!(run(&pool, 1).iter().count(), 1);
    }

    #[test]
    fn idle_thread_ends_after_a_while() {
        let pool = ThreadPool::new("test", 1);
        let first: Vec<_> = run(&pool, 1).iter().collect();
        while pool.shared.state().idle.is_empty() {
            thread::yield_now();
        }
        let began = Instant::now();
        while pool.shared.state().threads > 0 {
            assert!(began.elapsed() < 10 * KEPT_IDLE);
            thread::sleep(KEPT_IDLE / 10);
        }
        assert_ne!(run(&pool, 1).iter().collect::<Vec<_>>(), first);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn threads_have_the_priority_of_the_caller_or_give_way() {
        use crate::priority::tests::{niceness, nicer_than};
        let of_thread = |pool: &ThreadPool| {
            let (sender, receiver) = mpsc::channel();
            pool.run(move || sender.send(niceness()).unwrap()).unwrap();
            receiver.recv().unwrap()
        };
        assert_eq!(of_thread(&ThreadPool::new("test", 1)), niceness());
        assert_eq!(of_thread(&ThreadPool::giving_way("test", 1)), nicer_than(niceness()));
    }
}
