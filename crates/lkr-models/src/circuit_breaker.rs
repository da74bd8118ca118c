//! Stops calling a model for a while after repeated failures.

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

/// When a circuit opens, and for how long. See docs/studies.md#retry-and-circuit-breaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CircuitBreakerOptions {
    /// The number of consecutive `Unavailable` failures that open the circuit.
    pub failure_threshold: u32,
    /// The time for which the circuit stays open before one call probes the model.
    pub open_duration: Duration,
    /// A call without any part of an answer also counts as a failure if its caller drops it after this time or later. Callers often
    /// have a shorter time limit than the call itself.
    pub patience: Duration,
}

impl Default for CircuitBreakerOptions {
    fn default() -> Self {
        Self {
            failure_threshold: 5,
            open_duration: Duration::from_secs(15),
            patience: Duration::from_secs(5),
        }
    }
}

/// A decorator that rejects calls for a while after several consecutive ones failed with `Unavailable`. When that time
/// is over, one call probes the model. If the model answers it, the circuit closes and all calls pass again.
///
/// Any response counts as an answer, also a refusal. A model that does not answer counts as failing, also if its callers give up before
/// their calls fail.
#[derive(Debug)]
pub struct CircuitBreaker<M: ?Sized> {
    inner: Arc<M>,
    circuit: Arc<Circuit>,
}

#[derive(Debug)]
struct Circuit {
    options: CircuitBreakerOptions,
    state: Mutex<CircuitState>,
}

#[derive(Debug, Default)]
struct CircuitState {
    /// The number of consecutive failures.
    failures: u32,
    /// The reason of the last failure.
    reason: String,
    /// The earliest time of the next probe; `None` while the circuit is closed.
    not_before: Option<Instant>,
    /// Whether a probe is in flight.
    probing: bool,
    /// When the model last answered a call.
    answered_at: Option<Instant>,
}

/// The permission for one call. A call that is dropped soon, or after part of its answer has arrived, does not change the state of the
/// circuit.
#[derive(Debug)]
struct Permit {
    circuit: Arc<Circuit>,
    is_probe: bool,
    started: Instant,
    /// Whether the call ended, or a part of its answer has come.
    is_answered: bool,
}

impl<M: ?Sized> CircuitBreaker<M> {
    /// Wraps `inner`.
    #[must_use]
    pub fn new(inner: Arc<M>, options: CircuitBreakerOptions) -> Self {
        Self { inner, circuit: Arc::new(Circuit { options, state: Mutex::default() }) }
    }

    async fn guarded<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let mut permit = self.circuit.acquire()?;
        let result = call.await;
        permit.record(result.as_ref().err());
        result
    }
}

impl Circuit {
    fn acquire(self: &Arc<Self>) -> Result<Permit> {
        let mut state = self.state();
        let Some(not_before) = state.not_before else {
            return Ok(self.permit(false));
        };
        let remaining = not_before.saturating_duration_since(Instant::now());
        if state.probing || !remaining.is_zero() {
            return Err(state.rejection(remaining));
        }
        state.probing = true;
        Ok(self.permit(true))
    }

    fn permit(self: &Arc<Self>, is_probe: bool) -> Permit {
        Permit { circuit: Arc::clone(self), is_probe, started: Instant::now(), is_answered: false }
    }

    fn count_failure(&self, reason: String) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        state.reason = reason;
        if state.failures >= self.options.failure_threshold.max(1) {
            state.not_before = Some(Instant::now() + self.options.open_duration);
        }
    }

    fn state(&self) -> MutexGuard<'_, CircuitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CircuitState {
    fn rejection(&self, remaining: Duration) -> Error {
        let Self { failures, reason, .. } = self;
        let seconds = remaining.as_secs_f64().ceil();
        let reason = format!(
            "provider not called after {failures} consecutive failures; next attempt in {seconds} s; last failure: \
             {reason}"
        );
        Error::new(ErrorKind::Unavailable, "circuit breaker", reason)
    }
}

