#!/usr/bin/env python3
"""Measure lkr beside txtai, Chroma, LanceDB, LlamaIndex with Qdrant, and Haystack.

usage: compare.py --lkr PROGRAM --model FOLDER --data FOLDER --work FOLDER [--rounds 3] [--systems lkr,txtai] ...

PROGRAM is a release build of lkr, the model's folder is all-MiniLM-L6-v2, and the data folder has collections. Everything
else is made in the work folder: environments with pinned packages, indexes, and results.jsonl with a line for each run, from
which report.py makes the tables. A round runs all cases, one after another. What a failed run printed is kept in failed/.
Needs Linux, Python 3.11, wrk and 12 GB of disk.
"""
import datetime
import json
import os
import pathlib
import platform
import shutil
import signal
import sys
import time
import traceback
from dataclasses import asdict
from types import FrameType

from harness import environments, libraries, lkr, model_folder
from harness.case import Case
from harness.environments import Environments, Installation, size
from harness.plan import Plan, make
from harness.program import Program
from harness.run import Run, Settings

ENDING = (signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    plan = make(sys.argv[1:], __doc__ or "")
    end_on_signals()
    if plan.program.is_development:
        print("this lkr is a development build: its figures are not to be compared", file=sys.stderr)
    comparison = Comparison(plan)
    comparison.install()
    for number in range(plan.rounds):
        for case in plan.cases:
            comparison.measure(case, number)
    return 1 if comparison.failures else 0


def end_on_signals() -> None:
    """Makes signals that would end this process at once end it with its clean-up, which ends the servers that it started."""

    def end(number: int, _: FrameType | None) -> None:
        for ending in (*ENDING, signal.SIGINT):
            signal.signal(ending, signal.SIG_IGN)
        sys.exit(128 + number)

    for ending in ENDING:
        signal.signal(ending, end)


def machine() -> dict[str, object]:
    processors = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = [line.partition(":")[2].strip() for line in processors if line.startswith("model name")]
    return {"machine": {"processors": os.cpu_count(), "processor": models[0] if models else platform.machine(),
                        "python": platform.python_version(), "date": datetime.date.today().isoformat()}}


class Comparison:
    """Runs cases and writes their results."""

    def __init__(self, plan: Plan) -> None:
        model = model_folder.make(plan.model, plan.work / "model")
        self._settings = Settings(plan.program.path, plan.model, model, Environments(plan.work / "environments"),
                                  plan.clients, plan.seconds, plan.longest)
        self._folder, self._program = plan.work, plan.program
        systems = dict.fromkeys(case.variant.system for case in plan.cases)
        self._versions = {system: self._version(system) for system in systems}
        self.failures = 0
        self._write(machine())

    def install(self) -> None:
        for system, version in self._versions.items():
            self._write({"install": system, "version": version} | self._installation(system))

    def _version(self, system: str) -> str:
        return self._program.version if system == "lkr" else environments.version(system)

    def _installation(self, system: str) -> dict[str, object]:
        if system == "lkr":
            return asdict(Installation(1, size(self._settings.lkr) / 1e6, 0.0))
        self._settings.environments.make(system)
        return asdict(self._settings.environments.installation(system))

    def measure(self, case: Case, number: int) -> None:
        """A failure does not end the comparison: its record has the error and names the file of what the system printed."""
        folder = self._folder / "run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        run = Run(self._settings, case, folder, rank=number == 0)
        record = self._described(case, number)
        started = time.monotonic()
        try:
            record |= lkr.measure(run) if case.variant.system == "lkr" else libraries.measure(run)
        except Exception as error:  # the other cases can still be measured
            traceback.print_exc()
            self.failures += 1
            record |= {"error": f"{type(error).__name__}: {error}", "log": str(self._kept_log(run, number))}
        seconds = time.monotonic() - started
        self._write(record | {"took_s": round(seconds, 1)})
        outcome = f"failed: {record['error']}; see {record['log']}" if "error" in record else f"{seconds:.0f} s"
        print(f"round {number + 1}, {case.name}: {outcome}", file=sys.stderr, flush=True)

    def _described(self, case: Case, number: int) -> dict[str, object]:
        """What a run measures, and everything that its figures depend on and that can differ from run to run."""
        variant, texts = case.variant, case.collection.texts(case.chunking)
        return {
            "round": number, "system": variant.system, "variant": variant.name,
            "collection": case.collection.name, "chunking": case.chunking,
            "version": self._versions[variant.system],
            "development": variant.system == "lkr" and self._program.is_development,
            "seconds": self._settings.seconds, "longest": self._settings.longest, "clients": self._settings.clients,
            "began": datetime.datetime.now().isoformat(timespec="minutes"),
            "text_kb": sum(len(text.text.encode()) for text in texts) / 1e3,
        }

    def _kept_log(self, run: Run, number: int) -> pathlib.Path:
        """A copy of a run's log that the next run leaves alone."""
        name = f"{datetime.datetime.now():%Y-%m-%dT%H-%M-%S} round {number + 1}, {run.case.name}.log"
        kept = self._folder / "failed" / name.replace(",", "").replace(" ", "-")
        kept.parent.mkdir(exist_ok=True)
        run.log.touch()
        shutil.copy(run.log, kept)
        return kept

    def _write(self, record: dict[str, object]) -> None:
        with (self._folder / "results.jsonl").open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    sys.exit(main())
