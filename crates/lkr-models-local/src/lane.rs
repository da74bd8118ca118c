//! The threads of one kind of text and the queue of waiting texts.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::try_join_all;
use lkr_models::Result;
use lkr_threads::ThreadPool;
use tokio::sync::{Semaphore, oneshot};

use crate::batch::balanced;
use crate::error;
use crate::tokens::Sequence;

/// The most tokens of a batch: enough for efficient matrix products, few enough that a text whose turn it is does not wait
/// long for the batches before it. See docs/studies.md#embedding-batches.
const BATCH_TOKENS: usize = 512;

/// More threads than any machine has cores.
const MAX_THREADS: usize = 4_096;

/// Converts token ids to one vector for each text.
pub(crate) trait Encode: Send + Sync + 'static {
    fn encode(&self, sequences: &[&Sequence]) -> Result<Vec<Vec<f32>>>;
}

/// The threads, queue and prefix of one kind of text (queries or passages).
///
/// Waiting texts of all callers are batched together, so many calls with one or two texts cost about as much as one
/// call with all of them. Calls share the threads fairly, so a call with two texts does not wait for those of long calls.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) prefix: String,
    /// The most threads that encode at once.
    threads: usize,
    /// For jobs that take milliseconds, so that they do not wait for batches.
    short_job_permits: Arc<Semaphore>,
    waiting: Arc<Mutex<WaitingTexts>>,
    /// The threads of batches and short jobs, as many for each. They are not those of a runtime, whose threads may wait for them.
    pool: ThreadPool,
}

/// The waiting texts, in the order of start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996) with each call as a
/// flow: a text's start tag is the virtual time of its call plus the tokens of the texts before it in the call, and the
/// virtual time is the start tag of the text that was taken last.
#[derive(Debug, Default)]
struct WaitingTexts {
    /// By the start tag and the number of the text.
    texts: BTreeMap<(u64, u64), Waiting>,
    now: u64,
    /// The number of texts that were ever enqueued.
    enqueued: u64,
    /// The threads that encode, or are about to. Each ends when no text waits.
    encoding: usize,
}

/// Where the vector of a text arrives.
type Answer = oneshot::Receiver<Result<Vec<f32>>>;

/// A waiting text and the receiver of its vector.
#[derive(Debug)]
struct Waiting {
    sequence: Sequence,
    /// Whether all texts of its call fit into one batch.
    is_short_call: bool,
    reply: oneshot::Sender<Result<Vec<f32>>>,
}

impl Lane {
    /// A lane whose batches run on up to `threads` threads.
    pub(crate) fn new(name: &str, prefix: String, threads: usize) -> Self {
        Self::of(prefix, threads, |threads| ThreadPool::new(name, threads))
    }

    /// A lane whose batches give way to everything else in the process.
    pub(crate) fn in_background(name: &str, prefix: String, threads: usize) -> Self {
        Self::of(prefix, threads, |threads| ThreadPool::giving_way(name, threads))
    }

    fn of(prefix: String, threads: usize, pool: impl FnOnce(usize) -> ThreadPool) -> Self {
        let threads = threads.clamp(1, MAX_THREADS);
        let short_job_permits = Arc::new(Semaphore::new(threads));
        Self { prefix, threads, short_job_permits, waiting: Arc::default(), pool: pool(2 * threads) }
    }

