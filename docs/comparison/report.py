#!/usr/bin/env python3
"""Print the tables of measured.md from the results of compare.py: report.py RESULTS.jsonl

A figure is the median of all runs of a case. "Foreign" is how many processors other programs used in the mean while the
figures of the row were measured, from the least to the most.
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
    "kB embedded a CPU-s",
    "s by the clock",
    "disk, MB",
    "peak memory, MB",
    "foreign",
    "runs",
)


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
            number(of(runs, embedded_kb_a_cpu_second), 1),
            number(of(runs, lambda run: run["index"]["wall_s"]), 1),
            number(of(runs, lambda run: run["disk_mb"]), 1),
            number(of(runs, lambda run: run["index_peak_mb"]), 0),
            foreign(run["index"] for run in runs),
            str(len(runs)),
        ]

    return table(INDEXING, [row(name, runs) for name, runs in cases.items()])


def embedded_kb_a_cpu_second(run: Record) -> float:
    """The text that is embedded, without what chunks have twice. lkr cuts nothing."""
    return run["text_kb"] * (1 - run.get("cut", 0)) / run["index"]["cpu_s"]


def searches(cases: dict[str, list[Record]]) -> str:
    """A row for each case; the server of one that gets vectors from its clients has a row of its own."""
    clients = list(dict.fromkeys(step["clients"] for runs in cases.values() for step in steps(runs)))
    rows = []
    for name, runs in cases.items():
        rows.append(search_row(name, runs, "load", clients))
        if any("vectors_load" in run for run in runs):
            of_server = [{key: run[key] for key in ("vectors_load", "memory")} for run in runs]
            rows.append(search_row(f"{name}, vectors given", of_server, "vectors_load", clients))
    heads = ["", "in process"]
    heads += [f"{number} client{'s' if number > 1 else ''}" for number in clients]
    over_http = f"CPU-ms over HTTP with {', '.join(map(str, clients))}"
    heads += ["searches a second, most", "CPU-ms in process", over_http, "memory, MB", "failed", "foreign"]
    return table(heads, rows)


def steps(runs: Iterable[Record], key: str = "load") -> list[Record]:
    return [step for run in runs for step in run.get(key, [])]


def search_row(name: str, runs: list[Record], key: str, clients: Sequence[int]) -> list[str]:
    """Latencies as p50 and p99. The memory is that of the clients in the middle."""
    alone = [run["search"] for run in runs if "search" in run]
    by_clients = {number: [step for step in steps(runs, key) if step["clients"] == number] for number in clients}
    middle = by_clients[clients[len(clients) // 2]] if clients else []
    rates = [median([step["rate"] for step in part]) for part in (alone, *by_clients.values())]
    memory = [step["anonymous_mb"] for step in middle] or [run["memory"]["anonymous"] for run in runs]
    everything = alone + steps(runs, key)
    return [
        name,
        latencies(alone),
        *(latencies(part) for part in by_clients.values()),
        number(max((rate for rate in rates if rate is not None), default=None), 0),
        number(median([part["cpu_ms"] for part in alone]), 1),
        " / ".join(number(median([step["cpu_ms"] for step in part]), 1) for part in by_clients.values() if part),
        number(median(memory), 0),
        number(sum(step.get("failed", 0) for step in everything), 0),
        foreign(everything),
    ]


def latencies(parts: Sequence[Record]) -> str:
    p50, p99 = (number(median([part[key] for part in parts]), 1) for key in ("p50_ms", "p99_ms"))
    return f"{p50} / {p99}" if parts else ""


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
    """The least and the most processors that other programs used."""
    found = [interval["foreign"] for interval in intervals]
    if not found:
        return ""
    least, most = number(min(found), 2), number(max(found), 2)
    return most if least == most else f"{least} to {most}"


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
