//! Fails calls at once while the server is away.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::error::{Delivery, Failure, InternalResult};

/// After several consecutive calls that did not reach the server, calls fail at once, except for one each interval.
#[derive(Debug)]
pub(crate) struct Breaker {
    threshold: u32,
    interval: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of consecutive failures.
    failures: u32,
    /// The reason of the last failure.
    reason: String,
    /// The earliest time of the next probe; `None` while calls pass.
    not_before: Option<Instant>,
    /// Whether a probe is in flight.
    probing: bool,
    /// When the server last answered.
    last_answer: Option<Instant>,
    /// When it was last found to answer nothing.
    last_silence: Option<Instant>,
}

/// The permission for one call. A call that is dropped before its end does not change the state.
#[derive(Debug)]
pub(crate) struct Permit<'b> {
    breaker: &'b Breaker,
    is_probe: bool,
}

impl Breaker {
    pub(crate) fn new(threshold: u32, interval: Duration) -> Self {
        Self { threshold: threshold.max(1), interval, state: Mutex::default() }
    }

    /// # Errors
    /// `Unavailable` with the reason of the last failure, if the server counts as away.
    pub(crate) fn acquire(&self) -> InternalResult<Permit<'_>> {
        let mut state = self.state();
        let Some(not_before) = state.not_before else {
            return Ok(Permit { breaker: self, is_probe: false });
        };
        if state.probing || Instant::now() < not_before {
            let State { failures, reason, .. } = &*state;
            let message = format!("not asked after {failures} consecutive failures; the last one: {reason}");
            return Err(Failure::unavailable(Delivery::NotSent, message));
        }
        state.probing = true;
        Ok(Permit { breaker: self, is_probe: true })
    }

    /// Whether the server answered any call at or after this time.
    pub(crate) fn has_answered_since(&self, time: Instant) -> bool {
        self.state().last_answer.is_some_and(|answer| answer >= time)
    }

    /// Whether the server was found to answer nothing at or after this time.
    pub(crate) fn was_silent_since(&self, time: Instant) -> bool {
        self.state().last_silence.is_some_and(|silence| silence >= time)
    }

    /// The server answers.
    pub(crate) fn note_answer(&self) {
        let mut state = self.state();
        if state.not_before.is_some() {
            tracing::info!("Qdrant answers again");
        }
        let last_answer = Some(Instant::now());
        *state = State { probing: state.probing, last_answer, ..State::default() };
    }

    /// The server answers nothing: calls fail at once from now on.
    pub(crate) fn note_silence(&self, failure: &Failure) {
        let mut state = self.state();
        state.last_silence = Some(Instant::now());
        state.failures = state.failures.max(self.threshold.saturating_sub(1));
        self.count(&mut state, failure);
    }

    fn count(&self, state: &mut State, failure: &Failure) {
        state.failures = state.failures.saturating_add(1);
        state.reason.clone_from(&failure.message);
        if state.failures >= self.threshold {
            if state.not_before.is_none() {
                tracing::warn!(reason = state.reason, "Qdrant is away; calls fail at once");
            }
            state.not_before = Some(Instant::now() + self.interval);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit<'_> {
    /// Records how the call ended. Any answer of the server counts as success. A lost connection counts as neither: all
    /// calls that shared it fail at once, and the server may be there for a new one.
    pub(crate) fn record(self, failure: Option<&Failure>) {
        match failure.filter(|failure| failure.is_disconnected()) {
            Some(failure) if failure.delivery == Delivery::Lost => {}
            Some(failure) => self.breaker.count(&mut self.breaker.state(), failure),
            None => self.breaker.note_answer(),
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.is_probe {
            self.breaker.state().probing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const INTERVAL: Duration = Duration::from_secs(1);

    fn away() -> Failure {
        Failure::unavailable(Delivery::NotSent, "connection refused")
    }

    #[tokio::test(start_paused = true)]
    async fn breaker_opens_after_consecutive_failures_and_closes_after_an_answer() {
        let breaker = Breaker::new(3, INTERVAL);
        let fail = || breaker.acquire().unwrap().record(Some(&away()));
        let answer = Failure::not_found("no collection");
        fail();
        fail();
        breaker.acquire().unwrap().record(Some(&answer));
        fail();
        fail();
        breaker.acquire().unwrap();
        fail();
        let refused = breaker.acquire().unwrap_err();
        assert_eq!(refused.delivery, Delivery::NotSent);
        assert!(
            refused.message.contains("3 consecutive failures")
                && refused.message.contains("connection refused")
        );

        advance(INTERVAL).await;
        fail();
        assert!(breaker.acquire().is_err(), "a failed probe must not close the breaker");
        advance(INTERVAL).await;
        let probe = breaker.acquire().unwrap();
        assert!(breaker.acquire().is_err(), "one call may probe");
        drop(probe);
        let probe = breaker.acquire().unwrap();
        probe.record(None);
        breaker.acquire().unwrap();
        breaker.acquire().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn silence_opens_the_breaker_until_an_answer() {
        let breaker = Breaker::new(3, INTERVAL);
        let start = Instant::now();
        breaker.note_silence(&Failure::timeout(INTERVAL));
        assert!(breaker.acquire().is_err() && breaker.was_silent_since(start));
        advance(INTERVAL).await;
        assert!(!breaker.has_answered_since(start) && !breaker.was_silent_since(Instant::now()));
        breaker.acquire().unwrap().record(None);
        breaker.acquire().unwrap();
        assert!(breaker.has_answered_since(start) && !breaker.was_silent_since(start));
        assert!(!breaker.has_answered_since(start + 2 * INTERVAL));
    }

    #[tokio::test(start_paused = true)]
    async fn lost_connections_neither_open_the_breaker_nor_close_it() {
        let breaker = Breaker::new(2, INTERVAL);
        let lost = Failure::unavailable(Delivery::Lost, "connection closed");
        let call = |failure: &Failure| breaker.acquire().unwrap().record(Some(failure));
        (0..10).for_each(|_| call(&lost));
        call(&away());
        call(&lost);
        call(&away());
        assert!(breaker.acquire().is_err(), "a lost connection must not count as an answer");
        advance(INTERVAL).await;
        call(&lost);
        breaker.acquire().unwrap();
    }
}
