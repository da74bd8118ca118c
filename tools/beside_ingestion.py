#!/usr/bin/env python3
"""Compare searches beside ingestion at full speed with searches of an idle server.

usage: beside_ingestion.py LKR STOCK ADDED [--model FOLDER] [--precision int8] [--rate 10] [--seconds 60] [--rounds 3]

LKR is the program, STOCK and ADDED are folders with docs.jsonl or corpus.jsonl, STOCK also with queries. The server has an
empty data folder, to which the documents of STOCK are added first. Then, in turns, `lkr bench load` sends uncached searches at a
fixed rate, and sends them again while documents of ADDED are ingested without a pause. Printed are the latencies of each round, and the
medians over the rounds with their ratios. Client and server share the processors. Needs Linux.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time

from cached_search import data, free_port, log_in

QUANTILES = ("p50_ms", "p90_ms", "p99_ms")


class Ingestion:
    """Adds the documents of a collection again and again, until it is left."""

    def __init__(self, lkr, collection, environment, url, token):
        self.command = [lkr, "add", "--force", "--quiet", collection]
        self.environment, self.url, self.token = environment, url, token
        self.over, self.failed = threading.Event(), False
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over.is_set():
            adding = subprocess.Popen(self.command, env=self.environment, stdout=subprocess.DEVNULL)
            while adding.poll() is None and not self.over.wait(0.1):
                pass
            if adding.returncode:
                self.failed = True
                return
            adding.kill()
            adding.wait()

    def chunks(self):
        return data(f"{self.url}/knowledge/stats", None, self.token)["collections"]["chunks"]

    def __enter__(self):
        self.first = self.chunks()
        self.began = time.monotonic()
        self.thread.start()
        while self.chunks() == self.first and not self.failed:
            time.sleep(0.1)
        return self

    def __exit__(self, *_):
        self.rate = (self.chunks() - self.first) / (time.monotonic() - self.began)
        self.over.set()
        self.thread.join()
        if self.failed:
            raise SystemExit("the documents could not be added")


def wait_until_idle(url, token):
    """Waits until all documents that were accepted are ingested."""
    while any(data(f"{url}/documents/tasks?status={status}&limit=1", None, token)["items"] for status in ("pending", "running")):
        time.sleep(0.5)
    time.sleep(2)


def searches(arguments, environment, folder):
    """The latencies of searches at a fixed rate, as `lkr bench load` reports them."""
    results = folder / "results.json"
    command = [arguments.lkr, "bench", "load", "--rate", str(arguments.rate), "--kind", "search", "--seconds",
               str(arguments.seconds), "--json", str(results), arguments.stock]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return json.loads(results.read_text())["steps"][0]["all"]


def show(name, row, more=""):
    print(f"{name:18} " + "  ".join(f"{quantile.removesuffix('_ms')} {row[quantile]:7.1f} ms" for quantile in QUANTILES) + more, flush=True)


def compare(arguments, folder):
    port, environment = free_port(), {name: value for name, value in os.environ.items() if not name.startswith("LKR_")}
    if arguments.model:
        environment |= {"LKR_MODEL_DIR": arguments.model, "LKR_MODEL_PRECISION": arguments.precision}
    url = f"http://127.0.0.1:{port}/api/v1"
    with open(folder / "log", "wb") as log:
        command = [arguments.lkr, "serve", "--listen", f"127.0.0.1:{port}", "--data-dir", str(folder / "data")]
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            token = data(f"{url}/auth/keys", {"name": "load"}, log_in(url, folder / "data"))["key"]
            environment |= {"LKR_URL": f"http://127.0.0.1:{port}", "LKR_TOKEN": token}
            subprocess.run([arguments.lkr, "add", arguments.stock], env=environment, check=True, stdout=log, stderr=log)
            rounds = {"idle": [], "beside ingestion": []}
            for _ in range(arguments.rounds):
                wait_until_idle(url, token)
                rounds["idle"].append(searches(arguments, environment, folder))
                show("idle", rounds["idle"][-1])
                with Ingestion(arguments.lkr, arguments.added, environment, url, token) as ingestion:
                    rounds["beside ingestion"].append(searches(arguments, environment, folder))
                show("beside ingestion", rounds["beside ingestion"][-1], f"  {ingestion.rate:.0f} chunks a second")
        finally:
            server.terminate()
            server.wait()
    medians = {name: {quantile: statistics.median(row[quantile] for row in rows) for quantile in QUANTILES}
               for name, rows in rounds.items()}
    print("medians")
    for name, row in medians.items():
        show(name, row)
    ratios = (f"{quantile.removesuffix('_ms')} {medians['beside ingestion'][quantile] / medians['idle'][quantile]:.2f}" for quantile in QUANTILES)
    print("ratios: " + ", ".join(ratios))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lkr")
    parser.add_argument("stock")
    parser.add_argument("added")
    parser.add_argument("--model")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--rate", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compare(arguments, pathlib.Path(folder))


if __name__ == "__main__":
    main()
