"""What is compared."""
from collections.abc import Sequence
from dataclasses import dataclass

from harness.collection import Collection

CHUNKINGS = ("given", "own")


@dataclass(frozen=True)
class Variant:
    name: str
    system: str
    chunkings: tuple[str, ...]
    hybrid: bool = False
    fitted: bool = False
    """Whether its splitter makes chunks that the model reads whole, instead of those of its default settings."""
    exact: bool = False
    """Whether it compares the query with all vectors, where its default is an approximate search."""
    precision: str = ""
    """Of lkr's model."""


@dataclass(frozen=True)
class Case:
    variant: Variant
    collection: Collection
    chunking: str

    @property
    def name(self) -> str:
        return f"{self.variant.name}, {self.collection.name}, {self.chunking} chunks"


VARIANTS = (
    Variant("lkr float32", "lkr", CHUNKINGS, precision="float32"),
    Variant("lkr int8", "lkr", CHUNKINGS, precision="int8"),
    Variant("txtai vectors", "txtai", CHUNKINGS),
    Variant("txtai hybrid", "txtai", CHUNKINGS, hybrid=True),
    Variant("txtai vectors exact search", "txtai", CHUNKINGS, exact=True),
    Variant("txtai hybrid exact search", "txtai", CHUNKINGS, hybrid=True, exact=True),
    Variant("Chroma", "chroma", ("given",)),
    Variant("LanceDB vectors", "lancedb", ("given",)),
    Variant("LanceDB hybrid", "lancedb", ("given",), hybrid=True),
    Variant("LlamaIndex vectors", "llamaindex", CHUNKINGS),
    Variant("LlamaIndex hybrid", "llamaindex", CHUNKINGS, hybrid=True),
    Variant("LlamaIndex hybrid 200-token chunks", "llamaindex", ("own",), hybrid=True, fitted=True),
    Variant("Haystack vectors", "haystack", CHUNKINGS),
    Variant("Haystack hybrid", "haystack", CHUNKINGS, hybrid=True),
    Variant("Haystack hybrid 150-word chunks", "haystack", ("own",), hybrid=True, fitted=True),
)


def cases(variants: list[Variant], collections: list[Collection], chunkings: Sequence[str]) -> list[Case]:
    """In the order in which a round runs them: those that are compared directly follow each other.

    Where each row is a document, given chunks are documents, and no system's own are measured beside them.
    """
    return [
        Case(variant, collection, chunking)
        for collection in collections
        for chunking in chunkings
        for variant in variants
        if chunking in variant.chunkings and (chunking == "given" or collection.sections)
    ]
