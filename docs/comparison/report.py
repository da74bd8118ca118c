#!/usr/bin/env python3
"""Print the tables of measured.md from the results of compare.py: report.py RESULTS.jsonl

A figure is the median of all runs of a case. "Foreign" is how many processors other programs used in the mean while the
figures of the row were measured: the largest value of all runs.
"""
import json
import pathlib
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

Record = dict[str, Any]
Key = tuple[str, str, str]

INSTALLATIONS = ("", "packages", "MB installed", "MB without CUDA packages", "s to the first answer", "of its server")
INDEXING = (
    "",
    "nDCG@10 documents",
    "passages",
    "chunks",
    "% not embedded",
    "CPU-s to index",
    "chunks a CPU-s",
    "s by the clock",
    "disk, MB",
    "peak memory, MB",
    "foreign",
    "runs",
)
SEARCHES = ("", "p50, ms", "p99, ms", "searches a second", "CPU-ms a search", "memory, MB", "failed", "foreign")


def main() -> None:
    records = [json.loads(line) for line in pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
    runs = runs_by_case(records)
    parts = [machine(records), installations(records, runs)]
    for collection, chunking in dict.fromkeys(key[:2] for key in runs):
        of_part = {key[2]: found for key, found in runs.items() if key[:2] == (collection, chunking)}
        parts.append(f"### {collection}, {chunking} chunks")
        parts.append(indexing(of_part))
        parts.append(searches(of_part))
    print("\n\n".join(parts))


def runs_by_case(records: Sequence[Record]) -> dict[Key, list[Record]]:
    """The runs that succeeded, by collection, chunking and variant."""
    found: dict[Key, list[Record]] = defaultdict(list)
    for record in records:
        if "round" in record and "error" not in record:
            found[record["collection"], record["chunking"], record["variant"]].append(record)
    return dict(found)


def machine(records: Sequence[Record]) -> str:
    last = [record["machine"] for record in records if "machine" in record][-1]
    return f"{last['date']}, {last['processors']} processors ({last['processor']}), Python {last['python']}."


def installations(records: Sequence[Record], runs: dict[Key, list[Record]]) -> str:
    """What a system takes to install and to start, over all its cases."""
    starts: dict[str, list[float | None]] = defaultdict(list)
    servers: dict[str, list[float | None]] = defaultdict(list)
    for run in (run for found in runs.values() for run in found):
        starts[run["system"]].append(run["start_s"])
        servers[run["system"]].append(run.get("server_start_s"))
    installed = {record["install"]: record for record in records if "install" in record}
    rows = [
        [
            system,
            number(record["packages"], 0),
            number(record["megabytes"], 0),
            number(record["megabytes"] - record["cuda_megabytes"], 0),
            number(median(starts[system]), 2),
            number(median(servers[system]), 2),
        ]
        for system, record in installed.items()
    ]
    return table(INSTALLATIONS, rows)


def indexing(cases: dict[str, list[Record]]) -> str:
    def row(name: str, runs: list[Record]) -> list[str]:
        cpu = of(runs, lambda run: run["index"]["cpu_s"])
        return [
            name,
            figure(of(runs, lambda run: run["quality"]["documents"])),
            figure(of(runs, lambda run: run["quality"]["passages"])),
            number(of(runs, lambda run: run["chunks"]), 0),
            number(of(runs, lambda run: 100 * run["cut"]), 0),
            number(cpu, 1),
            number(of(runs, lambda run: run["chunks"] / run["index"]["cpu_s"]), 1),
            number(of(runs, lambda run: run["index"]["wall_s"]), 1),
            number(of(runs, lambda run: run["disk_mb"]), 1),
            number(of(runs, lambda run: run["index_peak_mb"]), 0),
            foreign(run["index"] for run in runs),
            str(len(runs)),
        ]

    return table(INDEXING, [row(name, runs) for name, runs in cases.items()])


def searches(cases: dict[str, list[Record]]) -> str:
    """One row for each library in process, and one for each server and number of clients."""
    rows = []
    for name, runs in cases.items():
        rows.append(search_row(f"{name}, in process", runs, lambda run: run.get("search")))
        for label, key in (("HTTP", "load"), ("HTTP, vectors given", "vectors_load")):
            for at, step in enumerate(runs[0].get(key, [])):
                chosen = f"{name}, {label}, clients: {step['clients']}"
                rows.append(search_row(chosen, runs, step_at(key, at)))
    return table(SEARCHES, [row for row in rows if row])


def step_at(key: str, at: int) -> Callable[[Record], Record | None]:
    return lambda run: run[key][at] if key in run else None


def search_row(name: str, runs: list[Record], step: Callable[[Record], Record | None]) -> list[str]:
    """Nothing if no run has the step."""
    found = [(part, run["memory"]["anonymous"]) for run in runs if (part := step(run))]
    parts = [part for part, _ in found]
    if not parts:
        return []
    return [
        name,
        number(median([part["p50_ms"] for part in parts]), 1),
        number(median([part["p99_ms"] for part in parts]), 1),
        number(median([part["rate"] for part in parts]), 1),
        number(median([part["cpu_ms"] for part in parts]), 1),
        number(median([part.get("anonymous_mb", whole) for part, whole in found]), 0),
        number(sum(part.get("failed", 0) for part in parts), 0),
        foreign(parts),
    ]


def of(runs: Iterable[Record], value: Callable[[Record], float]) -> float | None:
    """The median of a value over the runs that have it."""
    found = []
    for run in runs:
        try:
            found.append(value(run))
        except (KeyError, IndexError):
            continue
    return median(found)


def median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def foreign(intervals: Iterable[Record]) -> str:
    return number(max((interval["foreign"] for interval in intervals), default=None), 2)


def figure(value: float | None) -> str:
    """A quality, without the zero before the point."""
    return "" if value is None else f"{value:.3f}".removeprefix("0")


def number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    main()
