#!/usr/bin/env python3
"""Measure whether a search finds the page of a PDF file that has a figure of a table.

usage: table_figures.py LKR PDFS [--gold table_figures.tsv] [--model MODEL] [--pdfium LIBRARY] [--plugin pdf_oxide]
                        [--show]

LKR is the program; PDFS has the files that the gold set names (annual reports, for example those of the public set
patronus-ai/financebench). The gold set has lines of file, page, figure and question. All files are uploaded to one server
with an empty data folder (with spaces for underscores in their names), and each question is searched for once. A question
counts if a chunk of its page is among the ten results; "the figure in the chunk" counts those of which such a chunk has the
figure, too. Only Python's standard library is used.
"""
import argparse
import json
import os
import pathlib
import secrets
import socket
import subprocess
import tempfile
import time
import urllib.request
import uuid

TOP = 10


class Server:
    """A server with an empty data folder."""

    def __init__(self, call, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url, self.token, self.folder = f"http://127.0.0.1:{port}/api/v1", None, folder
        command = [call.lkr, "serve", "--listen", f"127.0.0.1:{port}", "--data-dir", folder]
        if call.model:
            command += ["--model-dir", call.model]
        environment = dict(os.environ, LKR_PDFIUM_LIBRARY=call.pdfium or "")
        self.log = open(folder + ".log", "wb")
        self.process = subprocess.Popen(command, env=environment, stdout=self.log, stderr=self.log)

    def ask(self, path, body=None, method=None, headers=None):
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        headers = {"Content-Type": "application/json", **(headers or {})}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["data"]

    def log_in(self):
        first = pathlib.Path(self.folder) / "initial-admin-password"
        for _ in range(600):
            try:
                old = first.read_text().strip()
                self.token = self.ask("/auth/login", {"username": "admin", "password": old})["access_token"]
                break
            except OSError:
                time.sleep(0.1)
        new = secrets.token_urlsafe(18)
        change = {"current_password": old, "new_password": new}
        self.token = self.ask("/auth/password", change)["access_token"]

    def upload(self, path):
        boundary = uuid.uuid4().hex
        head = (f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{path.name.replace("_", " ")}"\r\n'
                "Content-Type: application/pdf\r\n\r\n").encode()
        body = head + path.read_bytes() + f"\r\n--{boundary}--\r\n".encode()
        kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        return self.ask("/documents/upload", body, headers=kind)

    def wait(self, task):
        while True:
            state = self.ask(f"/documents/tasks/{task}")
            if state["status"] == "done":
                return state["doc_id"]
            if state["status"] == "failed":
                raise SystemExit(f"a file was not ingested: {state}")
            time.sleep(0.5)


def judge(results, name, page, figure):
    """Whether the page is among the results, and a chunk of it has the figure."""
    on_page = [r["text"] for r in results if r["doc"] == name and r["first"] <= page <= r["last"]]
    return bool(on_page), any(figure in text for text in on_page)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lkr")
    parser.add_argument("pdfs", type=pathlib.Path)
    parser.add_argument("--gold", type=pathlib.Path, default=pathlib.Path(__file__).with_suffix(".tsv"))
    parser.add_argument("--model")
    parser.add_argument("--pdfium")
    parser.add_argument("--plugin", default="pdf_oxide")
    parser.add_argument("--show", action="store_true")
    call = parser.parse_args()
    gold = [line.split("\t") for line in call.gold.read_text(encoding="utf-8").splitlines() if line]
    with tempfile.TemporaryDirectory() as folder:
        server = Server(call, folder + "/data")
        try:
            measure(call, server, gold)
        finally:
            server.process.terminate()
            server.process.wait()


def measure(call, server, gold):
    server.log_in()
    server.ask("/settings", {"parsers": {"pdf": {"plugin": call.plugin}}}, method="PUT")
    names = sorted({row[0] for row in gold})
    tasks = {name: server.upload(call.pdfs / f"{name}.pdf") for name in names}
    documents = {server.wait(task["task_id"]): name for name, task in tasks.items()}
    counts = [0, 0]
    for name, page, figure, question in gold:
        found = server.ask("/search", {"query": question, "top_k": TOP})["results"]
        results = [{"doc": documents.get(r["doc_id"]), "first": r.get("page_start") or 0, "last": r.get("page_end") or 0,
                    "text": r["text"]} for r in found]
        marks = judge(results, name, int(page), figure)
        counts = [count + mark for count, mark in zip(counts, marks)]
        if call.show and not marks[1]:
            print(f"  {name} {page} {figure}: page {'found' if marks[0] else 'missed'}: {question}")
    labels = ("the page", "the figure in the chunk")
    found = ", ".join(f"{label} {count} ({count / len(gold):.2f})" for label, count in zip(labels, counts))
    print(f"{len(gold)} questions, {len(names)} files, {call.plugin}, {'model' if call.model else 'keywords'}: {found}")


main()
