"""Ranges of characters: where a chunk lies in its document, and which section it belongs to."""
from collections.abc import Collection, Sequence
from typing import NamedTuple


class Span(NamedTuple):
    start: int
    end: int

    def overlap(self, other: "Span") -> int:
        return max(0, min(self.end, other.end) - max(self.start, other.start))


class Section(NamedTuple):
    span: Span
    id: str


class Locator:
    """Finds chunks in the text of their document. White space does not count, because some splitters change it."""

    def __init__(self, text: str) -> None:
        self._places = [at for at, letter in enumerate(text) if not letter.isspace()]
        self._letters = "".join(text.split())
        self._from = 0

    def next(self, chunk: str) -> Span | None:
        """The place of a chunk, which begins behind the beginning of the previous chunk if it can."""
        wanted = "".join(chunk.split())
        at = self._letters.find(wanted, self._from)
        if at < 0:
            at = self._letters.find(wanted)
        if at < 0 or not wanted:
            return None
        self._from = at + 1
        return Span(self._places[at], self._places[at + len(wanted) - 1] + 1)


def section_of(chunk: Span, sections: Sequence[Section], judged: Collection[str]) -> str | None:
    """The judged section that a chunk overlaps most; without one, the other section that it overlaps most.

    `lkr eval` judges chunks in the same way.
    """
    of_query = [section for section in sections if section.id in judged]
    return most_overlapping(chunk, of_query) or most_overlapping(chunk, sections)


def most_overlapping(chunk: Span, sections: Sequence[Section]) -> str | None:
    best = max(sections, key=lambda section: chunk.overlap(section.span), default=None)
    return best.id if best is not None and chunk.overlap(best.span) > 0 else None
