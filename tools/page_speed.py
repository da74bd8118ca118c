#!/usr/bin/env python3
"""Measure the pages a second of the PDF plugins, and of pdftotext if it is installed.

usage: page_speed.py LKR FILES PDF [--pdfium LIBRARY] [--pages 300] [--runs 3]

LKR is the program, FILES a folder laid out like the shared test data, and PDF the file to create: up to three pages of each
file whose reference has at least 1,000 characters, repeated up to the number of pages. The programs alternate; the fastest
run of each counts, from start to exit, unless it left out pages because its time limit expired. CPU time includes all child
processes. Needs pypdf.
"""
import argparse
import logging
import os
import pathlib
import re
import shutil
import subprocess
import time

import pypdf


def sources(files):
    for path in sorted((files / "pdf").glob("*.pdf")):
        reference = files / "ref" / "pdf" / (path.name + ".txt")
        if not reference.exists() or len(reference.read_text(encoding="utf-8", errors="replace")) < 1000:
            continue
        try:
            reader = pypdf.PdfReader(path, strict=False)
            if not reader.is_encrypted:
                yield from reader.pages[:3]
        except Exception:  # any error: other files have pages, too
            continue


def make(files, target, pages):
    writer = pypdf.PdfWriter()
    chosen = list(sources(files))[:pages]
    while len(writer.pages) < pages:
        for page in chosen[: pages - len(writer.pages)]:
            writer.add_page(page)
    writer.write(target)


def timed(command):
    """Seconds by the clock and of CPU; None where pages were left out."""
    before, started = os.times(), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wall, after = time.monotonic() - started, os.times()
    if re.search(r"\d pages? w(as|ere) left out", done.stderr):
        return None
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, used


def commands(call):
    lkr = [call.lkr, "parse", str(call.pdf), "--pdf"]
    found = {plugin: [*lkr, plugin] for plugin in ("pdf_oxide", "lopdf")}
    if call.pdfium:
        found["pdfium"] = [*lkr, "pdfium", "--pdfium", call.pdfium]
    if shutil.which("pdftotext"):
        found["pdftotext"] = ["pdftotext", str(call.pdf), "-"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lkr")
    parser.add_argument("files", type=pathlib.Path)
    parser.add_argument("pdf", type=pathlib.Path)
    parser.add_argument("--pdfium")
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--runs", type=int, default=3)
    call = parser.parse_args()
    logging.disable(logging.CRITICAL)
    make(call.files, call.pdf, call.pages)
    programs = commands(call)
    runs = {name: [] for name in programs}
    for _ in range(call.runs):
        for name, command in programs.items():
            runs[name].append(timed(command))
    for name, times in runs.items():
        times = [time for time in times if time]
        if not times:
            print(f"{name:10} not all pages within its time")
            continue
        wall, cpu = (min(column) for column in zip(*times))
        print(f"{name:10} {call.pages / wall:7.0f} pages a second, {wall:.2f} s, {cpu:.2f} s of CPU")


main()
