//! The threads of one kind of text and the queue of waiting texts.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::try_join_all;
use lkr_background::BackgroundRuntime;
use lkr_models::Result;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};

use crate::batch::balanced;
use crate::error;
use crate::tokens::Sequence;

/// The most tokens of a batch: enough for efficient matrix products, few enough that a text whose turn it is does not wait
/// long for the batches before it. See docs/studies.md#embedding-batches.
const BATCH_TOKENS: usize = 512;

/// More threads than any machine has cores.
const MAX_BACKGROUND_THREADS: usize = 4_096;

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
    permits: Arc<Semaphore>,
    /// For jobs that take milliseconds, so that they do not wait for batches.
    short_job_permits: Arc<Semaphore>,
    waiting: Arc<Mutex<WaitingTexts>>,
    /// The threads of the batches; those of the caller's runtime if nothing else has precedence over these.
    background: Option<BackgroundRuntime>,
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
}

/// A waiting text and the receiver of its vector.
#[derive(Debug)]
struct Waiting {
    sequence: Sequence,
    /// Whether all texts of its call fit into one batch.
    is_short_call: bool,
    reply: oneshot::Sender<Result<Vec<f32>>>,
}

impl Lane {
    pub(crate) fn new(prefix: String, threads: usize) -> Self {
        let threads = threads.clamp(1, Semaphore::MAX_PERMITS);
        let permits = || Arc::new(Semaphore::new(threads));
        Self {
            prefix,
            permits: permits(),
            short_job_permits: permits(),
            waiting: Arc::default(),
            background: None,
        }
    }

    /// A lane whose batches give way to everything else in the process.
    pub(crate) fn in_background(prefix: String, threads: usize) -> Result<Self> {
        let threads = threads.clamp(1, MAX_BACKGROUND_THREADS);
        let background =
            BackgroundRuntime::of_blocking_threads("embed-passages", threads).map_err(error::unavailable)?;
        Ok(Self { background: Some(background), ..Self::new(prefix, threads) })
    }

    /// Runs a job of some milliseconds, such as tokenizing, on a blocking thread beside the batches.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let permits = Arc::clone(&self.short_job_permits);
        let permit = permits.acquire_owned().await.map_err(error::unavailable)?;
        let runtime = Handle::try_current().map_err(error::unavailable)?;
        let job = move || {
            // The thread holds the permit: dropping the future does not release it before the job ends.
            let _permit = permit;
            job()
        };
        runtime.spawn_blocking(job).await.map_err(error::internal)?
    }

    /// The vectors of `sequences`, in order. Texts that still wait when the future is dropped are skipped.
    pub(crate) async fn encode(
        &self,
        encoder: &Arc<impl Encode>,
        sequences: Vec<Sequence>,
    ) -> Result<Vec<Vec<f32>>> {
        let answers = try_join_all(self.enqueue(sequences));
        tokio::pin!(answers);
        loop {
            let permit = tokio::select! {
                biased;
                answered = &mut answers => return answered.map_err(error::internal)?.into_iter().collect(),
                permit = Arc::clone(&self.permits).acquire_owned() => permit.map_err(error::unavailable)?,
            };
            if lock(&self.waiting).texts.is_empty() {
                // All of these texts are on some thread.
                drop(permit);
                return answers.await.map_err(error::internal)?.into_iter().collect();
            }
            let (encoder, waiting) = (Arc::clone(encoder), Arc::clone(&self.waiting));
            let job = move || {
                let _permit = permit;
                encode_next(&*encoder, &waiting);
            };
            match &self.background {
                Some(background) => background.handle().spawn_blocking(job),
                None => Handle::try_current().map_err(error::unavailable)?.spawn_blocking(job),
            };
        }
    }

    fn enqueue(&self, sequences: Vec<Sequence>) -> Vec<oneshot::Receiver<Result<Vec<f32>>>> {
        let tokens: usize = sequences.iter().map(|sequence| sequence.ids.len()).sum();
        let is_short_call = tokens <= BATCH_TOKENS;
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
        sequences.into_iter().map(hand_in).collect()
    }

    #[cfg(test)]
    pub(crate) async fn all_threads(&self, threads: u32) -> tokio::sync::OwnedSemaphorePermit {
        Arc::clone(&self.permits).acquire_many_owned(threads).await.unwrap()
    }
}

