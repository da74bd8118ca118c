"""One step of one library, run in the environment of its system: `python -m harness.worker CALL.json`.

CALL.json names the system, the step (index or search), the folders and the texts or queries. The result is written to a
file. A searching worker prints a line when it has the first answer.
"""
import importlib
import json
import os
import pathlib
import sys
import time
from dataclasses import asdict
from typing import Any

from tokenizers import Tokenizer

from harness.collection import Text
from harness.metrics import percentile
from harness.model_folder import MAX_TOKENS
from harness.processes import Stopwatch, memory
from harness.systems.base import FIRST_ANSWER, System, whole

CLASSES = {
    "txtai": "Txtai",
    "chroma": "Chroma",
    "lancedb": "LanceDb",
    "llamaindex": "LlamaIndex",
    "haystack": "Haystack",
}
LIMIT = 10
DEPTH = 100
"""The number of results from which rankings of documents and passages are made."""
WARM_UP = 20


def main() -> None:
    call = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    steps = {"index": index, "search": search}
    result = steps[call["step"]](system_of(call), call)
    pathlib.Path(call["result"]).write_text(json.dumps(result), encoding="utf-8")


def system_of(call: dict[str, Any]) -> System:
    module = importlib.import_module(f"harness.systems.{call['system']}_system")
    system: type[System] = getattr(module, CLASSES[call["system"]])
    options = {name: call[name] for name in ("hybrid", "fitted", "exact")}
    return system(pathlib.Path(call["model"]), pathlib.Path(call["store"]), **options)


def index(system: System, call: dict[str, Any]) -> dict[str, Any]:
    texts = [Text(**row) for row in call["texts"]]
    system.load_model()
    watch = Stopwatch(os.getpid(), os.getpid())
    chunks = whole(texts) if call["chunking"] == "given" else system.split(texts)
    system.index(chunks)
    interval = watch.stop()
    used = memory(os.getpid())
    return {
        "chunks": [[chunk.id, chunk.document, chunk.text] for chunk in chunks],
        "cut": share_cut(call["model"], [chunk.titled for chunk in chunks]),
        "index": interval.record(),
        "memory": asdict(used),
    }


def share_cut(model: str, texts: list[str]) -> float:
    """The share of all word pieces that the model does not read, because their text is too long for it."""
    tokenizer = Tokenizer.from_file(f"{model}/tokenizer.json")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    lengths = [len(encoded.ids) for encoded in tokenizer.encode_batch(texts)]
    return sum(max(0, length - MAX_TOKENS) for length in lengths) / sum(lengths)


def search(system: System, call: dict[str, Any]) -> dict[str, Any]:
    queries: list[str] = call["queries"]
    system.open()
    system.search(queries[0], LIMIT)
    print(FIRST_ANSWER, flush=True)
    for query in queries[:WARM_UP]:
        system.search(query, LIMIT)
    latencies = []
    watch = Stopwatch(os.getpid(), os.getpid())
    for query in queries:
        started = time.perf_counter()
        system.search(query, LIMIT)
        latencies.append(time.perf_counter() - started)
    interval = watch.stop()
    used = memory(os.getpid())
    return {
        "search": interval.record() | {
            "rate": len(latencies) / interval.wall_s,
            "p50_ms": 1e3 * percentile(latencies, 0.5),
            "p99_ms": 1e3 * percentile(latencies, 0.99),
            "cpu_ms": 1e3 * interval.cpu_s / len(latencies),
        },
        "memory": asdict(used),
        "vectors": system.vectors(queries),
        "rankings": [system.search(query, DEPTH) for query in queries] if call["rank"] else None,
    }


if __name__ == "__main__":
    main()
