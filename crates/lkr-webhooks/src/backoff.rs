//! The wait between two attempts of a delivery.

use std::time::Duration;

use crate::DeliveryOptions;

/// The wait after attempt number `attempts`, counted from 1, failed. It doubles with each attempt up to
/// `max_backoff`, and is then changed by a random ± 25 %, so that deliveries that failed together are not retried
/// together. See docs/studies.md#webhook-backoff.
pub(crate) fn backoff(options: &DeliveryOptions, attempts: u32) -> Duration {
    let factor = 2_u32.saturating_pow(attempts.saturating_sub(1).min(31));
    let delay = options.initial_backoff.saturating_mul(factor).min(options.max_backoff);
    delay.mul_f64(rand::random_range(0.75..=1.25))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn backoff_any_attempt_stays_between_the_bounds(attempts: u32) {
            let options = DeliveryOptions::default();
            let delay = backoff(&options, attempts);
            prop_assert!(delay >= options.initial_backoff.mul_f64(0.74));
            prop_assert!(delay <= options.max_backoff.mul_f64(1.26));
            if attempts > 20 {
                prop_assert!(delay >= options.max_backoff.mul_f64(0.74));
            }
        }
    }

    #[test]
    fn backoff_of_one_day_allows_a_few_dozen_attempts() {
        let options =
            DeliveryOptions { max_backoff: Duration::from_secs(3600), ..DeliveryOptions::default() };
        let mut elapsed = Duration::ZERO;
        let attempts = (1..).take_while(|&attempts| {
            elapsed += backoff(&options, attempts);
            elapsed < options.max_age
        });
        let attempts = attempts.count();
        assert!((25..60).contains(&attempts), "{attempts}");
    }
}
