"""Servers and workers do not outlive a comparison that is ended."""
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PACKAGE = pathlib.Path(__file__).parent.parent

SERVING = """
import os, pathlib, sys, time
from compare import end_on_signals
from harness.server import running
end_on_signals()
log = pathlib.Path(sys.argv[1], "log")
child = "import subprocess, sys, time; p = subprocess.Popen(['sleep', '60']); print(p.pid, flush=True); time.sleep(60)"
with running([sys.executable, "-c", child], os.environ, 1, log) as server:
    while not log.exists() or not log.read_text().endswith("\\n"):
        time.sleep(0.01)
    print(server.pid, log.read_text().strip(), flush=True)
    time.sleep(60)
"""
WORKING = """
import pathlib, sys, types
from compare import end_on_signals
from harness import libraries
end_on_signals()
folder = pathlib.Path(sys.argv[1])
worker = folder / "worker"
worker.write_text("#!/bin/sh\\nsleep 60 &\\necho $$ $! > " + str(folder) + "/pids\\nmv " + str(folder) + "/pids " + str(folder)
                  + "/started\\nwait\\n")
worker.chmod(0o755)
variant = types.SimpleNamespace(system="x", hybrid=False, fitted=False, exact=False)
environments = types.SimpleNamespace(python=lambda system: worker)
run = types.SimpleNamespace(
    case=types.SimpleNamespace(variant=variant, chunking="own"), folder=folder, store=folder / "store", log=folder / "log",
    settings=types.SimpleNamespace(model=folder, environments=environments),
)
libraries.call(run, "index")
"""


def is_alive(process: int) -> bool:
    """Whether a process runs; one that has ended and was not awaited does not."""
    try:
        status = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


class Ending(unittest.TestCase):
    def test_a_server_and_its_children_end_with_the_comparison(self) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number), tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, "-c", SERVING, folder]
                with subprocess.Popen(command, cwd=PACKAGE, stdout=subprocess.PIPE, text=True) as comparison:
                    assert comparison.stdout is not None
                    processes = [int(process) for process in comparison.stdout.readline().split()]
                    self.check(comparison, number, processes)

    def test_a_worker_and_its_children_end_with_the_comparison(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            with subprocess.Popen([sys.executable, "-c", WORKING, folder], cwd=PACKAGE) as comparison:
                started = pathlib.Path(folder, "started")
                deadline = time.monotonic() + 30
                while not started.exists() and time.monotonic() < deadline:
                    time.sleep(0.01)
                processes = [int(process) for process in started.read_text(encoding="utf-8").split()]
                self.check(comparison, signal.SIGTERM, processes)

    def check(self, comparison: "subprocess.Popen[str] | subprocess.Popen[bytes]", number: int, processes: list[int]) -> None:
        self.assertEqual(len(processes), 2)
        self.assertTrue(all(map(is_alive, processes)))
        comparison.send_signal(number)
        self.assertEqual(comparison.wait(30), 128 + number)
        deadline = time.monotonic() + 10
        while any(map(is_alive, processes)) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse(any(map(is_alive, processes)))


if __name__ == "__main__":
    unittest.main()
