"""What the measurement of every case needs."""
import pathlib
from dataclasses import dataclass

from harness.case import Case
from harness.collection import Collection
from harness.environments import Environments


@dataclass(frozen=True)
class Settings:
    lkr: pathlib.Path
    lkr_model: pathlib.Path
    model: pathlib.Path
    """The same model with the files that transformers expects."""
    environments: Environments
    clients: tuple[int, ...]
    seconds: int
    longest: int
    """The longest step of the load, in seconds, for systems that answer too few requests in `seconds`."""


@dataclass(frozen=True)
class Run:
    """One run of a case in an empty folder."""

    settings: Settings
    case: Case
    folder: pathlib.Path
    rank: bool
    """Whether to measure the quality, which does not change from round to round."""

    @property
    def collection(self) -> Collection:
        return self.case.collection

    @property
    def queries(self) -> list[str]:
        return [query.text for query in self.collection.queries]

    @property
    def store(self) -> pathlib.Path:
        return self.folder / "store"

    @property
    def log(self) -> pathlib.Path:
        return self.folder / "log.txt"