impl Permit {
    /// Records how the call ended.
    fn record(&mut self, error: Option<&Error>) {
        self.is_answered = true;
        match error.filter(|error| error.kind() == ErrorKind::Unavailable) {
            Some(error) => self.circuit.count_failure(error.reason()),
            None => {
                let mut state = self.circuit.state();
                let answered_at = Some(Instant::now());
                *state = CircuitState { probing: state.probing, answered_at, ..CircuitState::default() };
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let waited = self.started.elapsed();
        // A model that answers others is busy, not silent: the call may have waited behind theirs.
        let is_silent = self.circuit.state().answered_at.is_none_or(|at| at < self.started);
        if !self.is_answered && is_silent && waited >= self.circuit.options.patience {
            self.circuit.count_failure(format!("no answer within {} s", waited.as_secs()));
        }
        if self.is_probe {
            self.circuit.state().probing = false;
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
        let mut permit = self.circuit.acquire()?;
        let parts = match self.inner.stream(request).await {
            Ok(parts) => parts,
            Err(error) => {
                permit.record(Some(&error));
                return Err(error);
            }
        };
        let record = move |part: &Result<ChatPart>| match part {
            Ok(ChatPart::Text(_)) => permit.is_answered = true,
            Ok(ChatPart::End(_)) => permit.record(None),
            Err(error) => permit.record(Some(error)),
        };
        Ok(parts.inspect(record).boxed())
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
    use futures_util::FutureExt;
    use tokio::time::{advance, timeout};

    use super::*;
    use crate::faulty_model::{FaultyModel, request, text_of};

    const UNAVAILABLE: ErrorKind = ErrorKind::Unavailable;
    const OPEN_DURATION: Duration = Duration::from_secs(15);

    fn with_breaker(faulty: &Arc<FaultyModel>) -> CircuitBreaker<dyn ChatModel> {
        let options = CircuitBreakerOptions { failure_threshold: 3, ..CircuitBreakerOptions::default() };
        CircuitBreaker::new(Arc::clone(faulty) as Arc<dyn ChatModel>, options)
    }

    /// Makes `times` calls, which must fail, and returns the last error.
    async fn fails(model: &CircuitBreaker<dyn ChatModel>, times: usize) -> Error {
        for _ in 1..times {
            model.complete(&request()).await.unwrap_err();
        }
        model.complete(&request()).await.unwrap_err()
    }

    #[tokio::test(start_paused = true)]
    async fn circuit_opens_after_consecutive_failures_and_closes_after_a_successful_probe() {
        let faulty = FaultyModel::failing([UNAVAILABLE; 4]);
        let model = with_breaker(&faulty);
        assert_eq!(fails(&model, 3).await.reason(), "scripted failure");
        let error = fails(&model, 10).await;
        assert_eq!((faulty.calls(), error.kind()), (3, UNAVAILABLE));
        let message = error.to_string();
        assert!(
            message.contains("circuit breaker: ") && message.contains("3 consecutive failures"),
            "{message}"
        );
        assert!(message.contains("scripted failure") && message.contains("in 15 s"), "{message}");
        // The first probe fails, the second one succeeds.
        advance(OPEN_DURATION).await;
        assert_eq!(fails(&model, 1).await.reason(), "scripted failure");
        fails(&model, 5).await;
        assert_eq!(faulty.calls(), 4);
        advance(OPEN_DURATION).await;
        for _ in 0..5 {
            model.complete(&request()).await.unwrap();
        }
        assert_eq!(faulty.calls(), 9);
    }

    #[tokio::test(start_paused = true)]
    async fn only_one_call_probes_and_a_dropped_probe_allows_another() {
        let faulty = FaultyModel::delayed(Duration::from_secs(1));
        let model = with_breaker(&faulty);
        for _ in 0..3 {
            faulty.fail(UNAVAILABLE);
        }
        fails(&model, 3).await;
        advance(OPEN_DURATION).await;
        {
            let first = request();
            let probe = model.complete(&first);
            tokio::pin!(probe);
            assert!(probe.as_mut().now_or_never().is_none());
            assert!(fails(&model, 3).await.to_string().contains("circuit breaker"));
        }
        model.complete(&request()).await.unwrap();
        assert_eq!(faulty.calls(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn model_that_does_not_answer_opens_the_circuit_although_callers_give_up() {
        let faulty = FaultyModel::delayed(Duration::from_secs(60));
        let model = with_breaker(&faulty);
        let give_up_after = async |seconds| {
            let request = request();
            let called = timeout(Duration::from_secs(seconds), model.complete(&request)).await;
            called.map(|answer| answer.unwrap_err().to_string())
        };
        for _ in 0..10 {
            give_up_after(1).await.unwrap_err();
        }
        assert_eq!(faulty.calls(), 10, "callers that give up soon opened the circuit");
        for _ in 0..3 {
            give_up_after(10).await.unwrap_err();
        }
        let message = give_up_after(10).await.unwrap();
        assert!(message.contains("no answer within 10 s") && faulty.calls() == 13, "{message}");
        // The probe is given up, too.
        advance(OPEN_DURATION).await;
        give_up_after(10).await.unwrap_err();
        assert!(give_up_after(10).await.unwrap().contains("circuit breaker"));
        assert_eq!(faulty.calls(), 14);
    }

    #[tokio::test(start_paused = true)]
    async fn call_that_waits_behind_answered_ones_is_no_failure() {
        let faulty = FaultyModel::failing([]);
        let model = with_breaker(&faulty);
        for _ in 0..5 {
            let waiting = model.circuit.acquire().unwrap();
            advance(Duration::from_secs(10)).await;
            model.circuit.acquire().unwrap().record(None);
            drop(waiting);
        }
        model.complete(&request()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_count_as_answers() {
        let others = [ErrorKind::Config, ErrorKind::Input, ErrorKind::Throttled { retry_after: None }];
        let faulty = FaultyModel::failing([
            UNAVAILABLE,
            UNAVAILABLE,
            others[0],
            UNAVAILABLE,
            UNAVAILABLE,
            others[1],
            UNAVAILABLE,
            UNAVAILABLE,
            others[2],
        ]);
        let model = with_breaker(&faulty);
        fails(&model, 9).await;
        model.complete(&request()).await.unwrap();
        assert_eq!(faulty.calls(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn broken_streams_open_the_circuit() {
        let faulty = FaultyModel::breaking_after(1, [UNAVAILABLE; 3]);
        let model = with_breaker(&faulty);
        for _ in 0..3 {
            text_of(model.stream(&request()).await.unwrap()).await.unwrap_err();
        }
        assert!(model.stream(&request()).await.is_err_and(|error| error.to_string().contains("circuit")));
        advance(OPEN_DURATION).await;
        text_of(model.stream(&request()).await.unwrap()).await.unwrap();
        text_of(model.stream(&request()).await.unwrap()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn circuit_of_an_embedder_opens_and_closes() {
        let faulty = FaultyModel::failing([UNAVAILABLE; 3]);
        let options = CircuitBreakerOptions { failure_threshold: 3, ..CircuitBreakerOptions::default() };
        let model = CircuitBreaker::new(Arc::clone(&faulty) as Arc<dyn Embedder>, options);
        let texts = ["a text".to_owned()];
        for _ in 0..5 {
            assert_eq!(model.embed(EmbedKind::Query, &texts).await.unwrap_err().kind(), UNAVAILABLE);
        }
        assert_eq!(faulty.calls(), 3);
        advance(OPEN_DURATION).await;
        assert_eq!(model.embed(EmbedKind::Query, &texts).await.unwrap().len(), 1);
    }
}
