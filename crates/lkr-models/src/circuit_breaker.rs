//! Models that are left alone while they are away.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::StreamExt;
use tokio::time::Instant;

use crate::{
    ChatAnswer, ChatModel, ChatPart, ChatProfile, ChatRequest, ChatStream, EmbedKind, Embedder,
    EmbedderProfile, Error, ErrorKind, Result,
};

/// When a model is left alone, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CircuitBreakerOptions {
    /// So many calls in a row must have found it away.
    pub failures: u32,
    /// How long it is left alone before one call tries it again.
    pub pause: Duration,
}

impl Default for CircuitBreakerOptions {
    fn default() -> Self {
        Self { failures: 5, pause: Duration::from_secs(15) }
    }
}

/// A model that is not asked for a while once call after call has found it away: calls fail at once then. After a
/// pause one of them tries it; where that is answered, all are let through again.
///
/// Whatever a model says, a refusal too, shows that it is there.
#[derive(Debug)]
pub struct CircuitBreaker<M: ?Sized> {
    inner: Arc<M>,
    circuit: Arc<Circuit>,
}

#[derive(Debug)]
struct Circuit {
    options: CircuitBreakerOptions,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How many calls in a row found it away.
    failures: u32,
    /// Why the last of them did.
    reason: String,
    /// Until when nobody tries; `None` while all are let through.
    not_before: Option<Instant>,
    /// Whether a call tries it.
    trying: bool,
}

/// A call that was let through. One that is given up says nothing of the model.
#[derive(Debug)]
struct Pass {
    circuit: Arc<Circuit>,
    tries: bool,
}

impl<M: ?Sized> CircuitBreaker<M> {
    /// Guards `inner`.
    #[must_use]
    pub fn new(inner: Arc<M>, options: CircuitBreakerOptions) -> Self {
        Self { inner, circuit: Arc::new(Circuit { options, state: Mutex::default() }) }
    }

    async fn guarded<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let pass = self.circuit.pass()?;
        let answer = call.await;
        pass.note(answer.as_ref().err());
        answer
    }
}

