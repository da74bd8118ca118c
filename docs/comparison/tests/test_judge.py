"""Which judged items chunks count for."""
import json
import pathlib
import tempfile
import unittest
from typing import Any

from harness.collection import Collection, read
from harness.judge import Judge, Place, located
from harness.spans import Locator, Section, Span, section_of

FILES: dict[str, list[dict[str, Any]]] = {
    "corpus.jsonl": [
        {"_id": "d#1", "title": "Two", "text": "second\n", "doc_id": "d", "order": 1},
        {"_id": "d#0", "title": "One", "text": "first", "doc_id": "d", "order": 0},
        {"_id": "e#0", "title": "Three", "text": "third", "doc_id": "e", "order": 0},
    ],
    "queries.jsonl": [{"_id": "q", "text": "which?"}, {"_id": "unjudged", "text": "what?"}],
}


def collection() -> Collection:
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in FILES.items():
            text = "".join(json.dumps(row) + "\n" for row in rows)
            pathlib.Path(folder, name).write_text(text, encoding="utf-8")
        qrels = "query-id\tcorpus-id\tscore\nq\td#1\t1\n"
        pathlib.Path(folder, "qrels.tsv").write_text(qrels, encoding="utf-8")
        return read(pathlib.Path(folder))


class Reading(unittest.TestCase):
    def test_sections_are_joined_in_order_with_their_places(self) -> None:
        found = collection()
        text = found.documents[0].text
        self.assertEqual(text, "## One\n\nfirst\n\n## Two\n\nsecond\n\n")
        cut = {section.id: text[section.span.start:section.span.end] for section in found.sections["d"]}
        self.assertEqual(cut, {"d#0": "## One\n\nfirst\n\n", "d#1": "## Two\n\nsecond\n\n"})

    def test_judged_rows_count_for_their_documents(self) -> None:
        found = collection()
        self.assertEqual([query.id for query in found.queries], ["q"])
        self.assertEqual((found.queries[0].documents, found.queries[0].passages), ({"d": 1.0}, {"d#1": 1.0}))


class Judging(unittest.TestCase):
    def test_own_chunks_count_for_the_section_and_document_that_they_are_from(self) -> None:
        found = collection()
        places = located(found, [("1", "d", "## One first"), ("2", "d", "second"), ("3", "e", "third")])
        self.assertEqual(places["2"], Place("d", Span(23, 29)))
        quality = Judge(found, "own").quality([[places["1"], places["2"], places["3"]]])
        self.assertEqual(quality["documents"], 1.0)
        self.assertAlmostEqual(quality["passages"], 0.6309297535714574)

    def test_given_chunks_count_for_themselves(self) -> None:
        quality = Judge(collection(), "given").quality([[Place("e#0", None), Place("d#1", None)]])
        self.assertAlmostEqual(quality["documents"], 0.6309297535714574)
        self.assertAlmostEqual(quality["passages"], 0.6309297535714574)


class Spans(unittest.TestCase):
    def test_locator_ignores_white_space_and_finds_repetitions_in_order(self) -> None:
        locator = Locator("a b.\n\nsame  text\n\nc same text")
        self.assertEqual([locator.next("same text"), locator.next("same\ntext")], [Span(6, 16), Span(20, 29)])
        self.assertIsNone(locator.next("missing"))

    def test_chunk_counts_for_the_judged_section_that_it_overlaps(self) -> None:
        sections = [Section(Span(0, 10), "a"), Section(Span(10, 14), "b")]
        self.assertEqual(section_of(Span(0, 12), sections, {"b"}), "b")
        self.assertEqual(section_of(Span(0, 12), sections, {"c"}), "a")
        self.assertIsNone(section_of(Span(20, 30), sections, {"a"}))


if __name__ == "__main__":
    unittest.main()
