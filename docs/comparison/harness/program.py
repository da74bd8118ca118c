"""The lkr that is measured."""
import hashlib
import mmap
import pathlib
import subprocess
from dataclasses import dataclass

CHECK = b"unsafe precondition(s) violated"
"""A message of the checks that Rust's standard library has in builds with debug assertions, and only in these."""
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Program:
    path: pathlib.Path
    version: str
    """What it says of itself, and a hash of the file."""
    is_development: bool
    """Whether it was built with debug assertions, as `cargo build` does without `--release`."""


def inspect(path: pathlib.Path) -> Program:
    """Raises OSError or ValueError, with a message for whoever gave the path, if it is no lkr that runs."""
    if not path.is_file():
        raise ValueError(f"no such program: {path}")
    asked = subprocess.run([str(path), "--version"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if asked.returncode != 0 or not asked.stdout.startswith("lkr "):
        raise ValueError(f"{path} --version says nothing of lkr: status {asked.returncode}")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        digest = hashlib.sha256(content).hexdigest()
        return Program(path, f"{asked.stdout.strip()}, sha256 {digest[:12]}", content.find(CHECK) >= 0)
