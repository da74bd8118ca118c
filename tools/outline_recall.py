#!/usr/bin/env python3
"""Compare the headings of PDF files with the entries of their outlines.

usage: outline_recall.py PDFS JSONS [--without JSONS] [--worst N]

PDFS is a folder of PDF files, JSONS one with NAME.pdf.json for each, written by `lkr parse PDFS --out JSONS --json`.
An entry that points to a page counts as found if a heading on that page has its title, ignoring white space and case;
"level" counts those whose level equals the entry's depth, too.

With --without, the folder has what `lkr parse --no-outline` wrote: headings that were found without the outline. They
are compared with the entries whose titles are printed on their pages, in files with at least three of them that are
half of all. Case, white space, punctuation and leading numbers are ignored, and an entry may be the beginning or the
end of a heading or the other way round if that is at least half of it.

- recall: the share of entries that match a heading on their page.
- precision: the share of headings that match an entry, of those that the outline covers: from the first match to the
  last one (a title and its authors come before, references after) and not of a level below all matches (the outline
  stops above it); of all headings if none matches.

The files are also divided in two halves by a hash of their names: rules and constants are tuned on the first alone.
Needs pypdf.
"""
import argparse
import json
import logging
import pathlib
import re
import unicodedata
import zlib
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
            yield item.title, page + 1, depth


def wanted(path):
    reader = pypdf.PdfReader(path, strict=False)
    if reader.is_encrypted:
        reader.decrypt("")
    return list(entries(reader, reader.outline))


def read(folder, name):
    path = folder / (name + ".json")
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"blocks": [], "text": ""}


def headings(parsed):
    return [(b["title"], b["page"], b["level"]) for b in parsed["blocks"] if b["kind"] == "heading"]


def letters(title):
    """The letters and digits without a leading number."""
    plain = unicodedata.normalize("NFKD", title).lower()
    short = re.sub(r"^\s*(?:[\d.§)-]+|[ivxlc]+\.|(?:chapter|section|appendix) [\da-z]+\b)", "", plain)
    bare = [c for c in short if c.isalnum()] or [c for c in plain if c.isalnum()]
    return "".join(bare)


def is_match(one, other):
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) * 2 < len(longer) or not shorter:
        return False
    return longer.startswith(shorter) or longer.endswith(shorter)


def page_texts(parsed):
    pages = {}
    for block in parsed["blocks"]:
        text = parsed["text"][block["char_start"]:block["char_end"]]
        pages[block["page"]] = pages.get(block["page"], "") + text
    return {page: "".join(c for c in unicodedata.normalize("NFKD", text).lower() if c.isalnum())
            for page, text in pages.items()}


def detected(want, parsed):
    """The counts of entries, matched entries, covered headings and matched headings; None if the file does not count."""
    pages = page_texts(parsed)
    printed = [(letters(title), page) for title, page, _ in want]
    printed = [(title, page) for title, page in printed if title and title in pages.get(page, "")]
    if len(printed) < 3 or len(printed) * 2 < len(want):
        return None
    found = [(letters(title), page, level) for title, page, level in headings(parsed)]
    taken, matched = set(), set()
    for exact in (True, False):
        for at, (title, page) in enumerate(printed):
            for other, (text, on, _) in enumerate(found):
                if at not in taken and other not in matched and on == page \
                        and (title == text if exact else is_match(title, text)):
                    taken.add(at)
                    matched.add(other)
    deepest = max((found[at][2] for at in matched), default=6)
    first, last = min(matched, default=0), max(matched, default=len(found) - 1)
    covered = [at for at in range(first, last + 1) if found[at][2] <= deepest]
    missed = [entry for at, entry in enumerate(printed) if at not in taken]
    extra = [headings(parsed)[at][:2] for at in covered if at not in matched]
    return len(printed), len(taken), len(covered), len(matched), missed, extra


def half(name):
    return zlib.crc32(name.encode()) % 2


def ratio(files, part, whole):
    """The ratio of two counts over all files together, and the mean of the files that have any."""
    rates = [row[1][part] / row[1][whole] for row in files if row[1][whole]]
    total = sum(row[1][part] for row in files) / max(1, sum(row[1][whole] for row in files))
    return f"{total:.3f} (mean of files {sum(rates) / max(1, len(rates)):.3f})"


def print_detected(rows, worst):
    for label, chosen in (("all", (0, 1)), ("first half", (0,)), ("second half", (1,))):
        files = [row for row in rows if half(row[0]) in chosen]
        entries, covered = sum(row[1][0] for row in files), sum(row[1][2] for row in files)
        print(f"without the outline, {label}: {len(files)} files, {entries} entries, {covered} headings; "
              f"precision {ratio(files, 3, 2)}, recall {ratio(files, 1, 0)}")
    by_errors = sorted(rows, key=lambda row: row[1][1] + row[1][3] - row[1][0] - row[1][2])
    for name, (want, taken, covered, matched, *_) in by_errors[:worst]:
        print(f"  {name}: {taken} of {want} entries, {matched} of {covered} headings")


def print_exact(rows, worst):
    total = sum(row[1] for row in rows) or 1
    print(f"{len(rows)} files, {total} entries")
    print(f"found on their pages: {sum(row[2] for row in rows) / total:.4f}, mean of files {mean(rows, 2):.4f}")
    print(f"with their levels:    {sum(row[3] for row in rows) / total:.4f}, mean of files {mean(rows, 3):.4f}")
    for name, want, places, levels in sorted(rows, key=lambda row: row[2] - row[1])[:worst]:
        if places < want or levels < want:
            print(f"  {name}: {places} of {want}, {levels} with their levels")


def mean(rows, column):
    return sum(row[column] / row[1] for row in rows) / max(1, len(rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pdfs", type=pathlib.Path)
    parser.add_argument("jsons", type=pathlib.Path)
    parser.add_argument("--without", type=pathlib.Path)
    parser.add_argument("--worst", type=int, default=10)
    parser.add_argument("--show", help="print the missed entries and extra headings of files with this in their name")
    call = parser.parse_args()
    logging.disable(logging.CRITICAL)
    exact, free = [], []
    for path in sorted(call.pdfs.glob("*.pdf")):
        try:
            want = wanted(path)
        except Exception:
            continue
        if not want:
            continue
        entry_keys = [(key(title), page, depth) for title, page, depth in want]
        parsed = read(call.jsons, path.name)
        have = [(key(title), page, level) for title, page, level in headings(parsed)]
        places = Counter(w[:2] for w in entry_keys) & Counter(h[:2] for h in have)
        exact.append((path.name, len(want), places.total(), (Counter(entry_keys) & Counter(have)).total()))
        counts = detected(want, read(call.without, path.name)) if call.without else None
        if counts:
            free.append((path.name, counts))
            if call.show and call.show in path.name:
                print(path.name, *(f"\n  missed {entry}" for entry in counts[4]), *(f"\n  extra {h}" for h in counts[5]))
    print_exact(exact, call.worst)
    if call.without:
        print_detected(free, call.worst)


main()
