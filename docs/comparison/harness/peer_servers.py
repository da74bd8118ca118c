"""The servers of the other systems, over the indexes that their libraries wrote."""
import json
import pathlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.environment import environment
from harness.load import Load, needed
from harness.processes import memory
from harness.requests import Request, unlike, unlike_vectors
from harness.run import Run
from harness.server import Server, free_port, get, post, running

LIMIT = 10
COLLECTIONS = "/api/v2/tenants/default_tenant/databases/default_database/collections"
"""Where Chroma's server has the collections of a local folder."""

Vectors = list[list[float]] | None


@dataclass(frozen=True)
class Peer:
    """How the server of a system is started, and what a client sends it."""

    command: list[str]
    variables: dict[str, str]
    request: Callable[[str], Request]
    """The request of a search."""


def measure(run: Run, vectors: Vectors) -> dict[str, Any]:
    """The load on the system's server; nothing if it has none."""
    port = free_port()
    if run.case.variant.system == "chroma":
        return measure_chroma(run, port, vectors or [])
    makers = {"txtai": txtai, "haystack": hayhooks}
    if run.case.variant.system not in makers:
        return {}
    peer = makers[run.case.variant.system](run, port)
    with running(peer.command, environment(**peer.variables), port, run.log) as server:
        started = server.wait_for(peer.request(run.queries[0]))
        texts = unlike(run.queries, needed(run.settings.clients, run.settings.seconds))
        return {"server_start_s": started, "load": steps(run, server, map(peer.request, texts))}


def steps(run: Run, server: Server, requests: Iterator[Request]) -> list[dict[str, Any]]:
    load = Load(server.port, server.pid, requests, run.folder, run.settings.longest)
    return [load.step(clients, run.settings.seconds) for clients in run.settings.clients]


def txtai(run: Run, port: int) -> Peer:
    """The API of txtai under uvicorn, as its documentation starts it."""
    config = run.folder / "txtai.yml"
    settings = {
        "path": str(run.store / "index"),
        "embeddings": {"path": str(run.settings.model), "content": True, "hybrid": run.case.variant.hybrid},
    }
    config.write_text(json.dumps(settings), encoding="utf-8")
    uvicorn = str(run.settings.environments.program("txtai", "uvicorn"))
    command = [uvicorn, "txtai.api:app", "--host", "127.0.0.1", "--port", str(port)]
    return Peer(command, {"CONFIG": str(config)}, lambda query: get("/search", query=query, limit=LIMIT))


def hayhooks(run: Run, port: int) -> Peer:
    """Hayhooks, with the same pipeline as the library."""
    package = pathlib.Path(__file__).parent
    program = str(run.settings.environments.program("haystack", "hayhooks"))
    folder = str(package / "hayhooks")
    command = [program, "run", "--host", "127.0.0.1", "--port", str(port), "--pipelines-dir", folder]
    variables = {
        "COMPARISON_MODEL": str(run.settings.model),
        "COMPARISON_STORE": str(run.store),
        "COMPARISON_HYBRID": "1" if run.case.variant.hybrid else "0",
        "PYTHONPATH": str(package.parent),
    }
    return Peer(command, variables, lambda query: post("/search/run", {"query": query, "limit": LIMIT}))


def measure_chroma(run: Run, port: int, vectors: list[list[float]]) -> dict[str, Any]:
    """Chroma's server, which gets vectors: its clients embed."""
    program = str(run.settings.environments.program("chroma", "chroma"))
    command = [program, "run", "--host", "127.0.0.1", "--port", str(port), "--path", str(run.store / "index")]
    with running(command, environment(), port, run.log) as server:
        server.wait_for(get("/api/v2/heartbeat"))
        collection = server.send(get(f"{COLLECTIONS}/documents"))["id"]
        path = f"{COLLECTIONS}/{collection}/query"
        asked = {"n_results": LIMIT, "include": ["documents", "distances"]}
        requests = (post(path, {"query_embeddings": [vector]} | asked) for vector in unlike_vectors(vectors))
        started = server.wait_for(next(requests))
        return {"server_start_s": started, "vectors_load": steps(run, server, requests),
                "server_anonymous_mb": memory(server.pid).anonymous}
