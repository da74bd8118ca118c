"""Collections of documents with queries and judgements, read like `lkr eval` reads them."""
import json
import pathlib
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from harness.spans import Section, Span


@dataclass(frozen=True)
class Text:
    """A text to index: a whole document, or a given chunk."""

    id: str
    title: str
    text: str


@dataclass(frozen=True)
class Query:
    id: str
    text: str
    documents: dict[str, float]
    passages: dict[str, float]


@dataclass
class Collection:
    name: str
    documents: list[Text] = field(default_factory=list)
    rows: list[Text] = field(default_factory=list)
    """The given chunks: the rows of corpus.jsonl."""
    document_of: dict[str, str] = field(default_factory=dict)
    """The document of each row."""
    sections: dict[str, list[Section]] = field(default_factory=dict)
    """The rows of each document with their places in it; empty if each row is a document."""
    queries: list[Query] = field(default_factory=list)

    def texts(self, chunking: str) -> list[Text]:
        return self.rows if chunking == "given" else self.documents


def read(folder: pathlib.Path) -> Collection:
    """Reads `corpus.jsonl`, `docs.jsonl` if there is one, `queries.jsonl`, `qrels.tsv` and `qrels_docs.tsv`."""
    found = Collection(folder.resolve().name)
    rows = json_lines(folder / "corpus.jsonl")
    found.rows = [text_of(row) for row in rows]
    found.document_of = {row["_id"]: row.get("doc_id", row["_id"]) for row in rows}
    if (folder / "docs.jsonl").exists():
        found.documents = [text_of(row) for row in json_lines(folder / "docs.jsonl")]
        found.sections = given_sections(rows)
    else:
        join_sections(found, rows)
    found.queries = queries(folder, found)
    return found


def text_of(row: dict[str, Any]) -> Text:
    return Text(row["_id"], row.get("title", ""), row["text"])


def given_sections(rows: list[dict[str, Any]]) -> dict[str, list[Section]]:
    sections: dict[str, list[Section]] = defaultdict(list)
    for row in rows:
        sections[row["doc_id"]].append(Section(Span(row["start"], row["end"]), row["_id"]))
    return dict(sections)


def join_sections(collection: Collection, rows: list[dict[str, Any]]) -> None:
    """Joins the rows of a document in their order, each below its title as a heading of level 2."""
    of_document: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if "doc_id" in row:
            of_document[row["doc_id"]].append(row)
        else:
            collection.documents.append(text_of(row))
    for document, parts in of_document.items():
        text = ""
        sections = []
        for row in sorted(parts, key=lambda row: row.get("order", 0)):
            start = len(text)
            text += f"## {row['title'].strip()}\n\n{row['text'].strip()}\n\n"
            sections.append(Section(Span(start, len(text)), row["_id"]))
        collection.documents.append(Text(document, "", text))
        collection.sections[document] = sections


def queries(folder: pathlib.Path, collection: Collection) -> list[Query]:
    passages = judgements(folder / "qrels.tsv")
    if (folder / "qrels_docs.tsv").exists():
        documents = judgements(folder / "qrels_docs.tsv")
    else:
        documents = {query: of_documents(gains, collection) for query, gains in passages.items()}
    if not collection.sections:
        passages = {}
    rows = json_lines(folder / "queries.jsonl")
    return [
        Query(row["_id"], row["text"], documents[row["_id"]], passages.get(row["_id"], {}))
        for row in rows
        if row["_id"] in documents
    ]


def of_documents(gains: dict[str, float], collection: Collection) -> dict[str, float]:
    """A judged row counts for its document, with the best gain if there are several."""
    best: dict[str, float] = {}
    for row, gain in gains.items():
        document = collection.document_of[row]
        best[document] = max(gain, best.get(document, 0.0))
    return best


def judgements(path: pathlib.Path) -> dict[str, dict[str, float]]:
    """The gain of each judged item, by query."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for line in path.read_text(encoding="utf-8").splitlines():
        query, item, score = line.split("\t")[:3]
        if score.strip() != "score":
            found[query.strip()][item.strip()] = float(score)
    return dict(found)


def json_lines(path: pathlib.Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]
