"""Load over HTTP with wrk: clients that each send the next request when the last one was answered."""
import itertools
import json
import os
import pathlib
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.processes import Stopwatch, cpu_seconds, memory

SCRIPT = pathlib.Path(__file__).with_name("wrk.lua")
REQUESTS = 20_000
"""The number of unlike requests: more than a server answers in a step, so that no cache helps."""
WARM_UP_S = 2
IDLE_TIMEOUT_S = 30.0
IDLE_CPU_S = 0.02
"""A server that uses less than this in 0.3 seconds is idle."""
LONGEST_GAP = 3
"""The longest run of spaces between two words."""


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: str = ""


def unlike(queries: Sequence[str], count: int) -> list[str]:
    """`count` queries of which no two are alike: the numbers of spaces between words differ, which no ranking reads."""
    turns = itertools.zip_longest(*(spaced(query) for query in queries))
    found = (query for turn in turns for query in turn if query is not None)
    return list(itertools.islice(found, count))


def spaced(query: str) -> Iterator[str]:
    """The query with each combination of runs of spaces between its words."""
    words = query.split()
    for gaps in itertools.product(range(1, LONGEST_GAP + 1), repeat=len(words) - 1):
        yield "".join(word + " " * gap for word, gap in zip(words, (*gaps, 0), strict=True))


class Load:
    """Sends requests to a server in steps. The requests of a step are others than those of the steps before."""

    def __init__(self, port: int, server: int, requests: Sequence[Request], folder: pathlib.Path) -> None:
        self._port, self._server, self._folder = port, server, folder
        self._requests = list(requests)

    def step(self, clients: int, seconds: int) -> dict[str, Any]:
        self._run(clients, WARM_UP_S)
        self._wait_until_idle()
        watch = Stopwatch(self._server, os.getpid())
        found = self._run(clients, seconds)
        interval = watch.stop()
        answered = found["requests"] - found["failed"]
        return interval.record() | found | {
            "clients": clients,
            "rate": answered / found["seconds"],
            "cpu_ms": 1e3 * interval.cpu_s / answered if answered else None,
            "anonymous_mb": memory(self._server).anonymous,
        }

    def _wait_until_idle(self) -> None:
        """Waits for requests whose clients have left, which some servers still work on."""
        deadline = time.monotonic() + IDLE_TIMEOUT_S
        before = cpu_seconds(self._server)
        while time.monotonic() < deadline:
            time.sleep(0.3)
            now = cpu_seconds(self._server)
            if now - before <= IDLE_CPU_S:
                return
            before = now

    def _run(self, clients: int, seconds: int) -> dict[str, Any]:
        file = self._folder / "requests.tsv"
        lines = (f"{request.method}\t{request.path}\t{request.body}\n" for request in self._requests)
        file.write_text("".join(lines), encoding="utf-8")
        command = ["wrk", "--threads", "1", "--connections", str(clients), "--duration", f"{seconds}s",
                   "--timeout", "60s", "--script", str(SCRIPT), f"http://127.0.0.1:{self._port}", "--", str(file)]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        line = next(line for line in output.splitlines() if line.startswith("RESULT "))
        found: dict[str, Any] = json.loads(line.removeprefix("RESULT "))
        sent = (found["requests"] + clients) % len(self._requests)
        self._requests = self._requests[sent:] + self._requests[:sent]
        return found
