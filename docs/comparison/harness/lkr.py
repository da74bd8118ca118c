"""Measures lkr: a server that gets documents over HTTP, and one that is started on the same folder and searched."""
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from harness.collection import Text
from harness.environment import environment
from harness.environments import size
from harness.judge import Judge, Place
from harness.load import Load, needed
from harness.processes import Stopwatch, memory
from harness.requests import Request, unlike
from harness.run import Run
from harness.server import Server, free_port, get, post, running
from harness.spans import Span
from harness.systems.base import batches

API = "/api/v1"
PASSWORD = "a password for measurements"
LIMIT = 10
DEPTH = 100
BATCH = 100
"""The largest number of documents that a request may add."""
WAIT_S = 3600.0


def measure(run: Run) -> dict[str, Any]:
    return index(run) | search(run)


def index(run: Run) -> dict[str, Any]:
    with running(*launch(run)) as server:
        server.wait_for(query("warm up"))
        login = post(f"{API}/auth/login", {"username": "admin", "password": PASSWORD})
        token = server.send(login)["data"]["access_token"]
        texts = run.collection.texts(run.case.chunking)
        watch = Stopwatch(server.pid, os.getpid())
        add(server, token, texts)
        interval = watch.stop()
        stats = server.send(get(f"{API}/knowledge/stats"), token)["data"]
        used = memory(server.pid)
    if stats["documents_total"] != len(texts):
        raise RuntimeError(f"lkr has {stats['documents_total']} of {len(texts)} documents")
    return {
        "chunks": stats["collections"]["chunks"],
        "index": interval.record(),
        "index_peak_mb": used.peak,
        "disk_mb": size(run.store) / 1e6,
    }


def launch(run: Run) -> tuple[list[str], dict[str, str], int, Any]:
    port = free_port()
    settings = run.settings
    command = [str(settings.lkr), "serve", "--listen", f"127.0.0.1:{port}", "--data-dir", str(run.store)]
    command += ["--model-dir", str(settings.lkr_model), "--model-precision", run.case.variant.precision]
    return [*command, "--admin-password", PASSWORD], environment(), port, run.log


def add(server: Server, token: str, texts: Sequence[Text]) -> None:
    """Adds all documents, and waits until they can be found."""
    for batch in batches(texts, BATCH):
        documents = post(f"{API}/documents/batch", {"documents": [document(text) for text in batch]})
        server.send(documents, token)
    deadline = time.monotonic() + WAIT_S
    while unfinished(server) > 0:
        if time.monotonic() > deadline:
            raise TimeoutError(f"lkr did not index the documents within {WAIT_S} s")
        time.sleep(0.1)


def document(text: Text) -> dict[str, Any]:
    """Equal texts are stored, too. lkr refuses blank texts, so a row without a text gets its title."""
    shown = text.text if text.text.strip() else text.title
    return {"title": text.title, "text": shown, "source": text.id, "force": True}


def unfinished(server: Server) -> float:
    lines = server.send(get("/metrics")).splitlines()
    names = ("lkr_ingest_queue_tasks ", "lkr_ingest_running_tasks ")
    return sum(float(line.split()[1]) for line in lines if line.startswith(names))


def search(run: Run) -> dict[str, Any]:
    with running(*launch(run)) as server:
        started = server.wait_for(query(run.queries[0]))
        found: dict[str, Any] = {"start_s": started, "server_start_s": started}
        if run.rank:
            found["quality"] = quality(run, server)
        texts = unlike(run.queries, needed(run.settings.clients, run.settings.seconds))
        load = Load(server.port, server.pid, map(query, texts), run.folder, run.settings.longest)
        steps = [load.step(clients, run.settings.seconds) for clients in run.settings.clients]
        return found | {"load": steps, "memory": asdict(memory(server.pid))}


def query(text: str, **options: Any) -> Request:
    return post(f"{API}/search", {"query": text, "top_k": LIMIT} | options)


def quality(run: Run, server: Server) -> dict[str, float]:
    """Passages are ranked by chunks. Documents are ranked by lkr's own grouping of chunks."""
    judge = Judge(run.collection, run.case.chunking)
    chunks = judge.quality([hits(server, text) for text in run.queries])
    if run.case.chunking == "given":
        return chunks
    grouped = judge.quality([hits(server, text, group_by="document") for text in run.queries])
    return chunks | {"documents": grouped["documents"]}


def hits(server: Server, text: str, **options: Any) -> list[Place]:
    results = server.send(query(text, **({"top_k": DEPTH} | options)))["data"]["results"]
    return [Place(hit["source"], Span(hit["char_start"], hit["char_end"])) for hit in results]
