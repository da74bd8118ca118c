"""Chroma: vectors in a persistent collection. Its local store has no keyword ranking, and it has no splitter."""
from collections.abc import Sequence

import chromadb
from chromadb.utils.embedding_functions import SentenceTransformerEmbeddingFunction

from harness.systems.base import Chunk, System, batches


class Chroma(System):
    def load_model(self) -> None:
        self._embed = SentenceTransformerEmbeddingFunction(model_name=self.model)
        self._embed(["warm up"])

    def index(self, chunks: Sequence[Chunk]) -> None:
        client = chromadb.PersistentClient(path=str(self.folder / "index"))
        collection = client.create_collection("documents", embedding_function=self._embed)
        for batch in batches(chunks, client.get_max_batch_size()):
            collection.add(ids=[chunk.id for chunk in batch], documents=[chunk.titled for chunk in batch])

    def open(self) -> None:
        client = chromadb.PersistentClient(path=str(self.folder / "index"))
        embed = SentenceTransformerEmbeddingFunction(model_name=self.model)
        self._collection = client.get_collection("documents", embedding_function=embed)

    def search(self, query: str, limit: int) -> list[str]:
        found: list[str] = self._collection.query(query_texts=[query], n_results=limit)["ids"][0]
        return found

    def vectors(self, queries: Sequence[str]) -> list[list[float]]:
        """Vectors for requests to the server, which does not embed."""
        embed = SentenceTransformerEmbeddingFunction(model_name=self.model)
        return [vector.tolist() for query in queries for vector in embed([query])]
