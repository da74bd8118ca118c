//! The conformance suite for every [`VectorStore`](crate::VectorStore): one function per case, and a macro that turns
//! the cases into tests.
//!
//! Each case creates its own collections with random names and touches nothing else, so the suite can run on a store
//! that is in use. See [`vector_store_suite!`](crate::vector_store_suite).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "the cases are tests"
)]

mod begun_batches;
mod collections;
mod concurrency;
mod dense;
mod dropping;
mod filters;
mod hidden_points;
mod model;
mod points;
mod rng;
mod scale;
mod scope;
mod scroll;
mod snapshot;
mod sparse;
mod support;
mod values;

pub use self::{
    begun_batches::*, collections::*, concurrency::*, dense::*, dropping::*, filters::*, hidden_points::*,
    model::*, points::*, scale::*, scope::*, scroll::*, snapshot::*, sparse::*, values::*,
};

/// Turns every case of the conformance suite into a `#[tokio::test]`.
///
/// The argument is an expression whose future returns a pair: the store as `Arc<dyn VectorStore>`, and a guard that
/// lives as long as the test, such as a temporary folder. It is evaluated once per case. The optional argument `copy:`
/// is an `async fn(&Path)` that opens a snapshot and returns such a pair; with it, the suite also reads snapshots back.
///
/// The calling crate needs tokio with the features `macros` and `rt-multi-thread`.
///
/// ```text
/// async fn store() -> (Arc<dyn VectorStore>, TempDir) { … }
/// async fn open_copy(folder: &Path) -> (Arc<dyn VectorStore>, ()) { … }
///
/// lkr_vectors::vector_store_suite!(store(), copy: open_copy);
/// ```
#[macro_export]
macro_rules! vector_store_suite {
    ($make:expr, copy: $copy:path) => {
        $crate::vector_store_suite!($make);
        $crate::vector_store_suite!(@copy $make, $copy;
            snapshot_contains_earlier_writes_only
            snapshot_during_writes_contains_complete_upserts
        );
    };
    ($make:expr) => {
        $crate::vector_store_suite!(@each $make;
            ensure_twice_keeps_the_collection
            ensure_with_another_specification_conflicts
            ensure_with_the_name_of_an_alias_conflicts
            operations_on_an_unknown_collection_return_not_found
            switch_creates_and_moves_aliases
            switch_with_one_bad_pair_changes_no_alias
            switch_resolves_targets_before_changing_aliases
            alias_is_accepted_by_every_operation
            drop_collection_removes_points_and_aliases
            equal_ids_in_two_collections_are_separate_points
            forty_collections_with_long_names_coexist
            get_and_scroll_return_points_as_stored
            payload_of_any_json_value_is_returned_unchanged
            get_returns_points_in_the_order_of_the_ids
            upsert_of_an_existing_id_removes_the_old_point_from_every_index
            upsert_of_equal_ids_in_one_batch_stores_the_last
            upsert_with_one_invalid_point_stores_nothing
            upsert_of_several_collections_stores_the_last_after_the_others
            empty_batches_change_nothing
            delete_removes_matching_points_from_every_index
            deleted_id_can_be_stored_again
            set_tags_replaces_only_tags_of_matching_points
            long_tags_are_compared_in_full
            dense_hits_are_sorted_by_cosine
            dense_ties_are_sorted_by_id
            dense_query_after_a_change_sees_it
            dense_query_skips_points_without_a_dense_vector
            invalid_dense_query_fails_the_batch
            dense_query_respects_filter_and_limit
            sparse_scores_equal_the_formula
            sparse_idf_ignores_deleted_and_replaced_points
            sparse_idf_ignores_the_filter
            sparse_ties_are_sorted_by_id
            points_outside_the_scope_change_no_hit
            random_points_of_other_spaces_change_no_result
            scope_contains_the_points_of_its_spaces
            set_tags_moves_points_between_spaces
            sparse_query_skips_points_without_a_shared_term
            empty_sparse_vectors_are_accepted
            sparse_query_respects_filter_and_limit
            sparse_query_handles_extreme_terms_and_weights
            query_batch_returns_results_in_query_order
            begun_batch_sees_the_state_in_which_it_began
            invalid_query_fails_a_begun_batch_at_its_end
            dropped_begun_batches_leave_the_store_usable
            filters_select_the_same_points_in_every_operation
            value_filters_match_the_reference
            scroll_returns_every_point_once
            scroll_during_changes_returns_unchanged_points_once
            scroll_with_a_foreign_cursor_is_invalid
            concurrent_writers_lose_no_update
            concurrent_upserts_of_one_id_leave_one_complete_version
            concurrent_deletes_count_each_point_once
            concurrent_ensure_creates_one_collection
            dropped_upsert_stores_all_points_or_none
            dropped_delete_removes_all_points_or_none
            dropped_reads_and_snapshots_leave_the_store_usable
            upsert_of_five_thousand_points_is_stored_completely
            filters_and_gets_accept_thousands_of_ids
            random_operations_match_the_reference
            snapshot_creates_a_folder_and_refuses_an_existing_one
            health_of_a_working_store_is_ok
        );
    };
    (@each $make:expr; $($case:ident)*) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let (store, _guard) = $make.await;
            $crate::conformance::$case(store).await;
        }
    )* };
    (@copy $make:expr, $copy:path; $($case:ident)*) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let (store, _guard) = $make.await;
            $crate::conformance::$case(store, async |folder: &std::path::Path| $copy(folder).await).await;
        }
    )* };
}

#[cfg(test)]
mod tests {
    #[test]
    fn macro_lists_every_case() {
        let listed = include_str!("conformance.rs");
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/conformance");
        let mut cases = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("support.rs") || path.ends_with("rng.rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for line in text.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
                let name: String = line.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                assert!(
                    listed.lines().any(|line| line.trim() == name),
                    "case {name} is missing in the macro"
                );
                cases += 1;
            }
        }
        assert!(cases > 40, "found only {cases} cases");
    }
}