impl Circuit {
    fn pass(self: &Arc<Self>) -> Result<Pass> {
        let mut state = self.state();
        let Some(not_before) = state.not_before else {
            return Ok(Pass { circuit: Arc::clone(self), tries: false });
        };
        let left = not_before.saturating_duration_since(Instant::now());
        if state.trying || !left.is_zero() {
            return Err(state.refusal(left));
        }
        state.trying = true;
        Ok(Pass { circuit: Arc::clone(self), tries: true })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn refusal(&self, left: Duration) -> Error {
        let Self { failures, reason, .. } = self;
        let seconds = left.as_secs_f64().ceil();
        let reason = format!(
            "it was not asked, since {failures} calls in a row found it away, the last one so: {reason}; it is asked \
             again in {seconds} s"
        );
        Error::new(ErrorKind::Unavailable, "circuit breaker", reason)
    }
}

impl Pass {
    /// Takes note of how the call ended.
    fn note(&self, error: Option<&Error>) {
        let mut state = self.circuit.state();
        match error.filter(|error| error.kind() == ErrorKind::Unavailable) {
            Some(error) => {
                state.failures = state.failures.saturating_add(1);
                state.reason = error.reason();
                if state.failures >= self.circuit.options.failures.max(1) {
                    state.not_before = Some(Instant::now() + self.circuit.options.pause);
                }
            }
            None => *state = State { trying: state.trying, ..State::default() },
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.tries {
            self.circuit.state().trying = false;
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ChatModel for CircuitBreaker<dyn ChatModel> {
    fn profile(&self) -> &ChatProfile {
        self.inner.profile()
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        self.guarded(self.inner.complete(request)).await
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ChatStream> {
        let pass = self.circuit.pass()?;
        let parts = match self.inner.stream(request).await {
            Ok(parts) => parts,
            Err(error) => {
                pass.note(Some(&error));
                return Err(error);
            }
        };
        let noted = move |part: &Result<ChatPart>| match part {
            Ok(ChatPart::Text(_)) => {}
            Ok(ChatPart::End(_)) => pass.note(None),
            Err(error) => pass.note(Some(error)),
        };
        Ok(parts.inspect(noted).boxed())
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Embedder for CircuitBreaker<dyn Embedder> {
    fn profile(&self) -> &EmbedderProfile {
        self.inner.profile()
    }

    async fn embed(&self, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        self.guarded(self.inner.embed(kind, texts)).await
    }

    fn letters_per_piece(&self, text: &str) -> Option<f32> {
        self.inner.letters_per_piece(text)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::faulty::{Faulty, request, text_of};

    const AWAY: ErrorKind = ErrorKind::Unavailable;
    const PAUSE: Duration = Duration::from_secs(15);

    fn guarded(faulty: &Arc<Faulty>) -> CircuitBreaker<dyn ChatModel> {
        let options = CircuitBreakerOptions { failures: 3, ..CircuitBreakerOptions::default() };
        CircuitBreaker::new(Arc::clone(faulty) as Arc<dyn ChatModel>, options)
    }

    async fn fails(model: &CircuitBreaker<dyn ChatModel>, times: usize) -> Error {
        for _ in 1..times {
            model.complete(&request()).await.unwrap_err();
        }
        model.complete(&request()).await.unwrap_err()
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_away_is_left_alone_and_tried_again() {
        let faulty = Faulty::failing([AWAY; 4]);
        let model = guarded(&faulty);
        assert_eq!(fails(&model, 3).await.reason(), "told to fail");
        let error = fails(&model, 10).await;
        assert_eq!((faulty.asked().len(), error.kind()), (3, AWAY));
        let reason = error.to_string();
        assert!(reason.contains("circuit breaker: ") && reason.contains("3 calls in a row"), "{reason}");
        assert!(reason.contains("told to fail") && reason.contains("in 15 s"), "{reason}");
        // One try, which fails, and then one that does not.
        advance(PAUSE).await;
        assert_eq!(fails(&model, 1).await.reason(), "told to fail");
        fails(&model, 5).await;
        assert_eq!(faulty.asked().len(), 4);
        advance(PAUSE).await;
        for _ in 0..5 {
            model.complete(&request()).await.unwrap();
        }
        assert_eq!(faulty.asked().len(), 9);
    }

    #[tokio::test(start_paused = true)]
    async fn one_call_tries_and_one_that_is_given_up_lets_another() {
        let faulty = Faulty::taking(Duration::from_secs(1));
        let model = guarded(&faulty);
        for _ in 0..3 {
            faulty.fail(AWAY);
        }
        fails(&model, 3).await;
        advance(PAUSE).await;
        {
            let first = request();
            let trying = model.complete(&first);
            tokio::pin!(trying);
            assert!(futures_util::poll!(&mut trying).is_pending());
            assert!(fails(&model, 3).await.to_string().contains("circuit breaker"));
        }
        model.complete(&request()).await.unwrap();
        assert_eq!(faulty.asked().len(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_answers_is_there() {
        let others = [ErrorKind::Config, ErrorKind::Input, ErrorKind::Throttled { retry_after: None }];
        let faulty = Faulty::failing([AWAY, AWAY, others[0], AWAY, AWAY, others[1], AWAY, AWAY, others[2]]);
        let model = guarded(&faulty);
        fails(&model, 9).await;
        model.complete(&request()).await.unwrap();
        assert_eq!(faulty.asked().len(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn streams_that_break_count_too() {
        let faulty = Faulty::breaking_after(1, [AWAY; 3]);
        let model = guarded(&faulty);
        for _ in 0..3 {
            text_of(model.stream(&request()).await.unwrap()).await.unwrap_err();
        }
        assert!(model.stream(&request()).await.is_err_and(|error| error.to_string().contains("circuit")));
        advance(PAUSE).await;
        text_of(model.stream(&request()).await.unwrap()).await.unwrap();
        text_of(model.stream(&request()).await.unwrap()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn embedders_too() {
        let faulty = Faulty::failing([AWAY; 3]);
        let options = CircuitBreakerOptions { failures: 3, ..CircuitBreakerOptions::default() };
        let model = CircuitBreaker::new(Arc::clone(&faulty) as Arc<dyn Embedder>, options);
        let texts = ["a text".to_owned()];
        for _ in 0..5 {
            assert_eq!(model.embed(EmbedKind::Query, &texts).await.unwrap_err().kind(), AWAY);
        }
        assert_eq!(faulty.asked().len(), 3);
        advance(PAUSE).await;
        assert_eq!(model.embed(EmbedKind::Query, &texts).await.unwrap().len(), 1);
    }
}
