#!/usr/bin/env python3
"""Compare searches beside ingestion at full speed with searches of an idle server.

usage: beside_ingestion.py LKR STOCK ADDED [--model FOLDER] [--precision int8] [--rate 10] [--seconds 60] [--rounds 3]
                           [--client-niceness 0]

LKR is the program, STOCK and ADDED are folders with docs.jsonl or corpus.jsonl, STOCK also with queries. The server has an
empty data folder, to which the documents of STOCK are added first. Then, in turns, `lkr bench load` sends uncached searches at a
fixed rate, and sends them again while documents of ADDED are ingested without a pause. Printed are the latencies of each round, and the
medians over the rounds with their ratios. Client and server share the processors. Needs Linux.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time

from server import data, log_in, serving

QUANTILES = ("p50", "p90", "p99")


class Ingestion:
    """Adds the documents of a collection again and again, until it is left."""

    def __init__(self, arguments, environment, url, token):
        niceness = ["nice", "-n", str(arguments.client_niceness)]
        self.command = [*niceness, arguments.lkr, "add", "--force", "--quiet", arguments.added]
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
    tasks = [f"{url}/documents/tasks?status={status}&limit=1" for status in ("pending", "running")]
    while any(data(listed, None, token)["items"] for listed in tasks):
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
    latencies = "  ".join(f"{quantile} {row[f'{quantile}_ms']:7.1f} ms" for quantile in QUANTILES)
    print(f"{name:18} {latencies}{more}", flush=True)


def compare(arguments, folder):
    model = {"LKR_MODEL_DIR": arguments.model, "LKR_MODEL_PRECISION": arguments.precision} if arguments.model else {}
    rounds = {"idle": [], "beside ingestion": []}
    with serving(arguments.lkr, folder, **model) as (_, url, environment):
        api = f"{url}/api/v1"
        token = data(f"{api}/auth/keys", {"name": "load"}, log_in(api, folder / "data"))["key"]
        environment |= {"LKR_TOKEN": token}
        subprocess.run([arguments.lkr, "add", "--quiet", arguments.stock], env=environment, check=True, stdout=subprocess.DEVNULL)
        for _ in range(arguments.rounds):
            wait_until_idle(api, token)
            rounds["idle"].append(searches(arguments, environment, folder))
            show("idle", rounds["idle"][-1])
            with Ingestion(arguments, environment, api, token) as ingestion:
                rounds["beside ingestion"].append(searches(arguments, environment, folder))
            show("beside ingestion", rounds["beside ingestion"][-1], f"  {ingestion.rate:.0f} chunks a second")
    medians = {name: {f"{quantile}_ms": statistics.median(row[f"{quantile}_ms"] for row in rows) for quantile in QUANTILES}
               for name, rows in rounds.items()}
    print("medians")
    for name, row in medians.items():
        show(name, row)
    idle, beside = medians.values()
    ratios = (f"{quantile} {beside[f'{quantile}_ms'] / idle[f'{quantile}_ms']:.2f}" for quantile in QUANTILES)
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
    parser.add_argument("--client-niceness", type=int, default=0,
                        help="of the program that adds documents; with 10, the server does not wait for it")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compare(arguments, pathlib.Path(folder))


if __name__ == "__main__":
    main()
