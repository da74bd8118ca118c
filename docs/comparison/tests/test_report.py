"""Tables from the records of runs."""
import unittest

from typing import Any

from report import UNSTEADY, indexing, report, runs_by_case, searches, unsteady

STEP = {
    "clients": 8, "rate": 10.0, "failed": 1, "mean_ms": 800.0, "p50_ms": 790.0, "p99_ms": 900.0, "cpu_ms": 3.0,
}
RUN: dict[str, Any] = {
    "round": 0, "system": "a", "variant": "A", "collection": "c", "chunking": "own", "chunks": 300, "cut": 0.5,
    "text_kb": 450.0,
    "index": {"wall_s": 20.0, "cpu_s": 30.0, "foreign": 0.25}, "index_peak_mb": 1500.0, "disk_mb": 1.5,
    "quality": {"documents": 0.5}, "memory": {"anonymous": 70.0},
    "load": [STEP | {"anonymous_mb": 80.0, "foreign": 0.1}], "start_s": 1.0,
}
SETUP = {"version": "lkr 0.1.0, sha256 12", "seconds": 4, "longest": 120, "clients": [8]}
MACHINE = {"date": "2026-11-30", "processors": 2, "processor": "a processor", "python": "3.11.7"}


def row(table: str) -> list[str]:
    """The cells of the only row of a table."""
    return [cell.strip() for cell in table.splitlines()[2].strip("|").split("|")]


class Report(unittest.TestCase):
    def test_figures_are_medians_over_the_runs_and_the_range_of_foreign_load(self) -> None:
        slower = RUN | {"round": 1, "index": {"wall_s": 40.0, "cpu_s": 60.0, "foreign": 0.75}}
        del slower["quality"]
        found = row(indexing({"A": [RUN, slower]}))
        self.assertEqual(found[:6], ["A", ".500", "", "300", "50", "45.0"])
        self.assertEqual(found[6:], ["5.6", "30.0", "1.5", "1,500", "0.25 to 0.75", "", "2"])

    def test_a_case_is_a_row_with_the_latencies_of_each_number_of_clients(self) -> None:
        found = row(searches({"A": [RUN]}))
        self.assertEqual(found, ["A", "", "790.0 / 900.0", "10", "", "3.0", "80", "1", "0.10"])

    def test_a_server_that_gets_vectors_has_a_row_of_its_own(self) -> None:
        alone = {"rate": 5.0, "p50_ms": 9.0, "p99_ms": 9.5, "cpu_ms": 7.0, "foreign": 0.0}
        run = {"search": alone, "memory": {"anonymous": 600.0}, "vectors_load": RUN["load"]}
        lines = searches({"A": [RUN], "B": [run]}).splitlines()
        self.assertEqual(lines[3], "| B | 9.0 / 9.5 |  | 5 | 7.0 |  | 600 | 0 | 0.00 |")
        self.assertEqual(lines[4], "| B, vectors given |  | 790.0 / 900.0 | 10 |  | 3.0 | 80 | 1 | 0.10 |")

    def test_figures_of_failed_runs_are_left_out_and_the_failures_are_counted(self) -> None:
        failed = {key: RUN[key] for key in ("round", "system", "variant", "collection", "chunking")} | {"error": "x\ny"}
        self.assertEqual(row(indexing({"A": [RUN, failed]}))[-1], "1, 1 failed")
        text = report([{"machine": MACHINE}, RUN | {"variant": "B"}, failed])
        self.assertEqual([line.count("failed") for line in text.splitlines() if line.startswith("| A |")], [2, 1])
        self.assertIn("- A failed in round 1: x y", text)

    def test_runs_of_other_builds_and_settings_are_rows_of_their_own_that_name_them(self) -> None:
        first, second = RUN | SETUP, RUN | SETUP | {"version": "lkr 0.1.0, sha256 34", "began": "2026-11-30T10:00"}
        longer = first | {"seconds": 10}
        self.assertEqual(len(runs_by_case([first, second, longer, RUN, first | {"round": 1}])), 4)
        lines = report([{"machine": MACHINE}, first, second]).splitlines()
        names = [line.split("|")[1].strip() for line in lines if line.startswith("| A")]
        setups = [f"lkr 0.1.0, sha256 {digest}; steps of 4 to 120 s with 8 clients" for digest in ("12", "34")]
        self.assertEqual(names, [f"A ({setup})" for setup in setups] * 2)
        self.assertEqual([line for line in lines if line.startswith("- a")], [f"- a: {setup}" for setup in setups])
        self.assertTrue(any("2026-11-30 10:00" in line for line in lines))

    def test_installations_have_a_row_for_each_version(self) -> None:
        installed = {"install": "a", "packages": 1, "megabytes": 2.0, "cuda_megabytes": 0.0}
        run = RUN | SETUP
        text = report([{"machine": MACHINE}, installed | {"version": "old"}, installed | SETUP, run | {"start_s": 7.0}])
        self.assertIn("| a (old) | 1 | 2 | 2 |  |  |", text)
        self.assertIn(f"| a ({SETUP['version']}) | 1 | 2 | 2 | 7.00 |  |", text)

    def test_a_development_build_is_named(self) -> None:
        self.assertIn("development build", report([{"machine": MACHINE}, RUN | SETUP | {"development": True}]))
        self.assertNotIn("development build", report([{"machine": MACHINE}, RUN | SETUP]))


class LittlesLaw(unittest.TestCase):
    def test_rows_whose_clients_were_not_all_busy_are_marked_and_the_mark_is_explained(self) -> None:
        step = RUN["load"][0] | {"mean_ms": 500.0}
        text = report([{"machine": MACHINE}, RUN | {"load": [step]}])
        self.assertIn(f"| 790.0 / 900.0 {UNSTEADY} |", text)
        self.assertIn("(Little's law)", text)
        self.assertNotIn(UNSTEADY, report([{"machine": MACHINE}, RUN]))

    def test_a_fifth_is_tolerated_and_older_results_are_judged_by_their_median(self) -> None:
        step: dict[str, Any] = {"clients": 10, "rate": 10.0, "p50_ms": 1000.0}
        means = {800.0: False, 790.0: True, 1200.0: False, 1210.0: True}
        self.assertEqual({mean: unsteady(step | {"mean_ms": mean}) for mean in means}, means)
        self.assertFalse(unsteady(step))
        self.assertTrue(unsteady(step | {"p50_ms": 100.0}))
        self.assertFalse(unsteady({"rate": 10.0, "p50_ms": 100.0}), "a search in process has no clients")


if __name__ == "__main__":
    unittest.main()
