//! What every [`StateStore`] and [`TaskQueue`] is held to: one function for each case, and macros that make tests
//! of them. See [`state_store_suite!`](crate::state_store_suite) and [`task_queue_suite!`](crate::task_queue_suite).
//!
//! The cases of the store work below random prefixes of their own and leave everything else alone, so that the suite
//! can run on a store that others use. A queue has no parts: each case of the queue needs an empty one that nobody
//! else claims from.
//!
//! [`StateStore`]: crate::StateStore
//! [`TaskQueue`]: crate::TaskQueue
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "the cases are tests"
)]

mod claims;
mod counters;
mod limits;
mod queue;
mod scan;
mod snapshot;
mod steps;
mod support;
mod ttl;

/// The cases of [`state_store_suite!`](crate::state_store_suite).
pub mod state_cases {
    pub use super::{counters::*, limits::*, scan::*, snapshot::*, steps::*, ttl::*};
}

/// The cases of [`task_queue_suite!`](crate::task_queue_suite).
pub mod queue_cases {
    pub use super::{claims::*, queue::*};
}

/// Makes a `#[tokio::test]` of every case of the conformance suite of state stores.
///
/// The argument is an expression whose future answers a pair: the store as `Arc<dyn StateStore>`, and whatever must
/// live as long as the test, such as a temporary folder. It is evaluated once for each case. With `copy:` comes an
/// `async fn(&Path)` that opens a snapshot and answers such a pair; then snapshots are read back as well.
///
/// The crate that calls it needs tokio with the features `macros` and `rt-multi-thread`.
///
/// ```text
/// async fn store() -> (Arc<dyn StateStore>, TempDir) { … }
/// async fn open_copy(folder: &Path) -> (Arc<dyn StateStore>, ()) { … }
///
/// lkr_state::state_store_suite!(store(), copy: open_copy);
/// ```
#[macro_export]
macro_rules! state_store_suite {
    ($make:expr, copy: $copy:path) => {
        $crate::state_store_suite!($make);
        $crate::state_store_suite!(@copy $make, $copy;
            snapshot_holds_everything
            snapshot_while_writing_is_consistent
        );
    };
    ($make:expr) => {
        $crate::state_store_suite!(@each $make;
            records_come_back
            get_many_keeps_the_order_of_the_keys
            absent_is_expected_rightly
            versions_are_expected_rightly
            a_conflict_changes_nothing
            checks_change_nothing
            deletes_remove_records
            versions_grow_and_never_come_back
            a_step_over_many_keys_is_one
            concurrent_claims_of_a_key_have_one_winner
            concurrent_compare_and_set_loses_no_update
            steps_are_seen_whole
            dropped_steps_happen_whole_or_not_at_all
            counters_count
            counters_begin_anew_on_other_values
            concurrent_increments_lose_nothing
            keys_of_every_length_and_kind
            wrong_keys_are_invalid
            values_up_to_a_mebibyte
            a_key_comes_once_in_a_step
            empty_requests_do_nothing
            scan_keeps_to_the_prefix
            scan_goes_both_ways
            scan_begins_beyond_after
            scan_pages_hold_every_record_once
            scan_of_strange_prefixes
            scan_of_the_empty_prefix_is_of_everything
            records_expire
            expired_records_are_absent
            ttl_is_of_the_last_put
            ttl_of_none_and_of_ages
            counters_keep_their_ttl
            snapshot_makes_a_new_folder
            health_is_good
        );
    };
    (@each $make:expr; $($case:ident)*) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let (store, _guard) = $make.await;
            $crate::conformance::state_cases::$case(store).await;
        }
    )* };
    (@copy $make:expr, $copy:path; $($case:ident)*) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let (store, _guard) = $make.await;
            let open = async |folder: &std::path::Path| $copy(folder).await;
            $crate::conformance::state_cases::$case(store, open).await;
        }
    )* };
}

/// Makes a `#[tokio::test]` of every case of the conformance suite of task queues.
///
/// The argument is an expression whose future answers a pair: an empty queue as `Arc<dyn TaskQueue>`, and whatever
/// must live as long as the test. It is evaluated once for each case.
///
/// The crate that calls it needs tokio with the features `macros` and `rt-multi-thread`.
///
/// ```text
/// async fn queue() -> (Arc<dyn TaskQueue>, TempDir) { … }
///
/// lkr_state::task_queue_suite!(queue());
/// ```
#[macro_export]
macro_rules! task_queue_suite {
    ($make:expr) => {
        $crate::task_queue_suite!(@each $make;
            an_empty_queue_gives_nothing
            a_task_goes_through
            push_is_idempotent
            push_of_a_claimed_task_does_nothing
            a_finished_task_can_be_pushed_again
            a_delayed_task_waits
            claims_come_in_order
            remove_takes_a_task_from_whoever_holds_it
            retry_gives_a_task_back
            retry_waits_out_its_delay
            given_back_tasks_queue_behind
            claimed_tasks_are_not_claimed_again
            a_lost_lease_passes_the_task_on
            an_expired_lease_holds_until_it_is_taken
            a_heartbeat_keeps_the_lease
            a_claim_is_good_once
            claims_of_what_was_removed_are_lost
            claim_waits_for_a_push
            claim_waits_for_a_delay_and_for_a_lease
            every_waiter_gets_a_task
            claim_waits_its_time_and_gives_up
            no_two_workers_get_the_same_task
            no_task_is_lost_between_workers
            concurrent_pushes_of_one_task_make_one
            dropped_claims_lose_nothing
            dropped_writes_happen_whole_or_not_at_all
            times_without_end
            queue_health_is_good
        );
    };
    (@each $make:expr; $($case:ident)*) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let (queue, _guard) = $make.await;
            $crate::conformance::queue_cases::$case(queue).await;
        }
    )* };
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_case_is_in_a_macro() {
        let listed = include_str!("conformance.rs");
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/conformance");
        let mut cases = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("support.rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for line in text.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
                let name: String = line.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                assert!(listed.lines().any(|line| line.trim() == name), "{name} is in no test");
                cases += 1;
            }
        }
        assert!(cases > 50, "{cases}");
    }
}
