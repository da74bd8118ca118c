"""The texts and figures of the comparison of embedding engines."""
import array
import pathlib
import unittest

from harness.collection import Text
from harness.inference import HEADS, LETTERS, PASSAGES, mean_cosine, of_throughput, passages, queries, row
from inference import vectors_of

PRINTED = """opened in 65 ms
passages: 100.0 per CPU second, 80.0 per second
passages: 125.0 per CPU second, 100.0 per second
queries: 0.61 ms median, 0.75 ms of CPU each
anonymous memory 33840 kB
"""


class Texts(unittest.TestCase):
    def test_passages_are_the_first_rows_of_middling_length_in_one_line(self) -> None:
        rows = [Text("a", "", "short"), Text("b", "", "x\n" * 400), Text("c", "", "y" * LETTERS.stop)]
        self.assertEqual(passages(rows), [" ".join("x" * 400)])
        self.assertEqual(len(passages(rows[1:2] * 300)), PASSAGES)

    def test_queries_are_the_first_words(self) -> None:
        self.assertEqual(queries(["1 2 3 4 5 6 7 8 9", "a"]), ["1 2 3 4 5 6 7 8", "a"])


class Figures(unittest.TestCase):
    def test_figures_of_throughput_are_read(self) -> None:
        found = of_throughput(PRINTED)
        self.assertEqual(found["passages"], [{"cpu_ms": 10.0, "wall_ms": 12.5}, {"cpu_ms": 8.0, "wall_ms": 10.0}])
        self.assertEqual(found["queries"], [{"cpu_ms": 0.75, "wall_ms": 0.61}])
        with self.assertRaises(ValueError):
            of_throughput("no such model")

    def test_row_has_the_best_size_of_batches_and_medians_over_rounds(self) -> None:
        def record(cpu: float) -> dict[str, object]:
            def figures(ms: float) -> list[dict[str, float]]:
                return [{"cpu_ms": ms, "wall_ms": 2 * ms}]

            sizes = {"1": figures(cpu), "4": figures(cpu / 2)}
            return {"engine": "x", "passages": sizes, "queries": figures(1.0), "cosine": 0.99, "foreign": cpu / 10}

        cells = row([record(10.0), record(20.0), record(100.0)], 1)
        self.assertEqual(cells, ["x", "1", "4", "100.0", "50.0", "1.00", "2.00", "0.9900", "1.00 to 10.00"])
        self.assertEqual(len(cells), len(HEADS))

    def test_cosine_of_vectors_of_a_file(self) -> None:
        vectors = vectors_of(array.array("f", [1.0, 0.0, 0.6, 0.8]).tobytes(), 2)
        self.assertAlmostEqual(mean_cosine(vectors, [[1.0, 0.0], [0.8, 0.6]]), (1.0 + 0.96) / 2, 6)


if __name__ == "__main__":
    unittest.main()
