"""txtai: an embeddings index (Faiss) with a content database (SQLite), and a keyword index if it is hybrid.

Behind 5,000 rows, its default Faiss index is an approximate one: cells (IVF), of which a search reads a sixteenth.
"""
from collections.abc import Sequence

from txtai import Embeddings
from txtai.pipeline import Segmentation

from harness.collection import Text
from harness.systems.base import Chunk, System, numbered

EXACT = {"faiss": {"components": "IDMap,Flat"}}
"""What txtai takes by itself for fewer rows."""


class Txtai(System):
    def load_model(self) -> None:
        options = EXACT if self.exact else {}
        self._embeddings = Embeddings(path=self.model, content=True, hybrid=self.hybrid, **options)
        self._embeddings.transform("warm up")

    def split(self, texts: Sequence[Text]) -> list[Chunk]:
        split = Segmentation(paragraphs=True)
        return [chunk for text in texts for chunk in numbered(text, split(text.text))]

    def index(self, chunks: Sequence[Chunk]) -> None:
        self._embeddings.index((chunk.id, chunk.titled, None) for chunk in chunks)
        self._embeddings.save(str(self.folder / "index"))

    def open(self) -> None:
        self._embeddings = Embeddings()
        self._embeddings.load(str(self.folder / "index"))

    def search(self, query: str, limit: int) -> list[str]:
        return [found["id"] for found in self._embeddings.search(query, limit)]
