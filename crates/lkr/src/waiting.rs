//! Waiting for stores that are away.

use std::{fmt::Display, time::Duration};

use tokio::time::{Instant, sleep};

/// The time between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The time between two lines in the log.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Repeats a step of a start while it fails because `what` is away, as `is_away` tells by the error: several services are often
/// started at once. The reason is logged at once and every minute.
///
/// # Errors
/// The first error that waiting does not help against.
pub async fn until_available<T, E, F>(
    what: &str,
    step: impl Fn() -> F,
    is_away: impl Fn(&E) -> bool,
) -> Result<T, E>
where
    E: Display,
    F: Future<Output = Result<T, E>>,
{
    let mut logged: Option<Instant> = None;
    loop {
        match step().await {
            Err(error) if is_away(&error) => {
                if logged.is_none_or(|logged| logged.elapsed() >= LOG_INTERVAL) {
                    tracing::warn!(%error, "{what} is away; the start waits for it");
                    logged = Some(Instant::now());
                }
                sleep(RETRY_INTERVAL).await;
            }
            result => {
                if logged.is_some() && result.is_ok() {
                    tracing::info!("{what} answers; the start goes on");
                }
                return result;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn start_waits_for_a_store_that_is_away() {
        let (tries, begun) = (Cell::new(0), Instant::now());
        let open = || async {
            tries.set(tries.get() + 1);
            if tries.get() < 4 { Err("connection refused") } else { Ok(tries.get()) }
        };
        assert_eq!(until_available("Redis", open, |error| error.contains("refused")).await, Ok(4));
        assert_eq!(begun.elapsed(), 3 * RETRY_INTERVAL);
    }

    #[tokio::test(start_paused = true)]
    async fn start_fails_at_once_if_waiting_does_not_help() {
        let begun = Instant::now();
        let open = || async { Err::<(), _>("wrong password") };
        assert_eq!(
            until_available("Redis", open, |error| error.contains("refused")).await,
            Err("wrong password")
        );
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
