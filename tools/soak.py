#!/usr/bin/env python3
"""Load a server for long, with deletes, and show whether memory and disk stay as they are.

usage: soak.py LKR COLLECTION [--model FOLDER] [--seconds 3600] [--rate 30] [--kind search=8,cached=4,add=2,delete=2]

LKR is the program, COLLECTION a folder with docs.jsonl or corpus.jsonl and with queries. The server has an empty data folder,
to which all documents of the collection are added first. Then `lkr bench load` sends requests at a fixed rate, and every minute
is printed how much anonymous memory the server has, how much its folder takes, and how many documents and chunks it has. Compared are the
mean of the first and the last quarter, the first five minutes left out. Needs Linux.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

from server import data, log_in, serving

WARM_UP_S = 300
INTERVAL_S = 60


def anonymous_mb(process):
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+)", status)[1]) / 1e3


def disk_mb(folder):
    """What the files take, holes left out."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(parent, name)).st_blocks * 512
            except FileNotFoundError:
                pass
    return total / 1e6


def sample(url, token, process, folder, began):
    stats = data(f"{url}/knowledge/stats", None, token)
    row = {"minute": (time.monotonic() - began) / 60, "memory": anonymous_mb(process), "disk": disk_mb(folder),
           "documents": stats["documents_total"], "chunks": stats["collections"]["chunks"]}
    print("{minute:6.1f} min  {memory:7.1f} MB of memory  {disk:7.1f} MB on disk  {documents:6} documents  {chunks:6} chunks"
          .format(**row), flush=True)
    return row


def compare(rows):
    rows = [row for row in rows if row["minute"] * 60 >= WARM_UP_S] or rows
    quarter = max(1, len(rows) // 4)
    for name in ("memory", "disk", "chunks"):
        first, last = (statistics.mean(row[name] for row in part) for part in (rows[:quarter], rows[-quarter:]))
        print(f"{name}: {first:.1f} in the first quarter, {last:.1f} in the last ({last / first:.3f} times)")


def soak(arguments, folder):
    model = {"LKR_MODEL_DIR": arguments.model} if arguments.model else {}
    with serving(arguments.lkr, folder, **model) as (server, url, environment):
        api = f"{url}/api/v1"
        # A key does not expire during the run, a session may.
        token = data(f"{api}/auth/keys", {"name": "soak"}, log_in(api, folder / "data"))["key"]
        environment |= {"LKR_TOKEN": token}
        subprocess.run([arguments.lkr, "add", arguments.collection], env=environment, check=True, stdout=subprocess.DEVNULL)
        load = [arguments.lkr, "bench", "load", "--rate", str(arguments.rate), "--kind", arguments.kind, "--stock", "500",
                "--seconds", str(arguments.seconds), arguments.collection]
        client, began, rows = subprocess.Popen(load, env=environment), time.monotonic(), []
        while client.poll() is None:
            rows.append(sample(api, token, server.pid, folder / "data", began))
            try:
                client.wait(INTERVAL_S)
            except subprocess.TimeoutExpired:
                pass
        compare(rows)
        return client.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lkr")
    parser.add_argument("collection")
    parser.add_argument("--model")
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--rate", type=int, default=30)
    parser.add_argument("--kind", default="search=8,cached=4,add=2,delete=2")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        raise SystemExit(soak(arguments, pathlib.Path(folder)))


if __name__ == "__main__":
    main()
