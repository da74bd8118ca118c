"""Turns ranked chunks into rankings of judged items, and measures them."""
from collections.abc import Sequence
from typing import NamedTuple

from harness.collection import Collection, Query
from harness.metrics import mean, ndcg
from harness.spans import Locator, Span, section_of


class Place(NamedTuple):
    """Where a chunk is from: the document or row that was indexed, and its characters there."""

    text: str
    span: Span | None


def located(collection: Collection, chunks: Sequence[tuple[str, str, str]]) -> dict[str, Place]:
    """The places of a splitter's chunks, each given by its id, its document and its text."""
    locators = {text.id: Locator(text.text) for text in collection.documents}
    return {chunk: Place(document, locators[document].next(text)) for chunk, document, text in chunks}


class Judge:
    def __init__(self, collection: Collection, chunking: str) -> None:
        self._collection, self._given = collection, chunking == "given"

    def quality(self, rankings: Sequence[Sequence[Place]]) -> dict[str, float]:
        """The mean nDCG@10 of documents, each ranked by its best chunk, and of passages if they are judged."""
        pairs = list(zip(self._collection.queries, rankings, strict=True))
        documents = [ndcg([self._document(place) for place in places], query.documents) for query, places in pairs]
        found = {"documents": mean(documents)}
        judged = [(query, places) for query, places in pairs if query.passages]
        if judged:
            passages = [ndcg(self._passages(query, places), query.passages) for query, places in judged]
            found["passages"] = mean(passages)
        return found

    def _document(self, place: Place) -> str:
        return self._collection.document_of[place.text] if self._given else place.text

    def _passages(self, query: Query, places: Sequence[Place]) -> list[str]:
        return [self._passage(query, place) for place in places]

    def _passage(self, query: Query, place: Place) -> str:
        if self._given:
            return place.text
        sections = self._collection.sections.get(place.text, [])
        section = section_of(place.span, sections, query.passages) if place.span else None
        return section or f"outside of sections: {place}"
