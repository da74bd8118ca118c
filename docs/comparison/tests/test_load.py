"""The load of wrk on a small server in this process."""
import concurrent.futures
import contextlib
import http.server
import itertools
import os
import pathlib
import shutil
import tempfile
import threading
import time
import unittest
from collections.abc import Iterator
from unittest import mock

from harness import load
from harness.load import Load, needed
from harness.requests import Request


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers one request at a time in their order, each after a while. Paths that begin with /none get an error."""

    protocol_version = "HTTP/1.1"
    server: "SlowServer"

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self.server.worker.submit(time.sleep, self.server.seconds).result()
        status = 500 if self.path.startswith("/none") else 200
        self.wfile.write(f"HTTP/1.1 {status} x\r\nContent-Length: 2\r\nX-Cache: hit\r\n\r\n{{}}".encode())

    def log_message(self, *_: object) -> None:
        pass


class SlowServer(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def __init__(self, seconds: float) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seconds, self.worker = seconds, concurrent.futures.ThreadPoolExecutor(1)
        self.paths: list[str] = []


@contextlib.contextmanager
def loaded(seconds: float, path: str = "/", **options: int) -> Iterator[tuple[SlowServer, Load]]:
    """A server that needs so many seconds for a request, and a load of unlike requests."""
    with SlowServer(seconds) as server, tempfile.TemporaryDirectory() as folder:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        requests = (Request("GET", f"{path}?{number}") for number in itertools.count())
        yield server, Load(server.server_port, os.getpid(), requests, pathlib.Path(folder), **options)
        server.shutdown()


@unittest.skipIf(shutil.which("wrk") is None, "wrk is not installed")
@mock.patch.object(load, "WARM_UP_S", 0.25)
@mock.patch.object(load, "IDLE_TIMEOUT_S", 0.3)
class Steps(unittest.TestCase):
    def test_a_step_awaits_all_answers_and_lasts_until_each_client_had_several(self) -> None:
        with mock.patch.object(load, "TURNS", 4), loaded(0.02) as (server, slow):
            found = slow.step(16, 1)
        self.assertGreaterEqual(found["answered"], 4 * 16)
        self.assertGreater(found["sending_s"], 1)
        self.assertEqual((found["sent"], found["failed"]), (found["answered"], 0))
        self.assertEqual(len(set(server.paths)), len(server.paths), "no two requests are alike")
        self.assertAlmostEqual(found["rate"] * found["mean_ms"] / 1e3, 16, delta=0.2 * 16)
        self.assertGreater(found["p50_ms"], 250)
        self.assertEqual(found["hits"], found["answered"])

    def test_a_step_that_was_too_short_is_repeated_with_a_longer_one(self) -> None:
        with mock.patch.object(load, "TURNS", 8), loaded(0.002) as (server, slow):
            first = slow._run

            def slower(*arguments: int) -> dict[str, float]:
                found = first(*arguments)
                server.seconds = 0.03
                return found

            with mock.patch.object(slow, "_run", slower):
                found = slow.step(8, 1)
        self.assertGreaterEqual(found["answered"], 8 * 8)
        self.assertGreater(found["sending_s"], 1)

    def test_a_step_is_never_longer_than_the_longest(self) -> None:
        with loaded(0.05, longest=1) as (_, slow):
            found = slow.step(8, 1)
        self.assertEqual(found["sending_s"], 1)
        self.assertEqual(found["sent"], found["answered"])

    def test_a_step_that_runs_out_of_requests_is_repeated_with_more_unlike_ones(self) -> None:
        with mock.patch.multiple(load, RESERVE=0.8, SPARE=0), loaded(0.005) as (_, fast):
            found = fast.step(2, 1)
        self.assertEqual(found["repeated"], 0)

    def test_too_few_requests_are_an_error_that_names_both_numbers(self) -> None:
        with loaded(0.0) as (_, fast):
            fast._requests = iter([Request("GET", "/")] * 5)
            with self.assertRaisesRegex(ValueError, "270 more requests are needed, but only 5 are left"):
                fast.step(1, 1)

    def test_a_server_that_answers_with_errors_alone_is_an_error(self) -> None:
        with loaded(0.01, "/none") as (_, failing), self.assertRaisesRegex(RuntimeError, "none of .* with an error"):
            failing.step(1, 1)

    def test_a_server_that_is_away_is_an_error(self) -> None:
        with loaded(0.0) as (server, away):
            server.shutdown()
            server.server_close()
            with self.assertRaisesRegex(RuntimeError, "wrk ended with status 1: .*refused"):
                away.step(2, 1)


class Needed(unittest.TestCase):
    def test_needed_requests_are_those_of_all_steps_with_their_warm_up(self) -> None:
        self.assertEqual(needed((1, 8), 10), 2 * (load.WARM_UP_S + 10) * load.MOST_RATE)


if __name__ == "__main__":
    unittest.main()
