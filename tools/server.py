"""A server with an empty data folder, and requests to it, for the measurements in this folder."""
import contextlib
import json
import os
import pathlib
import secrets
import socket
import subprocess
import time
import urllib.request


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.contextmanager
def serving(lkr, folder, **environment):
    """Runs a server on the folder `data` in `folder`, with its log beside it, and with these variables in its environment.

    Yields the process, the address, and the environment in which commands of `lkr` ask this server.
    """
    port = free_port()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LKR_")}
    url = f"http://127.0.0.1:{port}"
    with open(folder / "log", "wb") as log:
        command = [lkr, "serve", "--listen", f"127.0.0.1:{port}", "--data-dir", str(folder / "data")]
        server = subprocess.Popen(command, env=clean | environment, stdout=log, stderr=log)
        try:
            yield server, url, clean | {"LKR_URL": url}
        finally:
            server.terminate()
            server.wait()


def call(url, body, token=None):
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
        return answer.read()


def data(url, body, token=None):
    return json.loads(call(url, body, token))["data"]


def wait(until):
    for _ in range(600):
        try:
            return until()
        except OSError:
            time.sleep(0.1)
    return until()


def log_in(url, folder):
    """Waits for a server with a new data folder, changes the first password and returns a token."""
    first = wait((pathlib.Path(folder) / "initial-admin-password").read_text).strip()
    token = wait(lambda: data(f"{url}/auth/login", {"username": "admin", "password": first}))["access_token"]
    change = {"current_password": first, "new_password": secrets.token_urlsafe(18)}
    return data(f"{url}/auth/password", change, token)["access_token"]