    /// Runs a job of some milliseconds, such as tokenizing, on a thread beside the batches.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let permits = Arc::clone(&self.short_job_permits);
        let permit = permits.acquire_owned().await.map_err(error::unavailable)?;
        let (reply, answer) = oneshot::channel();
        let job = move || {
            // The thread holds the permit: dropping the future does not release it before the job ends.
            let _permit = permit;
            // The caller may be gone.
            let _ = reply.send(job());
        };
        self.pool.run(job).map_err(error::unavailable)?;
        answer.await.map_err(error::internal)?
    }

    /// The vectors of `sequences`, in order. Texts that still wait when the future is dropped are skipped.
    pub(crate) async fn encode(
        &self,
        encoder: &Arc<impl Encode>,
        sequences: Vec<Sequence>,
    ) -> Result<Vec<Vec<f32>>> {
        let (answers, new_threads) = self.enqueue(sequences);
        for thread in new_threads {
            let encoder = Arc::clone(encoder);
            self.pool.run(move || thread.encode_waiting(&*encoder)).map_err(error::unavailable)?;
        }
        try_join_all(answers).await.map_err(error::internal)?.into_iter().collect()
    }

    /// Hands in the texts of a call. Also returns the threads that must begin to encode: as many as the call has batches, at most.
    fn enqueue(&self, sequences: Vec<Sequence>) -> (Vec<Answer>, Vec<Encoding>) {
        let tokens: usize = sequences.iter().map(|sequence| sequence.ids.len()).sum();
        let is_short_call = tokens <= BATCH_TOKENS;
        let batches = tokens.div_ceil(BATCH_TOKENS).clamp(sequences.len().min(1), sequences.len());
        let mut waiting = lock(&self.waiting);
        let mut tag = waiting.now;
        let hand_in = |sequence: Sequence| {
            let (reply, answer) = oneshot::channel();
            let key = (tag, waiting.enqueued);
            tag += sequence.ids.len() as u64;
            waiting.enqueued += 1;
            waiting.texts.insert(key, Waiting { sequence, is_short_call, reply });
            answer
        };
        let answers = sequences.into_iter().map(hand_in).collect();
        let new_threads = batches.min(self.threads.saturating_sub(waiting.encoding));
        waiting.encoding += new_threads;
        (answers, (0..new_threads).map(|_| self.encoding_thread()).collect())
    }

    /// A thread that is counted already.
    fn encoding_thread(&self) -> Encoding {
        Encoding { waiting: Arc::clone(&self.waiting), is_counted: true }
    }

    /// How many threads encode.
    #[cfg(test)]
    pub(crate) fn encoding(&self) -> usize {
        lock(&self.waiting).encoding
    }

    /// Lets all threads wait before they encode, until what it returns is dropped.
    #[cfg(test)]
    pub(crate) fn occupy(&self, encoder: &Arc<impl Encode>) -> std::sync::mpsc::Sender<()> {
        let (release, held) = std::sync::mpsc::channel();
        let held = Arc::new(Mutex::new(held));
        lock(&self.waiting).encoding += self.threads;
        for _ in 0..self.threads {
            let (encoder, held) = (Arc::clone(encoder), Arc::clone(&held));
            let thread = self.encoding_thread();
            let job = move || {
                // The sender is dropped without sending.
                let _ = held.lock().map(|held| held.recv());
                thread.encode_waiting(&*encoder);
            };
            self.pool.run(job).unwrap();
        }
        release
    }
}

fn lock(waiting: &Mutex<WaitingTexts>) -> std::sync::MutexGuard<'_, WaitingTexts> {
    // No operation leaves the queue in an inconsistent state.
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that encodes, or is about to.
struct Encoding {
    waiting: Arc<Mutex<WaitingTexts>>,
    /// Whether it is one of [`WaitingTexts::encoding`].
    is_counted: bool,
}

impl Encoding {
    /// Encodes batches of the texts whose turn it is until none waits.
    fn encode_waiting(mut self, encoder: &impl Encode) {
        while let Some(batch) = self.next_batch() {
            encode_batch(encoder, batch);
        }
        self.is_counted = false;
    }

    /// The next batch. The queue is locked no longer than this takes.
    fn next_batch(&self) -> Option<Vec<Waiting>> {
        lock(&self.waiting).next_batch_or_end()
    }
}

impl Drop for Encoding {
    /// If the thread was not started, or has panicked, and there is no other, texts that wait would wait for ever.
    fn drop(&mut self) {
        if self.is_counted {
            let mut waiting = lock(&self.waiting);
            if waiting.end() == 0 {
                waiting.texts.clear();
            }
        }
    }
}

