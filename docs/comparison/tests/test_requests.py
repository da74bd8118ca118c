"""Requests that no cache answers."""
import itertools
import math
import unittest

from harness.requests import GAP, LONGEST_GAP, NOISE, unlike, unlike_vectors


class Unlike(unittest.TestCase):
    def test_unlike_queries_differ_in_spaces_alone(self) -> None:
        found = list(itertools.islice(unlike(["one two three", "four five"], 9), 9))
        self.assertEqual(len(set(found)), 9)
        self.assertEqual({tuple(query.split()) for query in found}, {("one", "two", "three"), ("four", "five")})

    def test_longer_runs_of_spaces_are_taken_only_if_they_are_needed(self) -> None:
        self.assertEqual(list(unlike(["a b", "c"], GAP + 1)), ["a b", "c", "a  b", "a   b"])
        self.assertEqual(len(set(unlike(["a b", "c"], GAP + 2))), GAP + 2)

    def test_too_few_queries_are_an_error_that_names_how_many_requests_there_are_and_are_needed(self) -> None:
        with self.assertRaisesRegex(ValueError, rf"^2 queries give {LONGEST_GAP + 1} requests .*; 20,000 are needed$"):
            unlike(["ice moons", "europa"], 20_000)

    def test_queries_of_the_same_words_count_once(self) -> None:
        self.assertEqual(list(unlike(["a b", "a  b", ""], 3)), ["a b", "a  b", "a   b"])

    def test_given_vectors_are_unlike_without_end_and_almost_the_same(self) -> None:
        vectors = [[0.6, 0.8] + [0.0] * 20, [1.0] + [0.0] * 21]
        found = list(itertools.islice(unlike_vectors(vectors), 1000))
        self.assertEqual(len({tuple(vector) for vector in found}), 1000)
        furthest = max(math.dist(vector, vectors[at % 2]) for at, vector in enumerate(found))
        self.assertLess(furthest, 3 * NOISE)
        self.assertEqual(found[:5], list(itertools.islice(unlike_vectors(vectors), 5)), "the noise has a seed")


if __name__ == "__main__":
    unittest.main()
