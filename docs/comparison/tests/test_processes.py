"""Processor time and memory of real processes."""
import os
import subprocess
import sys
import time
import unittest

from harness.processes import Stopwatch, memory, tree

BURN = "import time\nwhile time.process_time() < 0.3: pass"


class Processes(unittest.TestCase):
    def test_children_count_for_the_process_that_started_them(self) -> None:
        watch = Stopwatch(os.getpid(), os.getpid())
        subprocess.run([sys.executable, "-c", BURN], check=True)
        interval = watch.stop()
        self.assertGreaterEqual(interval.cpu_s, 0.28)
        self.assertGreaterEqual(interval.wall_s, 0.3)

    def test_processes_outside_of_the_comparison_are_foreign(self) -> None:
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as idle:
            watch = Stopwatch(idle.pid, idle.pid)
            started = time.process_time()
            while time.process_time() < started + 0.3:
                pass
            interval = watch.stop()
            self.assertIn(idle.pid, tree(os.getpid()))
            self.assertGreater(memory(idle.pid).anonymous, 0.0)
            idle.communicate(b"\n")
        self.assertGreaterEqual(interval.foreign * interval.wall_s, 0.2)
        self.assertLess(interval.cpu_s, 0.2)


if __name__ == "__main__":
    unittest.main()
