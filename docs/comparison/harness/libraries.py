"""Measures a library: a process that indexes, one that searches, and its server if there is one."""
import json
import pathlib
import subprocess
import time
from dataclasses import asdict
from typing import Any

from harness import peer_servers
from harness.environment import environment
from harness.environments import size
from harness.judge import Judge, Place, located
from harness.processes import ending, kill_group
from harness.run import Run
from harness.systems.base import FIRST_ANSWER

PACKAGE = pathlib.Path(__file__).parent.parent


def measure(run: Run) -> dict[str, Any]:
    indexed = call(run, "index", texts=[asdict(text) for text in run.collection.texts(run.case.chunking)])
    disk = size(run.store) / 1e6
    searched = call(run, "search", queries=run.queries, rank=run.rank)
    record = {
        "chunks": len(indexed["chunks"]),
        "cut": indexed["cut"],
        "index": indexed["index"],
        "index_peak_mb": indexed["memory"]["peak"],
        "disk_mb": disk,
        "start_s": searched["start_s"],
        "search": searched["search"],
        "memory": searched["memory"],
    }
    if searched["rankings"]:
        record["quality"] = quality(run, indexed["chunks"], searched["rankings"])
    return record | peer_servers.measure(run, searched["vectors"])


def quality(run: Run, chunks: list[tuple[str, str, str]], rankings: list[list[str]]) -> dict[str, float]:
    given = run.case.chunking == "given"
    places = {chunk: Place(chunk, None) for chunk, _, _ in chunks} if given else located(run.collection, chunks)
    ranked = [[places[chunk] for chunk in ranking] for ranking in rankings]
    return Judge(run.collection, run.case.chunking).quality(ranked)


def call(run: Run, step: str, **arguments: Any) -> dict[str, Any]:
    """Runs a step in the system's environment. A searching one is timed from its start to its first answer."""
    variant = run.case.variant
    result = run.folder / f"{step}.result.json"
    file = run.folder / f"{step}.json"
    content = {"step": step, "system": variant.system}
    content |= {"hybrid": variant.hybrid, "fitted": variant.fitted, "exact": variant.exact}
    content |= {"chunking": run.case.chunking, "model": str(run.settings.model)}
    content |= {"store": str(run.store), "result": str(result)}
    file.write_text(json.dumps(content | arguments), encoding="utf-8")
    run.store.mkdir(exist_ok=True)
    command = [str(run.settings.environments.python(variant.system)), "-m", "harness.worker", str(file)]
    started, first = time.monotonic(), None
    with run.log.open("a") as log, subprocess.Popen(
        command, cwd=PACKAGE, env=environment(), stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
    ) as process:
        try:
            for line in process.stdout or ():
                if line.strip() == FIRST_ANSWER:
                    first = time.monotonic() - started
            process.wait()
        finally:
            kill_group(process.pid)
    if process.returncode != 0:
        raise RuntimeError(f"the step {step} {ending(process.returncode)}")
    found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return found | {"start_s": first}
