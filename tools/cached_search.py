#!/usr/bin/env python3
"""Compare cached searches with a bare handler that returns the same bytes.

usage: cached_search.py LKR BARE COLLECTION [--clients 1,8,64] [--seconds 5] [--rounds 3]

LKR is the program, BARE the example `bare_handler` of lkr-server in the same profile, COLLECTION a folder with docs.jsonl or
corpus.jsonl. The server has an empty data folder and no model. One search is asked until it is cached; then wrk sends it
to both, in turns. Printed are the medians over the rounds: requests a second, CPU time of the server for a request, and
their ratios. Client and servers share the processors, so the ratio of CPU times says more where these are busy. Needs
Linux and wrk.
"""
import argparse
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import tempfile
import time

from server import call, data, free_port, log_in, serving, wait

DOCUMENTS = 50
QUERY = "How are changes to the handbook reviewed?"


def documents(collection):
    """The first documents of a collection as bodies of requests."""
    path = next(path for name in ("docs.jsonl", "corpus.jsonl") if (path := collection / name).exists())
    with path.open(encoding="utf-8") as lines:
        for line, _ in zip(lines, range(DOCUMENTS)):
            row = json.loads(line)
            yield {"source": str(row.get("_id") or row.get("id") or row.get("doc_id")), "title": row.get("title") or "",
                   "text": row["text"]}


def fill(url, folder, collection):
    """Logs in, adds documents and returns a token."""
    token = log_in(url, folder)
    tasks = [data(f"{url}/documents", document, token)["task_id"] for document in documents(collection)]
    for task in tasks:
        while data(f"{url}/documents/tasks/{task}", None, token)["status"] not in ("done", "failed"):
            time.sleep(0.1)
    return token


def hits(url, token):
    """How many searches the cache has answered."""
    text = call(f"{url}/metrics", None, token).decode()
    return int(re.search(r'^lkr_search_cache_total\{cache="hit"\} (\d+)', text, re.MULTILINE)[1])


def cpu_s(process):
    """Seconds of CPU of a process with its threads."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(url, script, process, clients, seconds):
    """Requests a second, and CPU microseconds of the server for each."""
    before, threads = cpu_s(process), min(2, clients)
    command = ["wrk", f"-t{threads}", f"-c{clients}", f"-d{seconds}s", "-s", script, url]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    used = cpu_s(process) - before
    if "Non-2xx" in output:
        raise SystemExit(f"requests failed: {output}")
    count = int(re.search(r"(\d+) requests in", output)[1])
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", output)[1])
    return rate, 1e6 * used / count


def script(folder, body, token):
    path = folder / "post.lua"
    path.write_text(f"wrk.method = 'POST'\nwrk.body = [[{json.dumps(body)}]]\n"
                    "wrk.headers['Content-Type'] = 'application/json'\n"
                    f"wrk.headers['Authorization'] = 'Bearer {token}'\n", encoding="utf-8")
    return str(path)


def measure(arguments, folder):
    bare = None
    with serving(arguments.lkr, folder) as (server, url, _):
        try:
            body = {"query": QUERY, "top_k": 10}
            token = fill(f"{url}/api/v1", folder / "data", arguments.collection)
            for _ in range(3):
                answer = call(f"{url}/api/v1/search", body, token)
            if hits(url, token) != 2:
                raise SystemExit("the search is not cached")
            (folder / "answer").write_bytes(answer)
            port = free_port()
            bare = subprocess.Popen([arguments.bare, f"127.0.0.1:{port}", str(folder / "answer")])
            wait(lambda: socket.create_connection(("127.0.0.1", port)).close())
            print(f"{len(answer)} bytes an answer")
            targets = {"lkr": (f"{url}/api/v1/search", server.pid), "bare": (f"http://127.0.0.1:{port}/", bare.pid)}
            compare(arguments, targets, script(folder, body, token))
        finally:
            if bare:
                bare.terminate()
                bare.wait()


def compare(arguments, targets, lua):
    for clients in map(int, arguments.clients.split(",")):
        found = {name: [] for name in targets}
        for _ in range(arguments.rounds):
            for name, (url, process) in targets.items():
                found[name].append(load(url, lua, process, clients, arguments.seconds))
        rates = {name: statistics.median(rate for rate, _ in runs) for name, runs in found.items()}
        costs = {name: statistics.median(cost for _, cost in runs) for name, runs in found.items()}
        print(f"{clients} clients: {rates['lkr']:.0f} of {rates['bare']:.0f} requests a second "
              f"({rates['lkr'] / rates['bare']:.2f}); {costs['lkr']:.0f} and {costs['bare']:.0f} µs of CPU a request")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lkr")
    parser.add_argument("bare")
    parser.add_argument("collection", type=pathlib.Path)
    parser.add_argument("--clients", default="1,8,64")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(arguments, pathlib.Path(folder))


if __name__ == "__main__":
    main()
