"""Haystack with its in-memory store, which is saved to a file; if it is hybrid, BM25 and vectors are fused."""
from collections.abc import Sequence

from haystack import Document, Pipeline
from haystack.components.joiners import DocumentJoiner
from haystack.components.preprocessors import DocumentSplitter
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.components.writers import DocumentWriter
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.components.embedders.sentence_transformers import (
    SentenceTransformersDocumentEmbedder,
    SentenceTransformersTextEmbedder,
)

from harness.collection import Text
from harness.systems.base import Chunk, System, numbered


class Haystack(System):
    def load_model(self) -> None:
        self._embedder = SentenceTransformersDocumentEmbedder(model=self.model, progress_bar=False)
        self._embedder.warm_up()
        self._embedder.run([Document(content="warm up")])

    def split(self, texts: Sequence[Text]) -> list[Chunk]:
        splitter = DocumentSplitter(split_length=150, split_overlap=15) if self.fitted else DocumentSplitter()
        splitter.warm_up()
        return [chunk for text in texts for chunk in numbered(text, parts(splitter, text))]

    def index(self, chunks: Sequence[Chunk]) -> None:
        store = InMemoryDocumentStore()
        indexing = Pipeline()
        indexing.add_component("embedder", self._embedder)
        indexing.add_component("writer", DocumentWriter(store))
        indexing.connect("embedder", "writer")
        indexing.run({"embedder": {"documents": [document(chunk) for chunk in chunks]}})
        store.save_to_disk(str(self.folder / "store.json"))

    def open(self) -> None:
        store = InMemoryDocumentStore.load_from_disk(str(self.folder / "store.json"))
        embedder = SentenceTransformersTextEmbedder(model=self.model, progress_bar=False)
        self.pipeline = hybrid_pipeline(store, embedder) if self.hybrid else vector_pipeline(store, embedder)
        self.pipeline.warm_up()

    def search(self, query: str, limit: int) -> list[str]:
        return [document.meta["chunk"] for document in self.retrieve(query, limit)]

    def retrieve(self, query: str, limit: int) -> list[Document]:
        inputs = {"embedder": {"text": query}, "vectors": {"top_k": limit}}
        if self.hybrid:
            inputs |= {"keywords": {"query": query, "top_k": limit}, "joiner": {"top_k": limit}}
        found: list[Document] = self.pipeline.run(inputs)["joiner" if self.hybrid else "vectors"]["documents"]
        return found


def vector_pipeline(store: InMemoryDocumentStore, embedder: SentenceTransformersTextEmbedder) -> Pipeline:
    pipeline = Pipeline()
    pipeline.add_component("embedder", embedder)
    pipeline.add_component("vectors", InMemoryEmbeddingRetriever(store))
    pipeline.connect("embedder.embedding", "vectors.query_embedding")
    return pipeline


def hybrid_pipeline(store: InMemoryDocumentStore, embedder: SentenceTransformersTextEmbedder) -> Pipeline:
    pipeline = vector_pipeline(store, embedder)
    pipeline.add_component("keywords", InMemoryBM25Retriever(store))
    pipeline.add_component("joiner", DocumentJoiner(join_mode="reciprocal_rank_fusion"))
    pipeline.connect("vectors", "joiner")
    pipeline.connect("keywords", "joiner")
    return pipeline


def parts(splitter: DocumentSplitter, text: Text) -> list[str]:
    found = splitter.run([Document(content=text.text)])["documents"]
    return [document.content for document in found]


def document(chunk: Chunk) -> Document:
    return Document(content=chunk.titled, meta={"chunk": chunk.id})
