#!/usr/bin/env python3
"""Measure lkr's embedding engine beside ONNX Runtime.

usage: inference.py --throughput PROGRAM --model FOLDER --data FOLDER --work FOLDER [--rounds 3] [--threads 1,2] ...

PROGRAM is lkr's example `throughput`, built with `cargo build --release -p lkr-models-local --example throughput`. The
model's folder is all-MiniLM-L6-v2, and the data folder has the collection gitlab_handbook. The work folder gets an
environment with pinned packages, the ONNX models and inference.jsonl with a line for each run. A round runs all engines,
one after another; the table at the end has the medians over all lines of inference.jsonl. Needs Linux, Python 3.11
and 7 GB of disk.
"""
import argparse
import array
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

from harness import inference, model_folder
from harness.collection import read
from harness.environment import environment
from harness.environments import Environments
from harness.inference import ENGINES, Engine
from harness.plan import some_of
from harness.processes import Stopwatch
from report import table

PACKAGE = pathlib.Path(__file__).parent
SYSTEM = "onnxruntime"
NAMES = [engine.name for engine in ENGINES]
REFERENCE = "float32-exported"


def main() -> None:
    arguments = parse()
    arguments.work.mkdir(parents=True, exist_ok=True)
    measurement = Measurement(arguments)
    for _ in range(arguments.rounds):
        for threads in arguments.threads:
            for engine in ENGINES:
                if engine.name in arguments.engines:
                    measurement.measure(engine, threads)
    print(summary(measurement.results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("throughput", "model", "data", "work"):
        parser.add_argument(f"--{name}", type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=numbers, default=[1])
    parser.add_argument("--sizes", type=numbers, default=[1, 4, 16], help="texts in a batch of ONNX Runtime")
    parser.add_argument("--engines", type=some_of(NAMES), default=NAMES, help=", ".join(NAMES))
    return parser.parse_args()


def numbers(text: str) -> list[int]:
    return list(map(int, text.split(",")))


def summary(results: pathlib.Path) -> str:
    records = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    groups: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["threads"], record["onnx"] or record["engine"]), []).append(record)
    return table(inference.HEADS, [inference.row(group, threads) for (threads, _), group in groups.items()])


class Measurement:
    """Runs engines and writes their figures."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._throughput, self._given_model, self._work = arguments.throughput, arguments.model, arguments.work
        self._sizes = arguments.sizes
        self._model = model_folder.make(arguments.model, self._work / "model")
        self._environments = Environments(self._work / "environments")
        self._passages = inference.passages(read(arguments.data / "gitlab_handbook").rows)
        self._lines = self._work / "passages.txt"
        self._lines.write_text("\n".join(self._passages), encoding="utf-8")
        self.results = self._work / "inference.jsonl"
        self._onnx = self._work / "onnx"
        if not (self._onnx / "int8-reduced.onnx").exists():
            self._environments.make(SYSTEM)
            self._python("harness.onnx_models", self._model, self._onnx)
        self._expected = self._reference()

    def measure(self, engine: Engine, threads: int) -> None:
        watch = Stopwatch(os.getpid(), os.getpid())
        if engine.onnx is None:
            found = self._run_lkr(engine.precision, threads)
        else:
            found = self._run_onnx(engine.onnx, threads, self._sizes)
        foreign = watch.stop().foreign
        cosine = inference.mean_cosine(found.pop("vectors"), self._expected)
        record = {"engine": engine.name, "onnx": engine.onnx, "threads": threads, "foreign": round(foreign, 2)}
        record |= {"cosine": cosine} | found
        with self.results.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(record) + "\n")
        print(f"{engine.name}, {threads} threads", file=sys.stderr, flush=True)

    def _reference(self) -> list[list[float]]:
        file = self._work / "expected.json"
        if not file.exists():
            vectors = self._run_onnx(REFERENCE, 1, [])["vectors"]
            file.write_text(json.dumps(vectors), encoding="utf-8")
        found: list[list[float]] = json.loads(file.read_text(encoding="utf-8"))
        return found

    def _run_lkr(self, precision: str, threads: int) -> dict[str, Any]:
        """lkr forms its batches by itself."""
        file = self._work / "vectors"
        command = [self._throughput, self._given_model, self._lines, inference.PASSAGES, precision, threads, file]
        printed = subprocess.run(
            list(map(str, command)), check=True, capture_output=True, text=True, env=environment()
        ).stdout
        figures = inference.of_throughput(printed)
        return {
            "passages": {"": figures["passages"]},
            "queries": figures["queries"],
            "vectors": vectors_of(file.read_bytes(), len(self._passages)),
        }

    def _run_onnx(self, name: str, threads: int, sizes: list[int]) -> dict[str, Any]:
        call, result = self._work / "call.json", self._work / "result.json"
        content = {
            "onnx": str(self._onnx / f"{name}.onnx"),
            "tokenizer": str(self._model / "tokenizer.json"),
            "threads": threads,
            "sizes": sizes,
            "passages": self._passages,
            "queries": inference.queries(self._passages),
            "result": str(result),
        }
        call.write_text(json.dumps(content), encoding="utf-8")
        self._python("harness.onnx_worker", call)
        found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        return found

    def _python(self, module: str, *arguments: pathlib.Path) -> None:
        # The tokenizer of Hugging Face would start threads of its own.
        command = [self._environments.python(SYSTEM), "-m", module, *arguments]
        subprocess.run(
            list(map(str, command)), cwd=PACKAGE, check=True, env=environment(TOKENIZERS_PARALLELISM="false")
        )


def vectors_of(content: bytes, count: int) -> list[list[float]]:
    """The vectors of a file of 32-bit floats."""
    numbers = array.array("f", content)
    width = len(numbers) // count
    return [list(numbers[first : first + width]) for first in range(0, len(numbers), width)]


if __name__ == "__main__":
    main()
