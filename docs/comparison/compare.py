#!/usr/bin/env python3
"""Measure lkr beside txtai, Chroma, LanceDB, LlamaIndex with Qdrant, and Haystack.

usage: compare.py --lkr PROGRAM --model FOLDER --data FOLDER --work FOLDER [--rounds 3] [--systems lkr,txtai] ...

PROGRAM is lkr, the model's folder is all-MiniLM-L6-v2, and the data folder has collections. Everything else is made in
the work folder: environments with pinned packages, indexes, and results.jsonl with a line for each run, from which
report.py makes the tables. A round runs all cases, one after another. Needs Linux, Python 3.11, wrk and 12 GB of disk.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict

from harness import libraries, lkr, model_folder
from harness.case import CHUNKINGS, VARIANTS, Case, cases
from harness.collection import read
from harness.environments import Environments, Installation, size
from harness.run import Run, Settings

SYSTEMS = list(dict.fromkeys(variant.system for variant in VARIANTS))
NAMES = [variant.name for variant in VARIANTS]
COLLECTIONS = ["gitlab_handbook", "product_docs", "scifact"]


def main() -> int:
    arguments = parse()
    if shutil.which("wrk") is None:
        sys.exit("wrk is not installed (Debian: apt-get install wrk)")
    arguments.work.mkdir(parents=True, exist_ok=True)
    environments = Environments(arguments.work / "environments")
    model = model_folder.make(arguments.model, arguments.work / "model")
    settings = Settings(arguments.lkr, arguments.model, model, environments, arguments.clients, arguments.seconds)
    comparison = Comparison(settings, arguments.work)
    variants = [variant for variant in VARIANTS if variant.system in arguments.systems]
    variants = [variant for variant in variants if variant.name in arguments.variants]
    comparison.install(list(dict.fromkeys(variant.system for variant in variants)))
    collections = [read(arguments.data / name) for name in arguments.collections]
    planned = cases(variants, collections, arguments.chunkings)
    for number in range(arguments.rounds):
        for case in planned:
            comparison.measure(case, number)
    return 1 if comparison.failures else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("lkr", "model", "data", "work"):
        parser.add_argument(f"--{name}", type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=10, help="the length of each step of the load")
    parser.add_argument("--clients", type=lambda text: tuple(map(int, text.split(","))), default=(1, 8, 64))
    parser.add_argument("--systems", type=some_of(SYSTEMS), default=SYSTEMS, help=", ".join(SYSTEMS))
    parser.add_argument("--variants", type=some_of(NAMES), default=NAMES, help=", ".join(NAMES))
    parser.add_argument("--collections", type=lambda text: text.split(","), default=COLLECTIONS)
    parser.add_argument("--chunkings", type=some_of(CHUNKINGS), default=CHUNKINGS, help=", ".join(CHUNKINGS))
    return parser.parse_args()


def some_of(known: Sequence[str]) -> Callable[[str], list[str]]:
    """Reads names that are separated by commas."""

    def read_names(text: str) -> list[str]:
        found = [name.strip() for name in text.split(",")]
        unknown = [name for name in found if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}")
        return found

    return read_names


def machine() -> dict[str, object]:
    processors = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = [line.partition(":")[2].strip() for line in processors if line.startswith("model name")]
    return {"machine": {"processors": os.cpu_count(), "processor": models[0] if models else platform.machine(),
                        "python": platform.python_version(), "date": datetime.date.today().isoformat()}}


class Comparison:
    """Runs cases and writes their results."""

    def __init__(self, settings: Settings, folder: pathlib.Path) -> None:
        self._settings, self._folder = settings, folder
        self.failures = 0
        self._write(machine())

    def install(self, systems: list[str]) -> None:
        for system in systems:
            self._write({"install": system} | self._installation(system))

    def _installation(self, system: str) -> dict[str, object]:
        if system == "lkr":
            return asdict(Installation(1, size(self._settings.lkr) / 1e6, 0.0))
        self._settings.environments.make(system)
        return asdict(self._settings.environments.installation(system))

    def measure(self, case: Case, number: int) -> None:
        """A failure does not end the comparison: its record has the error, and failed.log what the system printed."""
        folder = self._folder / "run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        run = Run(self._settings, case, folder, rank=number == 0)
        variant = case.variant
        record = {"round": number, "system": variant.system, "variant": variant.name}
        record |= {"collection": case.collection.name, "chunking": case.chunking}
        record["text_kb"] = sum(len(text.text.encode()) for text in case.collection.texts(case.chunking)) / 1e3
        started = time.monotonic()
        try:
            record |= lkr.measure(run) if variant.system == "lkr" else libraries.measure(run)
        except Exception as error:  # the other cases can still be measured
            traceback.print_exc()
            self.failures += 1
            record["error"] = str(error)
            run.log.touch()
            shutil.copy(run.log, self._folder / "failed.log")
        seconds = time.monotonic() - started
        self._write(record | {"seconds": round(seconds, 1)})
        print(f"round {number + 1}, {case.name}: {seconds:.0f} s", file=sys.stderr, flush=True)

    def _write(self, record: dict[str, object]) -> None:
        with (self._folder / "results.jsonl").open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    sys.exit(main())
