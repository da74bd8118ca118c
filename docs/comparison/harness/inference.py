"""What lkr and ONNX Runtime embed, and how their figures are summed up."""
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any

from harness.collection import Text

PASSAGES, QUERIES, QUERY_WORDS = 256, 64, 8
LETTERS = range(400, 1501)
REPETITIONS = 3
"""Of each measurement within a process."""

Figures = dict[str, float]


@dataclass(frozen=True)
class Engine:
    """A program with a form of the model."""

    name: str
    precision: str
    onnx: str | None = None
    """The name of the ONNX file; lkr has none."""


ENGINES = [
    Engine("lkr float32", "float32"),
    Engine("lkr int8", "int8"),
    Engine("ORT float32 exported", "float32", "float32-exported"),
    Engine("ORT float32 fused", "float32", "float32-fused"),
    Engine("ORT int8 exported", "int8", "int8-exported"),
    Engine("ORT int8 exported reduce_range", "int8", "int8-reduced"),
    Engine("ORT int8 exported per_tensor", "int8", "int8-tensor"),
    Engine("ORT int8 exported unsigned", "int8", "int8-unsigned"),
    Engine("ORT int8 fused", "int8", "int8-fused"),
    Engine("ORT int8 fused approximate_gelu", "int8", "int8-approximated"),
]


def passages(rows: Iterable[Text]) -> list[str]:
    """The first rows of a middling length, each in one line."""
    lines = (" ".join(row.text.split()) for row in rows)
    return [line for line in lines if len(line) in LETTERS][:PASSAGES]


def queries(texts: Sequence[str]) -> list[str]:
    return [" ".join(text.split()[:QUERY_WORDS]) for text in texts[:QUERIES]]


def of_throughput(printed: str) -> dict[str, list[Figures]]:
    """The figures that lkr's example `throughput` prints."""
    rates = re.findall(r"passages: ([\d.]+) per CPU second, ([\d.]+) per second", printed)
    times = re.findall(r"queries: ([\d.]+) ms median, ([\d.]+) ms of CPU each", printed)
    if not rates or not times:
        raise ValueError(f"not what throughput prints: {printed}")
    return {
        "passages": [{"cpu_ms": 1e3 / float(cpu), "wall_ms": 1e3 / float(wall)} for cpu, wall in rates],
        "queries": [{"cpu_ms": float(cpu), "wall_ms": float(wall)} for wall, cpu in times],
    }


def mean_cosine(vectors: Sequence[Sequence[float]], expected: Sequence[Sequence[float]]) -> float:
    """Of vectors of length 1."""
    return statistics.fmean(sum(map(mul, a, b)) for a, b in zip(vectors, expected, strict=True))


def row(records: Sequence[dict[str, Any]], threads: int) -> list[str]:
    """The medians of an engine over all rounds; of ONNX Runtime, with the size of batches that takes it the least time."""
    by_size: dict[str, list[Figures]] = {}
    for record in records:
        for size, figures in record["passages"].items():
            by_size.setdefault(size, []).extend(figures)
    size, best = min(by_size.items(), key=lambda item: median(item[1], "cpu_ms"))
    asked = [figures for record in records for figures in record["queries"]]
    foreign = [record["foreign"] for record in records]
    return [
        records[0]["engine"],
        str(threads),
        size,
        f"{1e3 / median(best, 'cpu_ms'):.1f}",
        f"{1e3 / median(best, 'wall_ms'):.1f}",
        f"{median(asked, 'cpu_ms'):.2f}",
        f"{median(asked, 'wall_ms'):.2f}",
        f"{records[0]['cosine']:.4f}",
        f"{min(foreign):.2f} to {max(foreign):.2f}",
    ]


HEADS = (
    "",
    "threads",
    "texts a batch",
    "passages a CPU-s",
    "passages a s",
    "CPU-ms a query",
    "ms a query",
    "cosine with float32",
    "foreign",
)


def median(figures: Iterable[Figures], key: str) -> float:
    return statistics.median(part[key] for part in figures)
