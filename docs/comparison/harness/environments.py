"""A virtual environment for each system, with pinned packages, and what it takes on the disk."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
from dataclasses import dataclass

from harness.environment import BYTECODE, without

REQUIREMENTS = pathlib.Path(__file__).parent.parent / "requirements"
UV = "uv==0.13.8"
COMPILED = "--compile-bytecode"
"""pip compiles modules when it installs them; uv does so if it is asked to."""
CUDA = ("nvidia", "cuda", "triton")
"""Beginnings of the names of packages that only graphics cards use. PyTorch's package on PyPI requires them."""


@dataclass(frozen=True)
class Installation:
    packages: int
    megabytes: float
    """Of all installed files."""
    cuda_megabytes: float
    """Of those in packages for graphics cards."""


class Environments:
    """Virtual environments below `folder`. Files that several of them have are on the disk once, as hard links."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder

    def python(self, system: str) -> pathlib.Path:
        return self._folder / system / "bin" / "python"

    def program(self, system: str, name: str) -> pathlib.Path:
        return self._folder / system / "bin" / name

    def make(self, system: str) -> None:
        """Installs a system, unless exactly this was installed before."""
        expected = f"# {COMPILED}\n{requirements(system)}"
        installed = self._folder / system / "installed.txt"
        if installed.exists() and installed.read_text(encoding="utf-8") == expected:
            return
        uv = self._uv()
        shutil.rmtree(self._folder / system, ignore_errors=True)
        run(uv, "venv", "--quiet", "--python", sys.executable, self._folder / system)
        cache = ("--cache-dir", str(self._folder / "cache"), "--link-mode", "hardlink")
        options = ("--quiet", COMPILED, *cache, "--python", self.python(system))
        run(uv, "pip", "install", *options, "--requirement", REQUIREMENTS / f"{system}.txt")
        separate_nltk_data(self._packages(system))
        installed.write_text(expected, encoding="utf-8")

    def _uv(self) -> pathlib.Path:
        uv = self.program("uv", "uv")
        if not uv.exists():
            run(sys.executable, "-m", "venv", self._folder / "uv")
            run(self.python("uv"), "-m", "pip", "install", "--quiet", UV)
        return uv

    def _packages(self, system: str) -> pathlib.Path:
        return next((self._folder / system / "lib").glob("python*/site-packages"))

    def installation(self, system: str) -> Installation:
        sizes = {entry.name: size(entry) for entry in self._packages(system).iterdir()}
        cuda = sum(bytes_ for name, bytes_ in sizes.items() if name.startswith(CUDA))
        count = sum(1 for name in sizes if name.endswith(".dist-info"))
        return Installation(count, sum(sizes.values()) / 1e6, cuda / 1e6)


def requirements(system: str) -> str:
    """The exact versions of all packages of a system."""
    return (REQUIREMENTS / f"{system}.txt").read_text(encoding="utf-8")


def version(system: str) -> str:
    """The versions of the packages that a system was chosen by, and a hash of those of all its packages."""
    chosen = (REQUIREMENTS / f"{system}.in").read_text(encoding="utf-8").split()
    return f"{', '.join(chosen)}; all packages: {hashlib.sha256(requirements(system).encode()).hexdigest()[:12]}"


def separate_nltk_data(packages: pathlib.Path) -> None:
    """Makes the data of NLTK files of their own: NLTK refuses those with several hard links."""
    for path in packages.glob("**/nltk_cache/**/*"):
        if path.is_file():
            content = path.read_bytes()
            path.unlink()
            path.write_bytes(content)


def size(path: pathlib.Path) -> int:
    """The bytes of a file, or of all files below a folder."""
    if path.is_dir() and not path.is_symlink():
        return sum(size(entry) for entry in path.iterdir())
    return path.lstat().st_size


def run(*command: str | pathlib.Path) -> None:
    subprocess.run([str(part) for part in command], check=True, env=installing_environment())


def installing_environment() -> dict[str, str]:
    """uv reads other variables than pip for the certificates of a proxy."""
    certificates = os.environ.get("PIP_CERT")
    return without(BYTECODE) | ({"SSL_CERT_FILE": certificates} if certificates else {})
