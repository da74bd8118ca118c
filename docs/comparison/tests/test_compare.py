"""Records of runs, and what is kept of those that failed."""
import json
import pathlib
import signal
import tempfile
import types
import unittest
from typing import Any
from unittest import mock

from compare import Comparison
from harness import libraries
from harness.case import VARIANTS, Case
from harness.collection import Collection, Text
from harness.plan import Plan
from harness.processes import ending
from harness.program import Program
from harness.run import Run


def plan(folder: pathlib.Path) -> Plan:
    program, model = folder / "lkr", folder / "model"
    program.touch()
    model.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (model / name).touch()
    collection = Collection("c", rows=[Text("a", "", "text")])
    chosen = [variant for variant in VARIANTS if variant.system == "lkr"]
    cases = [Case(variant, collection, "given") for variant in chosen]
    return Plan(Program(program, "lkr 0.1.0, sha256 12", False), model, folder / "work", 1, 4, 120, (1, 8), cases)


def failing(run: Run) -> dict[str, Any]:
    run.log.write_text(f"printed by {run.case.variant.name}", encoding="utf-8")
    raise RuntimeError("the server ended with status 3")


class Records(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.plan = plan(pathlib.Path(folder.name))
        self.plan.work.mkdir()

    def records(self) -> list[dict[str, Any]]:
        lines = (self.plan.work / "results.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    @mock.patch("traceback.print_exc", mock.Mock())
    @mock.patch("compare.print", mock.Mock(), create=True)
    def test_logs_of_failed_runs_are_kept_and_named(self) -> None:
        comparison = Comparison(self.plan)
        with mock.patch("compare.lkr.measure", failing):
            for case in self.plan.cases:
                comparison.measure(case, 0)
        records = [record for record in self.records() if "round" in record]
        self.assertEqual(comparison.failures, 2)
        self.assertEqual({record["error"] for record in records}, {"RuntimeError: the server ended with status 3"})
        printed = [pathlib.Path(record["log"]).read_text(encoding="utf-8") for record in records]
        self.assertEqual(printed, ["printed by lkr float32", "printed by lkr int8"])

    @mock.patch("compare.print", mock.Mock(), create=True)
    def test_a_record_has_everything_that_its_figures_depend_on(self) -> None:
        with mock.patch("compare.lkr.measure", lambda _: {"chunks": 1}):
            comparison = Comparison(self.plan)
            comparison.install()
            comparison.measure(self.plan.cases[0], 0)
        machine, installed, record = self.records()
        self.assertIn("machine", machine)
        self.assertEqual((installed["install"], installed["version"]), ("lkr", "lkr 0.1.0, sha256 12"))
        settings = {"version": "lkr 0.1.0, sha256 12", "seconds": 4, "longest": 120, "clients": [1, 8], "development": False}
        self.assertEqual({name: record[name] for name in settings}, settings)
        self.assertEqual(record["chunks"], 1)


class Workers(unittest.TestCase):
    def test_error_of_a_failed_step_has_its_status_or_signal(self) -> None:
        for command, message in {"exit 3": "the step index ended with status 3", "kill -9 $$": "was killed by SIGKILL"}.items():
            with self.subTest(command), tempfile.TemporaryDirectory() as name, self.assertRaisesRegex(RuntimeError, message):
                libraries.call(self.run_of(pathlib.Path(name), command), "index")
        self.assertEqual(ending(-signal.SIGTERM), "was killed by SIGTERM")

    def run_of(self, folder: pathlib.Path, command: str) -> Any:
        worker = folder / "worker"
        worker.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
        worker.chmod(0o755)
        environments = types.SimpleNamespace(python=lambda _: worker)
        settings = types.SimpleNamespace(model=folder, environments=environments)
        case = types.SimpleNamespace(variant=VARIANTS[2], chunking="own")
        return types.SimpleNamespace(case=case, folder=folder, store=folder / "store", log=folder / "log", settings=settings)


if __name__ == "__main__":
    unittest.main()
