#!/usr/bin/env python3
"""Measure how many outline entries of PDF files become headings.

usage: outline_recall.py PDFS JSONS [--worst N]

PDFS is a folder of PDF files, JSONS one with NAME.pdf.json for each, written by `lkr parse PDFS --out JSONS --json`.
An entry that points to a page counts as found if a heading on that page has its title, ignoring white space and case;
"level" counts those whose level equals the entry's depth, too. Needs pypdf.
"""
import argparse
import json
import logging
import pathlib
import re
import unicodedata
from collections import Counter

import pypdf


def key(title):
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", re.sub(r"[\x00-\x1f]", " ", title))).lower()


def entries(reader, outline, depth=1):
    for item in outline:
        if isinstance(item, list):
            yield from entries(reader, item, depth + 1)
            continue
        try:
            page = reader.get_destination_page_number(item)
        except Exception:
            page = None
        if page is not None and page >= 0 and key(item.title or ""):
            yield key(item.title), page + 1, depth


def wanted(path):
    reader = pypdf.PdfReader(path, strict=False)
    if reader.is_encrypted:
        reader.decrypt("")
    return list(entries(reader, reader.outline))


def found(path):
    blocks = json.loads(path.read_text(encoding="utf-8"))["blocks"]
    return [(key(b["title"]), b["page"], b["level"]) for b in blocks if b["kind"] == "heading"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pdfs", type=pathlib.Path)
    parser.add_argument("jsons", type=pathlib.Path)
    parser.add_argument("--worst", type=int, default=10)
    call = parser.parse_args()
    logging.disable(logging.CRITICAL)
    rows = []
    for path in sorted(call.pdfs.glob("*.pdf")):
        try:
            want = wanted(path)
        except Exception:
            continue
        if not want:
            continue
        answer = call.jsons / (path.name + ".json")
        have = found(answer) if answer.exists() else []
        places = Counter(w[:2] for w in want) & Counter(h[:2] for h in have)
        levels = Counter(want) & Counter(have)
        rows.append((path.name, len(want), places.total(), levels.total()))
    total = sum(row[1] for row in rows) or 1
    print(f"{len(rows)} files, {total} entries")
    print(f"found on their pages: {sum(row[2] for row in rows) / total:.4f}, mean of files {mean(rows, 2):.4f}")
    print(f"with their levels:    {sum(row[3] for row in rows) / total:.4f}, mean of files {mean(rows, 3):.4f}")
    for name, want, places, levels in sorted(rows, key=lambda row: row[2] - row[1])[: call.worst]:
        if places < want or levels < want:
            print(f"  {name}: {places} of {want}, {levels} with their levels")


def mean(rows, column):
    return sum(row[column] / row[1] for row in rows) / max(1, len(rows))


main()
