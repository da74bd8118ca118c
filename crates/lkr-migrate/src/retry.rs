//! Repeating what failed because a store is away.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::{Error, Result, error::StoreError};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Runs `attempt` until it succeeds, fails for another reason than an unavailable store, or has failed for `retry_for`.
/// `operation` names it in the error.
pub(crate) async fn retried<T, E, F>(
    retry_for: Duration,
    operation: &'static str,
    mut attempt: impl FnMut() -> F,
) -> Result<T>
where
    E: StoreError,
    F: Future<Output = Result<T, E>>,
{
    let (begun, mut pause) = (Instant::now(), FIRST_PAUSE);
    loop {
        let error = match attempt().await {
            Ok(value) => return Ok(value),
            Err(error) => Error::store(operation, error),
        };
        if !error.is_retryable() || begun.elapsed() + pause > retry_for {
            return Err(error);
        }
        tracing::warn!(%error, pause_ms = pause.as_millis(), "a store is unavailable; will retry");
        sleep(pause).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use lkr_state::ErrorKind as StateErrorKind;

    use super::*;
    use crate::ErrorKind;

    fn fail(kind: StateErrorKind) -> lkr_state::Result<()> {
        Err(lkr_state::Error::new(kind, "apply", "down"))
    }

    #[tokio::test]
    async fn unavailable_store_is_asked_again_until_the_bound() {
        let mut attempts = 0;
        let retry_for = Duration::from_millis(800);
        let result = retried(retry_for, "write records", || {
            attempts += 1;
            let result = if attempts < 3 { fail(StateErrorKind::Unavailable) } else { Ok(()) };
            std::future::ready(result)
        });
        result.await.unwrap();
        assert_eq!(attempts, 3);
        let failing =
            retried(retry_for, "write records", || std::future::ready(fail(StateErrorKind::Unavailable)));
        let error = failing.await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Unavailable, "write records"));
    }

    #[tokio::test]
    async fn other_failures_are_not_repeated() {
        let mut attempts = 0;
        let failing = retried(Duration::from_secs(60), "write records", || {
            attempts += 1;
            std::future::ready(fail(StateErrorKind::Corrupt))
        });
        assert_eq!(failing.await.unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(attempts, 1);
    }
}
