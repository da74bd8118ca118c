#!/usr/bin/env python3
"""Compare the headings that a parser found in DOCX files with their heading styles.

usage: docx_headings.py DIR [FILES]
DIR contains NAME.docx.json, written by `lkr parse FILES --out DIR --json`; FILES is the folder of the DOCX files (default:
the shared test data).

A body paragraph is a heading of level N if its style, or a style it is based on, is named "Heading N". Needs python-docx.
"""
import collections
import json
import pathlib
import sys

import docx

FILES = pathlib.Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "files" / "docx"


def level(style):
    """The heading level of a style; 0 if it is not a heading style."""
    for _ in range(64):
        if style is None:
            return 0
        name = (style.name or "").lower()
        if name.startswith("heading ") and name[8:].isdigit():
            return int(name[8:])
        outline = style.element.find(".//{*}outlineLvl")
        if outline is not None:
            return 0
        style = style.base_style
    return 0


def expected(path):
    """The headings of a file as level and words; None if python-docx cannot read it."""
    try:
        document = docx.Document(path)
    except Exception as error:  # any error: the file cannot be compared
        print(f"skipped: {path.name}: {error}", file=sys.stderr)
        return None
    found = []
    for paragraph in document.paragraphs:
        words = " ".join(paragraph.text.split())
        if words and level(paragraph.style):
            found.append((level(paragraph.style), words))
    return found


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    files = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else FILES
    total = same = words_only = extra = 0
    for path in sorted(files.glob("*.docx")):
        wanted = expected(path)
        result = out / f"{path.name}.json"
        if wanted is None:
            continue
        blocks = json.loads(result.read_text(encoding="utf-8"))["blocks"] if result.exists() else []
        got = collections.Counter((b["level"], b["title"]) for b in blocks if b["kind"] == "heading")
        titles = collections.Counter(title for _, title in got.elements())
        hits = sum((collections.Counter(wanted) & got).values())
        hits_of_words = sum((collections.Counter(words for _, words in wanted) & titles).values())
        total, same, words_only = total + len(wanted), same + hits, words_only + hits_of_words
        extra += sum(got.values()) - hits_of_words
        if hits < len(wanted):
            print(f"    {path.name}: {hits} of {len(wanted)}: {sorted((collections.Counter(wanted) - got).elements())[:3]}")
    share = same / total if total else 1.0
    print(f"{out.name}: {total} headings by style, {same} found with their level ({share:.3f}), "
          f"{words_only} by their words, {extra} others")


main()
