"""Processor time and memory of processes with all their descendants, and the load of other programs, from /proc."""
import contextlib
import os
import pathlib
import signal
import time
from dataclasses import asdict, dataclass

TICKS = os.sysconf("SC_CLK_TCK")
PROC = pathlib.Path("/proc")


def tree(root: int) -> list[int]:
    """A process and its living descendants."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (fields := stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, open_ends = [], [root]
    while open_ends:
        process = open_ends.pop()
        found.append(process)
        open_ends.extend(children.get(process, []))
    return found


def stat(process: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name; empty if the process has ended."""
    try:
        return (PROC / str(process) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def kill_group(leader: int) -> None:
    """Kills the processes that one has started, and itself; those that have ended are no matter."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def ending(status: int) -> str:
    """How a process ended, from the status that subprocess tells."""
    return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


def cpu_seconds(root: int) -> float:
    """The processor time of a process, its living descendants and its ended children."""
    found = (stat(process)[11:15] for process in tree(root))
    return sum(sum(map(int, fields)) for fields in found) / TICKS


@dataclass(frozen=True)
class Memory:
    """Sums over a process and its descendants, in megabytes (1,000,000 bytes)."""

    anonymous: float
    """Memory that belongs to no file: RssAnon."""
    resident: float
    peak: float
    """The largest resident memory so far: VmHWM."""


def memory(root: int) -> Memory:
    sums = {"RssAnon": 0, "VmRSS": 0, "VmHWM": 0}
    for process in tree(root):
        for line in status(process):
            name, _, value = line.partition(":")
            if name in sums:
                sums[name] += int(value.split()[0])
    anonymous, resident, peak = (kibibytes * 1024 / 1e6 for kibibytes in sums.values())
    return Memory(anonymous, resident, peak)


def status(process: int) -> list[str]:
    try:
        return (PROC / str(process) / "status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


@dataclass(frozen=True)
class Interval:
    """What happened between the start and the end of a measurement."""

    wall_s: float
    cpu_s: float
    """Processor time of the measured process with its descendants."""
    foreign: float
    """Processors that other programs used in the mean, those of the hypervisor's other guests included."""

    def record(self) -> dict[str, float]:
        return {name: round(value, 4) for name, value in asdict(self).items()}


class Stopwatch:
    """Measures `measured` from now on. All processes below `own` count as those of the comparison, not as foreign."""

    def __init__(self, measured: int, own: int) -> None:
        self._measured, self._own = measured, own
        self._busy, self._own_cpu = busy_seconds(), cpu_seconds(own)
        self._cpu, self._wall = cpu_seconds(measured), time.monotonic()

    def stop(self) -> Interval:
        wall = time.monotonic() - self._wall
        cpu = cpu_seconds(self._measured) - self._cpu
        own = cpu_seconds(self._own) - self._own_cpu
        foreign = max(0.0, busy_seconds() - self._busy - own) / wall
        return Interval(wall, cpu, foreign)


def busy_seconds() -> float:
    """The processor time of the machine that was neither idle nor waiting."""
    fields = (PROC / "stat").read_text(encoding="utf-8").splitlines()[0].split()[1:]
    user, nice, system, _, _, interrupts, soft_interrupts, steal = map(int, fields[:8])
    return (user + nice + system + interrupts + soft_interrupts + steal) / TICKS
