"""nDCG and percentiles against values computed by hand."""
import math
import unittest

from harness.metrics import distinct, ndcg, percentile


class Ndcg(unittest.TestCase):
    def test_ndcg_of_the_ideal_ranking_is_one(self) -> None:
        self.assertEqual(ndcg(["a", "b", "x"], {"a": 1.0, "b": 1.0}), 1.0)

    def test_ndcg_discounts_by_the_logarithm_of_the_rank(self) -> None:
        # One relevant item at rank 3: 1 / log2(4) = 0.5, and the ideal is 1.
        self.assertAlmostEqual(ndcg(["x", "y", "a"], {"a": 1.0}), 0.5)
        # Ranks 1 and 3 of two: (1 + 0.5) / (1 + 1 / log2(3)).
        self.assertAlmostEqual(ndcg(["a", "x", "b"], {"a": 1.0, "b": 1.0}), 1.5 / (1.0 + 1.0 / math.log2(3.0)))

    def test_ndcg_has_linear_gains(self) -> None:
        # (1 + 2 / log2(3)) / (2 + 1 / log2(3)) = 2.261859507 / 2.630929754
        self.assertAlmostEqual(ndcg(["b", "a"], {"a": 2.0, "b": 1.0}), 0.8597186998521971)

    def test_ndcg_ends_behind_the_tenth_item(self) -> None:
        others = [f"x{number}" for number in range(10)]
        self.assertAlmostEqual(ndcg([*others[:9], "a"], {"a": 1.0}), 1.0 / math.log2(11.0))
        self.assertEqual(ndcg([*others, "a"], {"a": 1.0}), 0.0)

    def test_ndcg_counts_a_repeated_item_once_and_moves_the_others_up(self) -> None:
        self.assertEqual(ndcg(["a", "a", "a", "b"], {"a": 1.0, "b": 1.0}), 1.0)

    def test_ndcg_with_more_than_ten_relevant_items_can_reach_one(self) -> None:
        gains = {str(number): 1.0 for number in range(20)}
        self.assertEqual(ndcg(list(gains), gains), 1.0)

    def test_ndcg_without_results_or_gains_is_zero(self) -> None:
        self.assertEqual(ndcg([], {"a": 1.0}), 0.0)
        self.assertEqual(ndcg(["a"], {}), 0.0)


class Percentile(unittest.TestCase):
    def test_percentile_is_the_smallest_value_that_the_share_does_not_exceed(self) -> None:
        values = [float(value) for value in range(100, 0, -1)]
        found = [percentile(values, share) for share in (0.5, 0.99, 1.0)]
        self.assertEqual(found, [50.0, 99.0, 100.0])
        self.assertEqual((percentile([3.0, 1.0, 2.0], 0.5), percentile([7.0], 0.99)), (2.0, 7.0))


class Distinct(unittest.TestCase):
    def test_distinct_keeps_the_first_of_equal_items(self) -> None:
        self.assertEqual(distinct(["b", "a", "b", "c", "a"]), ["b", "a", "c"])


if __name__ == "__main__":
    unittest.main()
