//! What every [`VectorStore`](crate::VectorStore) is held to: one function for each case, and a macro that makes tests
//! of them.
//!
//! Each case makes collections of its own with random names, and leaves everything else alone, so that the suite
//! can run on a store that others use. See [`vector_store_suite!`](crate::vector_store_suite).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "the cases are tests"
)]

mod collections;
mod concurrency;
mod dense;
mod dropping;
mod filters;
mod model;
mod points;
mod rng;
mod scale;
mod scroll;
mod snapshot;
mod sparse;
mod support;

pub use self::{
    collections::*, concurrency::*, dense::*, dropping::*, filters::*, model::*, points::*, scale::*,
    scroll::*, snapshot::*, sparse::*,
};

/// Makes a `#[tokio::test]` of every case of the conformance suite.
///
/// The argument is an expression whose future answers a pair: the store as `Arc<dyn VectorStore>`, and whatever must
/// live as long as the test, such as a temporary folder. It is evaluated once for each case. With `copy:` comes an
/// `async fn(&Path)` that opens a snapshot and answers such a pair; then snapshots are read back as well.
///
/// The crate that calls it needs tokio with the features `macros` and `rt-multi-thread`.
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
            snapshot_holds_everything
            snapshot_while_writing_is_consistent
        );
    };
    ($make:expr) => {
        $crate::vector_store_suite!(@each $make;
            ensure_makes_a_collection_once
            ensure_of_another_specification_conflicts
            ensure_of_an_alias_conflicts
            unknown_collections_are_not_found
            switch_makes_and_moves_aliases
            switch_is_done_whole_or_not_at_all
            switch_resolves_aliases_before_the_step
            an_alias_will_do_everywhere
            drop_removes_points_and_aliases
            collections_do_not_mix
            many_collections_live_side_by_side
            points_come_back_whole
            payloads_of_every_kind_come_back
            get_keeps_the_order_of_the_ids
            a_replaced_point_leaves_nothing_behind
            the_last_of_equal_ids_counts
            a_wrong_point_refuses_the_whole_batch
            empty_batches_do_nothing
            delete_removes_what_passes
            a_deleted_id_can_return
            set_tags_replaces_tags
            long_tags_are_compared_whole
            dense_hits_are_sorted_by_cosine
            dense_ties_are_sorted_by_id
            dense_queries_see_changes_at_once
            points_without_dense_vector_are_no_dense_hits
            wrong_dense_queries_are_invalid
            dense_queries_obey_filters_and_limits
            sparse_scores_are_exact
            sparse_idf_counts_live_points
            sparse_idf_ignores_the_filter
            sparse_ties_are_sorted_by_id
            points_that_share_no_term_are_no_hits
            empty_sparse_vectors_do_no_harm
            sparse_queries_obey_filters_and_limits
            extreme_terms_and_weights
            a_batch_is_answered_in_order
            filters_of_every_kind
            scroll_answers_every_point_once
            scroll_is_stable_under_changes
            bad_cursors_are_invalid
            concurrent_writers_lose_nothing
            concurrent_writers_of_one_point_leave_one_whole
            concurrent_deletes_count_each_point_once
            concurrent_ensure_makes_one_collection
            dropped_upserts_happen_whole_or_not_at_all
            dropped_deletes_happen_whole_or_not_at_all
            dropped_reads_and_snapshots_do_no_harm
            a_large_batch_is_taken_at_once
            long_lists_in_filters_and_gets
            answers_equal_the_reference
            snapshot_makes_a_new_folder
            health_is_good
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
    fn every_case_is_in_the_macro() {
        let listed = include_str!("mod.rs");
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
                assert!(listed.lines().any(|line| line.trim() == name), "{name} is in no test");
                cases += 1;
            }
        }
        assert!(cases > 40, "{cases}");
    }
}