fn encode_batch(encoder: &impl Encode, batch: Vec<Waiting>) {
    let sequences: Vec<&Sequence> = batch.iter().map(|waiting| &waiting.sequence).collect();
    match encode_guarded(encoder, &sequences) {
        Ok(vectors) => {
            batch.into_iter().zip(vectors).for_each(|(waiting, vector)| waiting.respond(Ok(vector)));
        }
        // One failing text must not fail texts of other callers.
        Err(_) => batch.into_iter().for_each(|waiting| {
            let alone = encode_guarded(encoder, &[&waiting.sequence]).and_then(|vectors| {
                vectors.into_iter().next().ok_or_else(|| error::internal("no vector for a text"))
            });
            waiting.respond(alone);
        }),
    }
}

/// Encodes; a panic becomes an error.
fn encode_guarded(encoder: &impl Encode, sequences: &[&Sequence]) -> Result<Vec<Vec<f32>>> {
    catch_unwind(AssertUnwindSafe(|| encoder.encode(sequences)))
        .unwrap_or_else(|_| Err(error::internal("the model panicked")))
}

impl WaitingTexts {
    /// The next batch; if there is none, the thread that asks counts no longer.
    fn next_batch_or_end(&mut self) -> Option<Vec<Waiting>> {
        let batch = self.next_batch();
        if batch.is_empty() {
            self.end();
            return None;
        }
        Some(batch)
    }

    /// Counts one thread less, and returns how many are left.
    fn end(&mut self) -> usize {
        self.encoding = self.encoding.saturating_sub(1);
        self.encoding
    }

    /// Takes the next batch, without texts whose caller is gone. The first text is the one whose turn it is; the others are of
    /// calls of its kind, so that a short call is answered after a short batch. See docs/studies.md#embedding-batches.
    fn next_batch(&mut self) -> Vec<Waiting> {
        self.texts.retain(|_, waiting| !waiting.reply.is_closed());
        let Some(is_short) = self.texts.values().next().map(|first| first.is_short_call) else {
            return Vec::new();
        };
        let alike = self.texts.iter().filter(|(_, waiting)| waiting.is_short_call == is_short);
        let (keys, lengths): (Vec<_>, Vec<usize>) =
            alike.map(|(key, waiting)| (*key, waiting.sequence.ids.len())).unzip();
        let count = balanced(&lengths, BATCH_TOKENS).first().map_or(0, ExactSizeIterator::len);
        let taken = keys.into_iter().take(count);
        taken
            .filter_map(|key| {
                self.now = self.now.max(key.0);
                self.texts.remove(&key)
            })
            .collect()
    }
}

impl Waiting {
    fn respond(self, vector: Result<Vec<f32>>) {
        // The caller may be gone.
        let _ = self.reply.send(vector);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, future::join_all};

    use super::*;

    /// Returns the number of a sequence's tokens; fails for a token 0, and panics for a token 1.
    #[derive(Debug, Default)]
    struct Counting {
        /// The lengths of the texts of each batch.
        batches: Mutex<Vec<Vec<usize>>>,
    }

    impl Counting {
        fn batches(&self) -> Vec<Vec<usize>> {
            self.batches.lock().unwrap().clone()
        }
    }

    impl Encode for Counting {
        fn encode(&self, sequences: &[&Sequence]) -> Result<Vec<Vec<f32>>> {
            self.batches.lock().unwrap().push(sequences.iter().map(|sequence| sequence.ids.len()).collect());
            let holds = |id| sequences.iter().any(|sequence| sequence.ids.contains(&id));
            assert!(!holds(1), "on purpose");
            if holds(0) {
                return Err(error::internal("a zero"));
            }
            Ok(sequences.iter().map(|sequence| vec![sequence.ids.len() as f32]).collect())
        }
    }

    fn of(ids: &[u32]) -> Sequence {
        Sequence::single(ids.to_vec())
    }

    fn lane(threads: usize) -> (Lane, Arc<Counting>) {
        (Lane::new("test", String::new(), threads), Arc::default())
    }

    #[tokio::test]
    async fn calls_share_batches() {
        let (lane, encoder) = lane(1);
        let busy = lane.occupy(&encoder);
        let calls = join_all(
            (1..=20).map(|n| lane.encode(&encoder, vec![of(&[7].repeat(n)), of(&[7].repeat(n + 1))])),
        );
        tokio::pin!(calls);
        assert!((&mut calls).now_or_never().is_none());
        drop(busy);
        for (answered, n) in calls.await.into_iter().zip(1..) {
            assert_eq!(answered.unwrap(), [vec![n as f32], vec![(n + 1) as f32]]);
        }
        assert_eq!(encoder.batches().len(), 1);
    }

