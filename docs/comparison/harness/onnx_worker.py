"""Embeds texts with ONNX Runtime, in its environment: `python -m harness.onnx_worker CALL.json`.

CALL.json names the model, the tokenizer, the number of threads, the sizes of batches and the passages and queries. The
result is written to a file, with the processor time of this process and the time by the clock for each repetition.
"""
import json
import pathlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy
import onnxruntime
from tokenizers import Tokenizer

from harness.inference import REPETITIONS
from harness.model_folder import MAX_TOKENS
from harness.onnx_inputs import INPUTS

Vectors = numpy.ndarray[Any, numpy.dtype[numpy.float32]]


def main() -> None:
    call = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    engine = Engine(call["onnx"], call["tokenizer"], call["threads"])
    passages, queries = call["passages"], call["queries"]
    engine.embed(passages[:16], 1)
    result: dict[str, Any] = {"tokenizing": repeated(lambda: engine.tokenize(passages), len(passages))}
    result["passages"] = {
        str(size): repeated(lambda size=size: engine.embed(passages, size), len(passages)) for size in call["sizes"]
    }
    result["queries"] = [engine.queries(queries) for _ in range(REPETITIONS)]
    result["vectors"] = engine.embed(passages, 1).tolist()
    pathlib.Path(call["result"]).write_text(json.dumps(result), encoding="utf-8")


def repeated(action: Callable[[], object], count: int) -> list[dict[str, float]]:
    """The milliseconds of a text, of the processor and by the clock, for each repetition."""
    found = []
    for _ in range(REPETITIONS):
        cpu, wall = time.process_time(), time.perf_counter()
        action()
        found.append({
            "cpu_ms": 1e3 * (time.process_time() - cpu) / count,
            "wall_ms": 1e3 * (time.perf_counter() - wall) / count,
        })
    return found


class Engine:
    def __init__(self, model: str, tokenizer: str, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Threads that wait actively would count as processor time.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_file(tokenizer)
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()

    def tokenize(self, texts: list[str]) -> list[list[int]]:
        return [encoded.ids for encoded in self._tokenizer.encode_batch_fast(texts)]

    def embed(self, texts: list[str], size: int) -> Vectors:
        """Vectors of length 1, in batches of texts of about the same length."""
        tokens = self.tokenize(texts)
        order = sorted(range(len(texts)), key=lambda at: len(tokens[at]))
        batches = [order[first : first + size] for first in range(0, len(order), size)]
        vectors = numpy.concatenate([self._vectors([tokens[at] for at in batch]) for batch in batches])
        return vectors[numpy.argsort(order)]

    def _vectors(self, batch: list[list[int]]) -> Vectors:
        ids = numpy.zeros((len(batch), max(map(len, batch))), numpy.int64)
        mask = numpy.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        inputs = dict(zip(INPUTS, (ids, mask, numpy.zeros_like(ids)), strict=True))
        states = self._session.run(None, inputs)[0]
        sums = (states * mask[:, :, None]).sum(axis=1) if len(batch) > 1 else states.sum(axis=1)
        vectors: Vectors = sums / numpy.linalg.norm(sums, axis=1, keepdims=True)
        return vectors

    def queries(self, texts: list[str]) -> dict[str, float]:
        """The milliseconds of a query that is embedded alone: of the processor in the mean, by the clock in the median."""
        times = []
        cpu = time.process_time()
        for text in texts:
            started = time.perf_counter()
            self.embed([text], 1)
            times.append(time.perf_counter() - started)
        cpu_ms = 1e3 * (time.process_time() - cpu) / len(texts)
        return {"cpu_ms": cpu_ms, "wall_ms": 1e3 * statistics.median(times)}


if __name__ == "__main__":
    main()
