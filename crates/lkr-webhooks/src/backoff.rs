//! When to try again.

use std::time::Duration;

use crate::DeliveryOptions;

/// How long to wait after the `attempts`-th try failed, which is counted from 1: twice as long each time, up to a
/// bound, and a quarter more or less, so that those that failed together do not come back together.
pub(crate) fn wait(options: &DeliveryOptions, attempts: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1).min(31));
    let wait = options.first_wait.saturating_mul(doubled).min(options.longest_wait);
    wait.mul_f64(rand::random_range(0.75..=1.25))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn waits_grow_to_a_bound(attempts: u32) {
            let options = DeliveryOptions::default();
            let wait = wait(&options, attempts);
            prop_assert!(wait >= options.first_wait.mul_f64(0.74) && wait <= options.longest_wait.mul_f64(1.26));
            if attempts > 20 {
                prop_assert!(wait >= options.longest_wait.mul_f64(0.74));
            }
        }
    }

    #[test]
    fn a_day_has_a_few_dozen_tries() {
        let options =
            DeliveryOptions { longest_wait: Duration::from_secs(3600), ..DeliveryOptions::default() };
        let mut passed = Duration::ZERO;
        let tries = (1..).take_while(|&attempts| {
            passed += wait(&options, attempts);
            passed < options.keep
        });
        let tries = tries.count();
        assert!((25..60).contains(&tries), "{tries}");
    }
}