    #[tokio::test]
    async fn failing_text_does_not_affect_others() {
        let (lane, encoder) = lane(1);
        let busy = lane.occupy(&encoder);
        let texts = [vec![7], vec![0], vec![8, 9], vec![1]];
        let calls = join_all(texts.map(|ids| lane.encode(&encoder, vec![of(&ids)])));
        tokio::pin!(calls);
        assert!((&mut calls).now_or_never().is_none());
        drop(busy);
        let answered = calls.await;
        assert_eq!(answered[0].as_ref().unwrap(), &[[1.0]]);
        assert!(answered[1].as_ref().unwrap_err().to_string().contains("a zero"));
        assert_eq!(answered[2].as_ref().unwrap(), &[[2.0]]);
        assert!(answered[3].as_ref().unwrap_err().to_string().contains("panicked"));
    }

    #[tokio::test]
    async fn panic_is_an_error_and_later_calls_succeed() {
        let (lane, encoder) = lane(1);
        assert!(lane.encode(&encoder, vec![of(&[1])]).await.is_err());
        assert_eq!(lane.encode(&encoder, vec![of(&[5; 3])]).await.unwrap(), [[3.0]]);
    }

    #[tokio::test]
    async fn texts_of_dropped_calls_are_not_encoded() {
        let (lane, encoder) = lane(1);
        let busy = lane.occupy(&encoder);
        assert!(lane.encode(&encoder, vec![of(&[1]); 400]).now_or_never().is_none());
        drop(busy);
        assert_eq!(lane.encode(&encoder, vec![of(&[5; 3])]).await.unwrap(), [[3.0]]);
        assert_eq!(encoder.batches().len(), 1);
    }

    #[tokio::test]
    async fn short_call_passes_the_texts_of_long_calls() {
        let (lane, encoder) = lane(1);
        let busy = lane.occupy(&encoder);
        let encode =
            |texts: usize, tokens: usize| lane.encode(&encoder, vec![of(&[7].repeat(tokens)); texts]);
        let calls = try_join_all([encode(200, 500), encode(200, 500), encode(200, 500), encode(2, 9)]);
        tokio::pin!(calls);
        assert!((&mut calls).now_or_never().is_none());
        drop(busy);
        calls.await.unwrap();
        let batches = encoder.batches();
        let of_short_call = batches.iter().position(|batch| batch == &[9, 9]).unwrap();
        assert!(of_short_call < 10 && batches.len() > 600, "{of_short_call} of {}", batches.len());
    }

    #[tokio::test]
    async fn short_call_is_in_no_batch_of_long_calls() {
        let (lane, encoder) = lane(1);
        let busy = lane.occupy(&encoder);
        let calls = join_all(
            [(9, 100), (1, 20), (1, 30)]
                .map(|(texts, tokens)| lane.encode(&encoder, vec![of(&[7].repeat(tokens)); texts])),
        );
        tokio::pin!(calls);
        assert!((&mut calls).now_or_never().is_none());
        let mut tokens = Vec::new();
        let mut batch = || {
            let batch = lock(&lane.waiting).next_batch();
            tokens.push(batch.iter().map(|waiting| waiting.sequence.ids.len()).sum::<usize>());
            batch
        };
        while !batch().is_empty() {}
        // The first text has the first turn; the two short calls have theirs together, before the rest of the long one.
        assert_eq!(tokens, [500, 50, 400, 0]);
        drop(busy);
    }

    /// The same lane, on threads of its own; they end with it, also on a thread of a runtime.
    #[tokio::test]
    async fn lane_in_the_background_encodes() {
        let lane = Lane::in_background("test", String::new(), 2);
        let encoder = Arc::<Counting>::default();
        assert_eq!(lane.encode(&encoder, vec![of(&[5; 3]), of(&[5; 2])]).await.unwrap(), [[3.0], [2.0]]);
        assert!(lane.encode(&encoder, vec![of(&[1])]).await.is_err());
        drop(lane);
    }

