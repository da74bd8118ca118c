"""What a comparison is asked to do. Everything that can be wrong with it is found before any work."""
import argparse
import pathlib
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from harness.case import CHUNKINGS, VARIANTS, Case, cases
from harness.collection import Collection, read
from harness.load import LONGEST_S, needed
from harness.model_folder import LINKED
from harness.program import Program, inspect
from harness.requests import unlike

SYSTEMS = list(dict.fromkeys(variant.system for variant in VARIANTS))
NAMES = [variant.name for variant in VARIANTS]
COLLECTIONS = ["gitlab_handbook", "product_docs", "scifact"]
FILES = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")
"""That a collection has."""


@dataclass(frozen=True)
class Plan:
    program: Program
    model: pathlib.Path
    work: pathlib.Path
    rounds: int
    seconds: int
    longest: int
    clients: tuple[int, ...]
    cases: list[Case]


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and ends with status 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def make(arguments: Sequence[str], description: str) -> Plan:
    parser = parser_of(description)
    given = parser.parse_args(arguments)
    try:
        return planned(given)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        parser.error(" ".join(str(error).split()))


def parser_of(description: str) -> Parser:
    parser = Parser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("lkr", "model", "data", "work"):
        parser.add_argument(f"--{name}", type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--seconds", type=positive, default=10, help="the length of each step of the load")
    parser.add_argument("--longest", type=positive, default=LONGEST_S, metavar="SECONDS",
                        help="how long a step may become where a system answers few requests")
    parser.add_argument("--clients", type=counts, default=(1, 8, 64))
    parser.add_argument("--systems", type=some_of(SYSTEMS), help=", ".join(SYSTEMS))
    parser.add_argument("--variants", type=some_of(NAMES), help=", ".join(NAMES))
    parser.add_argument("--collections", type=names)
    parser.add_argument("--chunkings", type=some_of(CHUNKINGS), help=", ".join(CHUNKINGS))
    return parser


def positive(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"not a positive number: {text!r}")
    return int(text)


def counts(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(map(positive, text.split(","))))


def names(text: str) -> list[str]:
    """Names that are separated by commas."""
    return list(dict.fromkeys(name.strip() for name in text.split(",")))


def some_of(known: Sequence[str]) -> Callable[[str], list[str]]:
    def read_names(text: str) -> list[str]:
        found = names(text)
        unknown = [name for name in found if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(map(repr, unknown))}")
        return found

    return read_names


def planned(given: argparse.Namespace) -> Plan:
    if shutil.which("wrk") is None:
        raise ValueError("wrk is not installed (Debian: apt-get install wrk)")
    program = inspect(given.lkr)
    lacking(given.model, LINKED)
    collections = [collection(given.data / name) for name in given.collections or COLLECTIONS]
    for found in collections:
        enough(found, given.clients, given.seconds)
    variants = [
        variant
        for variant in VARIANTS
        if variant.system in (given.systems or SYSTEMS) and variant.name in (given.variants or NAMES)
    ]
    found_cases = cases(variants, collections, given.chunkings or CHUNKINGS)
    every_one_is_used("--systems", given.systems, (case.variant.system for case in found_cases))
    every_one_is_used("--variants", given.variants, (case.variant.name for case in found_cases))
    asked = [found.name for found in collections] if given.collections else None
    every_one_is_used("--collections", asked, (case.collection.name for case in found_cases))
    every_one_is_used("--chunkings", given.chunkings, (case.chunking for case in found_cases))
    given.work.mkdir(parents=True, exist_ok=True)
    return Plan(program, given.model, given.work, given.rounds, given.seconds, given.longest, given.clients, found_cases)


def collection(folder: pathlib.Path) -> Collection:
    lacking(folder, FILES)
    try:
        found = read(folder)
    except (KeyError, ValueError) as error:
        raise ValueError(f"cannot read the collection {folder}: {type(error).__name__}: {error}") from error
    if not found.rows or not found.queries:
        raise ValueError(f"the collection {folder} has {len(found.rows)} texts and {len(found.queries)} judged queries")
    return found


def lacking(folder: pathlib.Path, files: Iterable[str]) -> None:
    """Raises ValueError if a folder lacks a file."""
    if not folder.is_dir():
        raise ValueError(f"no such folder: {folder}")
    missing = [name for name in files if not (folder / name).is_file()]
    if missing:
        raise ValueError(f"{folder} lacks {', '.join(missing)}")


def enough(found: Collection, clients: Sequence[int], seconds: int) -> None:
    """Raises ValueError if a collection has too few queries for the load."""
    try:
        unlike([query.text for query in found.queries], needed(clients, seconds))
    except ValueError as error:
        raise ValueError(f"the collection {found.name} has too few queries: {error}") from error


def every_one_is_used(option: str, given: Sequence[str] | None, used: Iterable[str]) -> None:
    """Raises ValueError if something that was asked for is in no case."""
    known = set(used)
    unused = [name for name in given or () if name not in known]
    if unused or not known:
        wanted = ", ".join(map(repr, unused)) or "anything"
        raise ValueError(f"{option}: no case has {wanted} with the other options")