fn lock(waiting: &Mutex<WaitingTexts>) -> std::sync::MutexGuard<'_, WaitingTexts> {
    // No operation leaves the queue in an inconsistent state.
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Encodes one batch of the texts whose turn it is.
fn encode_next(encoder: &impl Encode, waiting: &Mutex<WaitingTexts>) {
    let batch = lock(waiting).next_batch();
    if batch.is_empty() {
        return;
    }
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::{FutureExt, future::join_all};

    use super::*;

    /// Returns the number of a sequence's tokens; fails for a token 0, and panics for a token 1.
    #[derive(Debug, Default)]
    struct Counting {
        batches: AtomicUsize,
    }

    impl Encode for Counting {
        fn encode(&self, sequences: &[&Sequence]) -> Result<Vec<Vec<f32>>> {
            self.batches.fetch_add(1, Ordering::Relaxed);
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
        (Lane::new(String::new(), threads), Arc::default())
    }

    #[tokio::test]
    async fn calls_share_batches() {
        let (lane, encoder) = lane(1);
        let busy = lane.all_threads(1).await;
        let calls = join_all(
            (1..=20).map(|n| lane.encode(&encoder, vec![of(&[7].repeat(n)), of(&[7].repeat(n + 1))])),
        );
        tokio::pin!(calls);
        assert!((&mut calls).now_or_never().is_none());
        drop(busy);
        for (answered, n) in calls.await.into_iter().zip(1..) {
            assert_eq!(answered.unwrap(), [vec![n as f32], vec![(n + 1) as f32]]);
        }
        assert_eq!(encoder.batches.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn failing_text_does_not_affect_others() {
        let (lane, encoder) = lane(1);
        let busy = lane.all_threads(1).await;
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
        let busy = lane.all_threads(1).await;
        assert!(lane.encode(&encoder, vec![of(&[1]); 400]).now_or_never().is_none());
        drop(busy);
        assert_eq!(lane.encode(&encoder, vec![of(&[5; 3])]).await.unwrap(), [[3.0]]);
        assert_eq!(encoder.batches.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn short_call_passes_the_texts_of_long_calls() {
        let (lane, encoder) = lane(1);
        let busy = lane.all_threads(1).await;
        let encode = |texts: usize, tokens: usize| {
            let (lane, encoder) = (&lane, &encoder);
            async move {
                lane.encode(encoder, vec![of(&[7].repeat(tokens)); texts]).await.unwrap();
                encoder.batches.load(Ordering::Relaxed)
            }
        };
        let calls = join_all([encode(200, 500), encode(200, 500), encode(200, 500), encode(2, 9)]);
        tokio::pin!(calls);
        assert!((&mut calls).now_or_never().is_none());
        drop(busy);
        // The number of batches when each call was answered.
        let batches = calls.await;
        assert!(batches[3] < 10 && batches[..3].iter().all(|batches| *batches > 100), "{batches:?}");
    }

    #[tokio::test]
    async fn short_call_is_in_no_batch_of_long_calls() {
        let (lane, encoder) = lane(1);
        let busy = lane.all_threads(1).await;
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
        let lane = Lane::in_background(String::new(), 2).unwrap();
        let encoder = Arc::<Counting>::default();
        assert_eq!(lane.encode(&encoder, vec![of(&[5; 3]), of(&[5; 2])]).await.unwrap(), [[3.0], [2.0]]);
        assert!(lane.encode(&encoder, vec![of(&[1])]).await.is_err());
        drop(lane);
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
