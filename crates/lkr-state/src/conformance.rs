//! The conformance suites for every [`StateStore`] and [`TaskQueue`]: one function per case, and macros that turn the
//! cases into tests. See [`state_store_suite!`](crate::state_store_suite) and
//! [`task_queue_suite!`](crate::task_queue_suite).
//!
//! Each case of the store uses keys with its own random prefix and touches nothing else, so the suite can run on a store
//! that is in use. A queue has no prefixes: each case of the queue needs an empty queue with no other workers.
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
mod flows;
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
    pub use super::{claims::*, flows::*, queue::*};
}

/// Turns every case of the conformance suite of state stores into a `#[tokio::test]`.
///
/// The argument is an expression whose future returns a pair: the store as `Arc<dyn StateStore>`, and a guard that lives
/// as long as the test, such as a temporary folder. It is evaluated once per case. The optional argument `copy:` is an
/// `async fn(&Path)` that opens a snapshot and returns such a pair; with it, the suite also reads snapshots back.
///
/// The calling crate needs tokio with the features `macros` and `rt-multi-thread`.
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
            snapshot_contains_earlier_writes_only
            snapshot_during_writes_contains_complete_steps
        );
    };
    ($make:expr) => {
        $crate::state_store_suite!(@each $make;
            get_returns_the_last_value_put
            get_many_returns_records_in_the_order_of_the_keys
            expect_absent_holds_only_without_a_record
            expect_version_holds_only_until_the_next_write
            conflict_in_one_write_changes_no_key
            check_guards_other_writes_and_changes_nothing
            delete_removes_the_record_from_every_read
            versions_increase_across_deletes_and_expiry
            apply_of_four_hundred_writes_applies_all
            concurrent_puts_that_expect_absent_have_one_winner
            concurrent_compare_and_set_loses_no_update
            concurrent_reads_see_all_writes_of_a_step_or_none
            dropped_apply_writes_all_keys_or_none
            increment_starts_at_zero_and_adds_one
            increment_of_a_value_that_is_no_counter_starts_at_zero
            concurrent_increments_are_all_counted
            keys_of_any_characters_up_to_400_bytes_are_distinct
            empty_or_too_long_keys_are_invalid
            values_up_to_one_mebibyte_are_stored
            apply_with_a_key_twice_is_invalid
            empty_requests_change_nothing
            scan_returns_only_keys_with_the_prefix
            scan_returns_keys_in_byte_order_in_both_directions
            scan_starts_after_the_given_key
            scan_pages_during_changes_return_unchanged_records_once
            scan_handles_prefixes_with_extreme_characters
            scan_with_the_empty_prefix_returns_all_keys
            scan_many_returns_what_each_scan_returns_alone
            scan_many_during_moves_finds_each_record_once
            expired_record_is_in_no_read
            expired_record_counts_as_absent_in_expectations
            put_replaces_the_ttl
            ttl_of_zero_expires_at_once_and_a_huge_ttl_never
            increment_keeps_the_ttl
            snapshot_creates_a_folder_and_refuses_an_existing_one
            health_of_a_working_store_is_ok
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

/// Turns every case of the conformance suite of task queues into a `#[tokio::test]`.
///
/// The argument is an expression whose future returns a pair: an empty queue as `Arc<dyn TaskQueue>`, and a guard that
/// lives as long as the test. It is evaluated once per case.
///
/// The calling crate needs tokio with the features `macros` and `rt-multi-thread`.
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
            empty_queue_has_no_task_to_claim
            task_counts_until_it_is_finished
            oldest_task_is_the_one_with_the_smallest_id
            tasks_are_counted_by_flow
            push_of_a_queued_task_changes_nothing
            push_of_a_claimed_task_changes_nothing
            finished_or_removed_task_can_be_pushed_again
            delayed_task_is_claimable_only_after_its_delay
            claim_returns_the_task_claimable_for_longest
            remove_takes_queued_delayed_and_claimed_tasks
            retry_makes_the_task_claimable_again
            retry_with_a_delay_is_claimable_only_after_it
            retried_task_queues_behind_earlier_tasks
            task_under_lease_is_not_claimed_again
            expired_lease_lets_another_worker_claim_the_task
            expired_lease_is_valid_until_another_claim
            heartbeat_extends_or_shortens_the_lease
            finished_or_forged_claim_is_refused
            claim_of_a_removed_task_is_lost
            waiting_claim_gets_a_pushed_or_retried_task
            waiting_claim_gets_a_task_whose_delay_or_lease_ends
            each_waiting_claim_gets_a_task
            claim_without_a_task_returns_after_its_wait
            concurrent_workers_claim_each_task_once
            concurrent_workers_finish_every_task_once
            concurrent_pushes_of_one_task_queue_it_once
            dropped_claims_lose_no_task
            dropped_queue_writes_apply_or_do_nothing
            durations_beyond_the_clock_never_end
            burst_of_one_flow_lets_other_flows_pass
            flows_take_turns_by_cost
            long_tasks_are_claimed_in_their_lane_only
            flows_with_claims_are_not_in_the_spare_lane
            retried_task_keeps_its_flow
            health_of_a_working_queue_is_ok
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
    fn macros_list_every_case() {
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
                assert!(
                    listed.lines().any(|line| line.trim() == name),
                    "case {name} is missing in the macros"
                );
                cases += 1;
            }
        }
        assert!(cases > 50, "found only {cases} cases");
    }
}
