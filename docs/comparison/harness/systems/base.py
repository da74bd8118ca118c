"""What a compared library must do."""
import abc
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from harness.collection import Text

Part = TypeVar("Part")
FIRST_ANSWER = "first answer"
"""The line that a searching worker prints when it has one."""


@dataclass(frozen=True)
class Chunk:
    id: str
    document: str
    """The document or row that it is from."""
    title: str
    text: str

    @property
    def titled(self) -> str:
        """The text below its title, for systems that index one text."""
        return f"{self.title}\n{self.text}" if self.title else self.text


class System(abc.ABC):
    """A library with an index in `folder`. A `hybrid` one searches by keywords and vectors, else by vectors alone.

    The splitter of a `fitted` one makes chunks that the model reads whole. An `exact` one compares a query with all vectors.
    """

    def __init__(
        self, model: pathlib.Path, folder: pathlib.Path, *, hybrid: bool, fitted: bool = False, exact: bool = False
    ) -> None:
        self.model, self.folder = str(model), folder
        self.hybrid, self.fitted, self.exact = hybrid, fitted, exact

    @abc.abstractmethod
    def load_model(self) -> None:
        """Loads the model and embeds a text, so that indexing begins with a warm model."""

    def split(self, texts: Sequence[Text]) -> list[Chunk]:
        """Splits documents with the system's own splitter, with its default settings unless it is fitted."""
        raise NotImplementedError(f"{type(self).__name__} has no splitter")

    @abc.abstractmethod
    def index(self, chunks: Sequence[Chunk]) -> None:
        """Embeds and stores the chunks, and writes the index to the disk."""

    @abc.abstractmethod
    def open(self) -> None:
        """Opens a stored index for searches."""

    @abc.abstractmethod
    def search(self, query: str, limit: int) -> list[str]:
        """The ids of the best chunks. Their texts are fetched, too."""

    def vectors(self, queries: Sequence[str]) -> list[list[float]] | None:
        """The queries' vectors, if the system's server does not embed queries by itself."""
        return None


def whole(texts: Sequence[Text]) -> list[Chunk]:
    """Given chunks, as they are."""
    return [Chunk(text.id, text.id, text.title, text.text) for text in texts]


def numbered(text: Text, parts: Sequence[str]) -> list[Chunk]:
    """The parts of a document as chunks."""
    return [Chunk(f"{text.id}|{number}", text.id, text.title, part) for number, part in enumerate(parts)]


def batches(items: Sequence[Part], size: int) -> list[Sequence[Part]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
