#!/usr/bin/env python3
"""Print the tables of measured.md from the results of compare.py: report.py RESULTS.jsonl

A figure is the median of all runs of a case that are alike: with the same program or packages, and the same settings. A case
with unlike runs has a row for each kind of them. "Foreign" is how many processors other programs used in the mean while the
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
Key = tuple[str, str, str, str]
"""Collection, chunking, variant and setup."""

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
    "measured",
    "runs",
)
UNSTEADY = "†"
TOLERANCE = 0.2
"""How far rate * mean latency may be from the number of clients (Little's law)."""
EXPLANATION = f"""{UNSTEADY}: the rate times the mean latency differs from the number of clients by more than a fifth. In a
load that keeps all clients busy, they are equal (Little's law). Here the step was too short for the system, or requests failed: do
not rely on the latencies, the rate and the processor time."""


def main() -> None:
    records = [json.loads(line) for line in pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
    print(report(records))


def report(records: Sequence[Record]) -> str:
    runs = runs_by_case(records)
    parts = [machines(records), setups(runs), installations(records, runs)]
    for collection, chunking in dict.fromkeys(key[:2] for key in runs):
        of_part = {key[2:]: found for key, found in runs.items() if key[:2] == (collection, chunking)}
        rows = {row_name(key, list(of_part)): found for key, found in of_part.items()}
        parts += [f"### {collection}, {chunking} chunks", indexing(rows), searches(rows), failures(rows)]
    if any(UNSTEADY in part for part in parts):
        parts.append(EXPLANATION)
    return "\n\n".join(part for part in parts if part)


def runs_by_case(records: Sequence[Record]) -> dict[Key, list[Record]]:
    """The runs by what they measured and with which setup, those that failed included."""
    found: dict[Key, list[Record]] = defaultdict(list)
    for record in records:
        if "round" in record:
            found[record["collection"], record["chunking"], record["variant"], setup(record)].append(record)
    return dict(found)


def setup(record: Record) -> str:
    """What the figures of a run depend on beside its case. Older results do not tell."""
    if "version" not in record:
        return "setup not recorded"
    build = ", a development build" if record.get("development") else ""
    clients = ", ".join(map(str, record["clients"]))
    steps = f"steps of {record['seconds']} to {max(record['seconds'], record['longest'])} s with {clients} clients"
    return f"{record['version']}{build}; {steps}"


def row_name(key: tuple[str, str], keys: Sequence[tuple[str, str]]) -> str:
    """The variant, with its setup if it has several in a table."""
    variant, of_variant = key
    several = sum(1 for other, _ in keys if other == variant) > 1
    return f"{variant} ({of_variant})" if several else variant


def succeeded(runs: Iterable[Record]) -> list[Record]:
    return [run for run in runs if "error" not in run]


def machines(records: Sequence[Record]) -> str:
    """Each machine and day, for figures of several are not compared with each other."""
    found = [record["machine"] for record in records if "machine" in record]
    lines = (f"{one['date']}, {one['processors']} processors ({one['processor']}), Python {one['python']}." for one in found)
    return "\n".join(dict.fromkeys(lines))


def setups(runs: dict[Key, list[Record]]) -> str:
    """A line for each setup, with the systems that have it."""
    systems: dict[str, list[str]] = defaultdict(list)
    for (*_, of_case), found in runs.items():
        systems[of_case].append(found[0]["system"])
    lines = [f"- {', '.join(dict.fromkeys(of_setup))}: {name}" for name, of_setup in systems.items()]
    if any(run.get("development") for found in runs.values() for run in found):
        lines.append("- **lkr is a development build here. Its figures are not to be compared.**")
    return "\n".join(lines)


def failures(rows: dict[str, list[Record]]) -> str:
    lines = (
        f"- {name} failed in round {run['round'] + 1}: {' '.join(run['error'].split())[:300]}"
        for name, runs in rows.items()
        for run in runs
        if "error" in run
    )
    return "\n".join(lines)


def installations(records: Sequence[Record], runs: dict[Key, list[Record]]) -> str:
    """What a system takes to install and to start, over all its cases."""
    starts: dict[tuple[str, str], list[float | None]] = defaultdict(list)
    servers: dict[tuple[str, str], list[float | None]] = defaultdict(list)
    for run in (run for found in runs.values() for run in succeeded(found)):
        starts[run["system"], run.get("version", "")].append(run["start_s"])
        servers[run["system"], run.get("version", "")].append(run.get("server_start_s"))
    installed = {(record["install"], record.get("version", "")): record for record in records if "install" in record}
    names = [system for system, _ in installed]
    rows = [
        [
            system[0] if names.count(system[0]) == 1 else f"{system[0]} ({system[1] or 'version not recorded'})",
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
    def row(name: str, all_runs: list[Record]) -> list[str]:
        runs = succeeded(all_runs)
        failed = len(all_runs) - len(runs)
        if not runs:
            return failed_row(name, INDEXING[:-1]) + [f"0, {failed} failed"]
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
            measured(runs),
            f"{len(runs)}, {failed} failed" if failed else str(len(runs)),
        ]

    return table(INDEXING, [row(name, runs) for name, runs in cases.items()])


def failed_row(name: str, heads: Sequence[str]) -> list[str]:
    return [name, "failed"] + [""] * (len(heads) - 2)


def measured(runs: Sequence[Record]) -> str:
    """When the first and the last run began: the same machine is slower at some hours than at others."""
    began = sorted(run["began"] for run in runs if "began" in run)
    return " to ".join(dict.fromkeys(moment.replace("T", " ") for moment in (*began[:1], *began[-1:])))


def embedded_kb_a_cpu_second(run: Record) -> float:
    """The text that is embedded, without what chunks have twice. lkr cuts nothing."""
    return run["text_kb"] * (1 - run.get("cut", 0)) / run["index"]["cpu_s"]


def searches(cases: dict[str, list[Record]]) -> str:
    """A row for each case; the server of one that gets vectors from its clients has a row of its own."""
    all_steps = [step for runs in cases.values() for key in ("load", "vectors_load") for step in steps(runs, key)]
    clients = list(dict.fromkeys(step["clients"] for step in all_steps))
    heads = search_heads(clients)
    rows = []
    for name, runs in ((name, succeeded(all_runs)) for name, all_runs in cases.items()):
        if not runs:
            rows.append(failed_row(name, heads))
            continue
        rows.append(search_row(name, runs, "load", clients))
        if any("vectors_load" in run for run in runs):
            of_server = [{key: run[key] for key in ("vectors_load", "memory")} for run in runs]
            rows.append(search_row(f"{name}, vectors given", of_server, "vectors_load", clients))
    return table(heads, rows)


def search_heads(clients: Sequence[int]) -> list[str]:
    heads = ["", "in process"]
    heads += [f"{number} client{'s' if number > 1 else ''}" for number in clients]
    over_http = f"CPU-ms over HTTP with {', '.join(map(str, clients))}"
    return heads + ["searches a second, most", "CPU-ms in process", over_http, "memory, MB", "failed", "foreign"]


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
    mark = f" {UNSTEADY}" if any(unsteady(part) for part in parts) else ""
    return f"{p50} / {p99}{mark}" if parts else ""


def unsteady(part: Record) -> bool:
    """Whether a step's figures contradict its number of clients. Older results lack the mean: the median stands for it."""
    if "clients" not in part:
        return False
    in_flight = part["rate"] * part.get("mean_ms", part["p50_ms"]) / 1e3
    return bool(abs(in_flight - part["clients"]) > TOLERANCE * part["clients"])


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
