"""LanceDB: a table with vectors, and a full-text index if it is hybrid. It has no splitter.

The vectors have no index: LanceDB's documentation recommends one from about 100,000 rows on.
"""
from collections.abc import Sequence

import lancedb
from lancedb.embeddings import get_registry
from lancedb.pydantic import LanceModel, Vector
from lancedb.rerankers import RRFReranker

from harness.systems.base import Chunk, System


class LanceDb(System):
    def load_model(self) -> None:
        self._embed = get_registry().get("sentence-transformers").create(name=self.model)
        self._embed.compute_query_embeddings("warm up")

    def index(self, chunks: Sequence[Chunk]) -> None:
        embed = self._embed

        class Row(LanceModel):  # type: ignore[misc]
            id: str
            text: str = embed.SourceField()
            vector: Vector(embed.ndims()) = embed.VectorField()  # type: ignore[valid-type]

        database = lancedb.connect(self.folder / "index")
        table = database.create_table("documents", schema=Row)
        table.add([{"id": chunk.id, "text": chunk.titled} for chunk in chunks])
        if self.hybrid:
            table.create_fts_index("text")

    def open(self) -> None:
        self._table = lancedb.connect(self.folder / "index").open_table("documents")
        self._reranker = RRFReranker()

    def search(self, query: str, limit: int) -> list[str]:
        if self.hybrid:
            found = self._table.search(query, query_type="hybrid").rerank(self._reranker)
        else:
            found = self._table.search(query)
        return [row["id"] for row in found.limit(limit).to_list()]
