"""Requests that no cache answers."""
import unittest

from harness.load import unlike


class Unlike(unittest.TestCase):
    def test_unlike_queries_differ_in_spaces_alone(self) -> None:
        found = unlike(["one two three", "four five"], 9)
        self.assertEqual(len(set(found)), 9)
        self.assertEqual({tuple(query.split()) for query in found}, {("one", "two", "three"), ("four", "five")})

    def test_unlike_ends_when_no_other_spacing_is_left(self) -> None:
        self.assertEqual(unlike(["a b", "c"], 100), ["a b", "c", "a  b", "a   b"])


if __name__ == "__main__":
    unittest.main()
