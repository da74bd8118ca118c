"""LlamaIndex with Qdrant's local mode; if it is hybrid, fused with LlamaIndex's BM25 retriever.

Qdrant's own hybrid search needs models for sparse vectors, which LlamaIndex downloads.
"""
from collections.abc import Sequence

from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import TextNode
from llama_index.embeddings.huggingface import HuggingFaceEmbedding
from llama_index.retrievers.bm25 import BM25Retriever
from llama_index.vector_stores.qdrant import QdrantVectorStore
from qdrant_client import QdrantClient

from harness.collection import Text
from harness.systems.base import Chunk, System, numbered


class LlamaIndex(System):
    def load_model(self) -> None:
        self._embed = HuggingFaceEmbedding(model_name=self.model)
        self._embed.get_text_embedding("warm up")

    def split(self, texts: Sequence[Text]) -> list[Chunk]:
        splitter = SentenceSplitter(chunk_size=200, chunk_overlap=20) if self.fitted else SentenceSplitter()
        return [chunk for text in texts for chunk in numbered(text, parts(splitter, text))]

    def index(self, chunks: Sequence[Chunk]) -> None:
        nodes = [node(chunk) for chunk in chunks]
        storage = StorageContext.from_defaults(vector_store=self._store())
        VectorStoreIndex(nodes, storage_context=storage, embed_model=self._embed)
        if self.hybrid:
            BM25Retriever.from_defaults(nodes=nodes).persist(str(self.folder / "bm25"))

    def open(self) -> None:
        embed = HuggingFaceEmbedding(model_name=self.model)
        self._index = VectorStoreIndex.from_vector_store(self._store(), embed_model=embed)
        self._keywords = BM25Retriever.from_persist_dir(str(self.folder / "bm25")) if self.hybrid else None
        self._retrievers: dict[int, BaseRetriever] = {}

    def search(self, query: str, limit: int) -> list[str]:
        if limit not in self._retrievers:
            self._retrievers[limit] = self._retriever(limit)
        return [found.node.metadata["chunk"] for found in self._retrievers[limit].retrieve(query)]

    def _retriever(self, limit: int) -> BaseRetriever:
        vectors = self._index.as_retriever(similarity_top_k=limit)
        if self._keywords is None:
            return vectors
        self._keywords.similarity_top_k = limit
        both = [vectors, self._keywords]
        settings = {"similarity_top_k": limit, "num_queries": 1, "use_async": False, "llm": MockLLM()}
        return QueryFusionRetriever(both, mode="reciprocal_rerank", **settings)

    def _store(self) -> QdrantVectorStore:
        client = QdrantClient(path=str(self.folder / "index"))
        return QdrantVectorStore(client=client, collection_name="documents")


def parts(splitter: SentenceSplitter, text: Text) -> list[str]:
    document = Document(text=text.text, metadata={"title": text.title})
    return [node.text for node in splitter.get_nodes_from_documents([document])]


def node(chunk: Chunk) -> TextNode:
    """The title is metadata, which LlamaIndex embeds with the text. The chunk's id is not embedded."""
    return TextNode(
        text=chunk.text,
        metadata={"title": chunk.title, "chunk": chunk.id},
        excluded_embed_metadata_keys=["chunk"],
    )
