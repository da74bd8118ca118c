"""Load over HTTP with wrk: clients that each send the next request when the last one was answered."""
import itertools
import json
import math
import os
import pathlib
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

from harness.metrics import mean, percentile
from harness.processes import Stopwatch, cpu_seconds, memory
from harness.requests import Request

SCRIPT = pathlib.Path(__file__).with_name("wrk.lua")
TURNS = 10
"""Answers of each client in a step, in the mean and at least. When a step begins, all clients send at once, so the first answer
of each comes sooner than later ones; with ten turns that changes the mean by a twentieth at most."""
LONGEST_S = 120
"""The longest step, with which a system that answers fewer than TURNS * clients / LONGEST_S requests a second must do."""
WARM_UP_S = 2.0
MOST_RATE = 1000
"""The answers a second for which there must be requests. If a server answers more, they may be used up."""
RESERVE = 1.5
"""Requests are made for a rate that is this many times the expected one."""
SPARE = 20
"""Further requests for each client, because some clients are answered more often than others."""
MARGIN = 1.2
"""How much longer a step is than TURNS need at the expected rate."""
DRAIN_S = 120
"""How long answers are awaited after the last request was sent."""
IDLE_TIMEOUT_S = 30.0
IDLE_CPU_S = 0.02
"""A server that uses less than this in 0.3 seconds is idle."""


def needed(clients: Sequence[int], seconds: int) -> int:
    """How many unlike requests the steps of a case need."""
    return math.ceil(len(clients) * (WARM_UP_S + seconds) * MOST_RATE)


class Load:
    """Sends requests to a server in steps. All requests of all steps are unlike if `requests` are."""

    def __init__(
        self, port: int, server: int, requests: Iterator[Request], folder: pathlib.Path, longest: int = LONGEST_S
    ) -> None:
        self._port, self._server, self._folder, self._longest = port, server, folder, longest
        self._requests = requests

    def step(self, clients: int, seconds: int) -> dict[str, Any]:
        """The load of some clients for `seconds`, or for longer until each has had TURNS answers in the mean.

        A first short load tells how long that takes. A step that still was too short, or for which too few requests were made, is
        repeated. No step sends for longer than `seconds` or the longest step, whichever is longer. The processor time is that of all
        requests, and the latencies are those of all answers.
        """
        rate, reserve = self._run(clients, WARM_UP_S, WARM_UP_S * MOST_RATE)["rate"], RESERVE
        longest = max(seconds, self._longest)
        while True:
            seconds = min(max(seconds, math.ceil(MARGIN * TURNS * clients / rate)), longest)
            found = self._measure(clients, seconds, math.ceil(reserve * rate * seconds))
            is_long_enough = found["answered"] >= TURNS * clients or seconds == longest
            if is_long_enough and not found["repeated"]:
                return found
            rate = found["rate"]
            if found["repeated"]:
                reserve *= 2

    def _measure(self, clients: int, seconds: int, count: int) -> dict[str, Any]:
        self._wait_until_idle()
        watch = Stopwatch(self._server, os.getpid())
        found = self._run(clients, seconds, count)
        interval = watch.stop()
        return interval.record() | found | {
            "clients": clients,
            "sending_s": seconds,
            "cpu_ms": 1e3 * interval.cpu_s / found["answered"],
            "anonymous_mb": memory(self._server).anonymous,
        }

    def _wait_until_idle(self) -> None:
        """Waits for work that some servers still do when they have answered."""
        deadline = time.monotonic() + IDLE_TIMEOUT_S
        before = cpu_seconds(self._server)
        while time.monotonic() < deadline:
            time.sleep(0.3)
            now = cpu_seconds(self._server)
            if now - before <= IDLE_CPU_S:
                return
            before = now

    def _run(self, clients: int, seconds: float, count: float) -> dict[str, Any]:
        """Sends `count` unlike requests or fewer for some seconds, and awaits the answers."""
        of_client = SPARE + math.ceil(count / clients)
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            for client in range(clients):
                write(self._take(of_client), pathlib.Path(folder, f"requests.{client}.tsv"))
            found = run_wrk(self._port, clients, seconds, folder)
        latencies = [latency / 1e3 for latency in found.pop("latencies_us")]
        if not latencies:
            raise RuntimeError(f"none of {found['sent']:,} requests was answered, {found['refused']:,} with an error")
        return found | {
            "answered": len(latencies),
            "failed": found["sent"] - len(latencies),
            "rate": len(latencies) / found["seconds"],
            "mean_ms": mean(latencies),
            "p50_ms": percentile(latencies, 0.5),
            "p99_ms": percentile(latencies, 0.99),
        }

    def _take(self, count: int) -> list[Request]:
        found = list(itertools.islice(self._requests, count))
        if len(found) < count:
            raise ValueError(f"{count:,} more requests are needed, but only {len(found):,} are left that were not sent before")
        return found


def write(requests: Sequence[Request], file: pathlib.Path) -> None:
    lines = (f"{request.method}\t{request.path}\t{request.body}\n" for request in requests)
    file.write_text("".join(lines), encoding="utf-8")


def run_wrk(port: int, clients: int, seconds: float, folder: str) -> dict[str, Any]:
    """Runs wrk until all its threads have stopped. Each has one connection."""
    command = ["wrk", "--threads", str(clients), "--connections", str(clients), "--duration", f"{math.ceil(seconds + DRAIN_S)}s",
               "--script", str(SCRIPT), f"http://127.0.0.1:{port}", "--", folder, str(seconds)]
    with (
        tempfile.TemporaryFile("w+", dir=folder) as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as wrk,
    ):
        try:
            stopped = (line for line in wrk.stdout or () if line == "STOPPED\n")
            if sum(1 for _ in itertools.islice(stopped, clients)) == clients:
                end(wrk)
            wrk.wait()
        finally:
            wrk.kill()
        result = pathlib.Path(folder, "result.json")
        if wrk.returncode != 0 or not result.exists():
            errors.seek(0)
            raise RuntimeError(f"wrk ended with status {wrk.returncode}: {errors.read().strip()[:1000]}")
        found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        return found


def end(wrk: "subprocess.Popen[str]") -> None:
    """Interrupts wrk, which then writes its result. It ignores an interrupt before it has begun to wait."""
    while wrk.poll() is None:
        wrk.send_signal(signal.SIGINT)
        try:
            wrk.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
