"""Tables from the records of runs."""
import unittest

from report import indexing, runs_by_case, searches

STEP = {"clients": 8, "rate": 10.0, "failed": 1, "p50_ms": 2.0, "p99_ms": 4.0, "cpu_ms": 3.0}
RUN = {
    "round": 0, "system": "a", "variant": "A", "collection": "c", "chunking": "own", "chunks": 300, "cut": 0.5,
    "text_kb": 450.0,
    "index": {"wall_s": 20.0, "cpu_s": 30.0, "foreign": 0.25}, "index_peak_mb": 1500.0, "disk_mb": 1.5,
    "quality": {"documents": 0.5}, "memory": {"anonymous": 70.0},
    "load": [STEP | {"anonymous_mb": 80.0, "foreign": 0.1}],
}


def row(table: str) -> list[str]:
    """The cells of the only row of a table."""
    return [cell.strip() for cell in table.splitlines()[2].strip("|").split("|")]


class Report(unittest.TestCase):
    def test_figures_are_medians_over_the_runs_and_the_range_of_foreign_load(self) -> None:
        slower = RUN | {"round": 1, "index": {"wall_s": 40.0, "cpu_s": 60.0, "foreign": 0.75}}
        del slower["quality"]
        found = row(indexing({"A": [RUN, slower]}))
        self.assertEqual(found[:6], ["A", ".500", "", "300", "50", "45.0"])
        self.assertEqual(found[6:], ["5.6", "30.0", "1.5", "1,500", "0.25 to 0.75", "2"])

    def test_a_case_is_a_row_with_the_latencies_of_each_number_of_clients(self) -> None:
        found = row(searches({"A": [RUN]}))
        self.assertEqual(found, ["A", "", "2.0 / 4.0", "10", "", "3.0", "80", "1", "0.10"])

    def test_a_server_that_gets_vectors_has_a_row_of_its_own(self) -> None:
        alone = {"rate": 5.0, "p50_ms": 9.0, "p99_ms": 9.5, "cpu_ms": 7.0, "foreign": 0.0}
        run = {"search": alone, "memory": {"anonymous": 600.0}, "vectors_load": RUN["load"]}
        lines = searches({"A": [RUN], "B": [run]}).splitlines()
        self.assertEqual(lines[3], "| B | 9.0 / 9.5 |  | 5 | 7.0 |  | 600 | 0 | 0.00 |")
        self.assertEqual(lines[4], "| B, vectors given |  | 2.0 / 4.0 | 10 |  | 3.0 | 80 | 1 | 0.10 |")

    def test_failed_runs_are_left_out(self) -> None:
        self.assertEqual(runs_by_case([RUN | {"error": "none"}, {"machine": {}}]), {})


if __name__ == "__main__":
    unittest.main()
