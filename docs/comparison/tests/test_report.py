"""Tables from the records of runs."""
import unittest

from report import indexing, runs_by_case, searches

STEP = {"clients": 8, "rate": 10.0, "failed": 1, "p50_ms": 2.0, "p99_ms": 4.0, "cpu_ms": 3.0}
RUN = {
    "round": 0, "system": "a", "variant": "A", "collection": "c", "chunking": "own", "chunks": 300, "cut": 0.5,
    "index": {"wall_s": 20.0, "cpu_s": 30.0, "foreign": 0.25}, "index_peak_mb": 1500.0, "disk_mb": 1.5,
    "quality": {"documents": 0.5}, "memory": {"anonymous": 70.0},
    "load": [STEP | {"anonymous_mb": 80.0, "foreign": 0.1}],
}


def row(table: str) -> list[str]:
    """The cells of the only row of a table."""
    return [cell.strip() for cell in table.splitlines()[2].strip("|").split("|")]


class Report(unittest.TestCase):
    def test_figures_are_medians_over_the_runs_and_the_largest_foreign_load(self) -> None:
        slower = RUN | {"round": 1, "index": {"wall_s": 40.0, "cpu_s": 60.0, "foreign": 0.75}}
        del slower["quality"]
        found = row(indexing({"A": [RUN, slower]}))
        self.assertEqual(found, ["A", ".500", "", "300", "50", "45.0", "7.5", "30.0", "1.5", "1,500", "0.75", "2"])

    def test_each_number_of_clients_has_a_row_and_what_was_not_measured_has_none(self) -> None:
        found = row(searches({"A": [RUN]}))
        self.assertEqual(found, ["A, HTTP, clients: 8", "2.0", "4.0", "10.0", "3.0", "80", "1", "0.10"])

    def test_failed_runs_are_left_out(self) -> None:
        self.assertEqual(runs_by_case([RUN | {"error": "none"}, {"machine": {}}]), {})


if __name__ == "__main__":
    unittest.main()