    #[tokio::test]
    async fn texts_are_given_to_no_more_threads_than_they_have_batches() {
        let (lane, encoder) = lane(3);
        for (tokens, texts, expected) in [(3, 2, 1), (500, 2, 2), (500, 9, 3), (3, 0, 0)] {
            let (_answers, threads) = lane.enqueue(vec![of(&[7].repeat(tokens)); texts]);
            assert_eq!(threads.len(), expected);
        }
        let short = lane.encode(&encoder, vec![of(&[5; 3]), of(&[5; 2])]);
        let long = lane.encode(&encoder, vec![of(&[7].repeat(500)); 9]);
        assert_eq!(short.await.unwrap(), [[3.0], [2.0]]);
        assert_eq!(long.await.unwrap(), [[500.0]; 9]);
        while lane.encoding() > 0 {
            tokio::task::yield_now().await;
        }
    }

    /// Ends a batch only once another one has begun.
    struct Meeting {
        begun: Mutex<usize>,
        changed: std::sync::Condvar,
    }

    impl Encode for Meeting {
        fn encode(&self, sequences: &[&Sequence]) -> Result<Vec<Vec<f32>>> {
            let mut begun = self.begun.lock().unwrap();
            *begun += 1;
            self.changed.notify_all();
            let wait = std::time::Duration::from_secs(60);
            let (_begun, late) = self.changed.wait_timeout_while(begun, wait, |begun| *begun < 2).unwrap();
            assert!(!late.timed_out());
            Ok(vec![vec![1.0]; sequences.len()])
        }
    }

    #[tokio::test]
    async fn threads_encode_at_once() {
        let (lane, _) = lane(2);
        let encoder = Arc::new(Meeting { begun: Mutex::new(0), changed: std::sync::Condvar::new() });
        assert_eq!(lane.encode(&encoder, vec![of(&[7].repeat(500)); 2]).await.unwrap(), [[1.0], [1.0]]);
    }

    #[tokio::test]
    async fn texts_fail_if_the_last_thread_ends_without_encoding_them() {
        let (lane, _) = lane(2);
        let (answers, mut threads) = lane.enqueue(vec![of(&[7].repeat(500)); 2]);
        assert_eq!(threads.len(), 2);
        drop(threads.pop());
        assert_eq!(lock(&lane.waiting).texts.len(), 2, "the other thread takes them");
        drop(threads.pop());
        assert!(try_join_all(answers).await.is_err());
    }

    /// Threads that wait for a lane need no other thread of their runtime.
    #[test]
    fn only_blocking_thread_may_wait_for_texts() {
        let (lane, encoder) = lane(1);
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        let handle = runtime.handle().clone();
        let waiting = move || {
            handle.block_on(async {
                let sequence = lane.run(|| Ok(of(&[5; 3]))).await?;
                lane.encode(&encoder, vec![sequence]).await
            })
        };
        assert_eq!(runtime.block_on(runtime.spawn_blocking(waiting)).unwrap().unwrap(), [[3.0]]);
    }

    #[tokio::test]
    async fn no_texts_give_no_vectors() {
        let (lane, encoder) = lane(1);
        assert!(lane.encode(&encoder, Vec::new()).await.unwrap().is_empty());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn vectors_are_in_the_order_of_the_texts() {
        let (lane, encoder) = lane(3);
        let lane = Arc::new(lane);
        let calls = (0..200_usize).map(|call| {
            let (lane, encoder) = (Arc::clone(&lane), Arc::clone(&encoder));
            tokio::spawn(async move {
                let lengths: Vec<usize> =
                    (0..call % 7).map(|text| 2 + (call * 31 + text * 17) % 900).collect();
                let sequences = lengths.iter().map(|length| of(&[7].repeat(*length))).collect();
                let vectors = lane.encode(&encoder, sequences).await.unwrap();
                assert_eq!(vectors, lengths.iter().map(|length| [*length as f32]).collect::<Vec<_>>());
            })
        });
        for call in join_all(calls).await {
            call.unwrap();
        }
    }
}
