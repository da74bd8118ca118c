"""Schemathesis: requests that are generated from the OpenAPI document, valid and invalid ones, alone and following each other.

The run has two servers of its own: an empty one, and one with documents. They call no other machine."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

SCRATCH = Path(os.environ["SCRATCH"])
PASSWORD = os.environ["LKR_ADMIN_PASSWORD"]
FOLDER = Path(__file__).parent

# The account of the run.
CALLER = "schemathesis"

# Another account.
OTHER = "somebody-else"

DOCUMENTS = {
    "moons": "# Moons\n\nJupiter has many moons.\n\n## Europa\n\nEuropa hides an ocean under its ice.\n",
    "rings": "# Rings\n\nSaturn has rings of ice and rock.\n\n## Gaps\n\nMoons clear gaps in the rings.\n",
    "comets": "# Comets\n\nComets grow tails near the Sun.\n",
}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    def __init__(self, name):
        self.url = f"http://127.0.0.1:{free_port()}"
        self.folder = SCRATCH / name
        self.folder.mkdir()
        env = {name: value for name, value in os.environ.items() if not name.startswith("LKR_")}
        env |= {
            "LKR_LISTEN": self.url.removeprefix("http://"),
            "LKR_DATA_DIR": str(self.folder / "data"),
            "LKR_ADMIN_PASSWORD": PASSWORD,
            "LKR_AUTH_REGISTER_ENABLED": "true",
            "LKR_OUTGOING_HOSTS": "127.0.0.1",
        }
        log = (self.folder / "server.log").open("w")
        command = [os.environ["LKR_BIN"], "serve"]
        self.process = subprocess.Popen(command, env=env, cwd=self.folder, stdout=log, stderr=log)

    def __enter__(self):
        deadline = time.monotonic() + 120
        while True:
            try:
                return urllib.request.urlopen(f"{self.url}/readyz") and self
            except OSError:
                assert self.process.poll() is None and time.monotonic() < deadline, "the server does not start"
                time.sleep(0.1)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def call(self, method, path, body=None, token=None):
        headers = {"content-type": "application/json"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, headers, method=method)
        with urllib.request.urlopen(request) as response:
            return json.load(response)["data"]


def admin_key(server):
    """An API key of an admin: unlike a session, it outlives the logouts and password changes among the requests."""
    token = server.call("POST", "/auth/login", {"username": "admin", "password": PASSWORD})["access_token"]
    for username in [CALLER, OTHER]:
        account = {"username": username, "password": PASSWORD, "role": "admin", "must_change_password": False}
        server.call("POST", "/users", account, token)
    token = server.call("POST", "/auth/login", {"username": CALLER, "password": PASSWORD})["access_token"]
    return server.call("POST", "/auth/keys", {"name": "schemathesis"}, token)


def add_documents(server, key):
    for name, text in DOCUMENTS.items():
        body = {"text": text, "source": f"client:{name}", "metadata": {"name": name}}
        task = server.call("POST", "/documents", body, key)["task_id"]
        while server.call("GET", f"/documents/tasks/{task}", token=key)["status"] in ("pending", "running"):
            time.sleep(0.05)


def run(server, key):
    for name in ["hooks.py", "schemathesis.toml"]:
        shutil.copy(FOLDER / name, server.folder)
    command = [sys.executable, "-m", "schemathesis.cli", "--no-color", "--config-file", "schemathesis.toml", "run"]
    command += [f"{server.url}/api/v1/openapi.json", "--header", f"Authorization: Bearer {key['key']}"]
    command += ["--report", "json", "--report-json-path", "report.json", *sys.argv[1:]]
    path = f"{server.folder}:{os.environ.get('PYTHONPATH', '')}"
    env = os.environ | {"LKR_CALLER": CALLER, "LKR_OTHER": OTHER, "LKR_KEY_ID": key["id"], "PYTHONPATH": path}
    done = subprocess.run(command, cwd=server.folder, env=env)
    assert server.process.poll() is None, "the server ended"
    return done.returncode


def main():
    failed = []
    for name in ["empty", "documents"]:
        with Server(name) as server:
            key = admin_key(server)
            if name == "documents":
                add_documents(server, key["key"])
            if run(server, key) != 0:
                failed.append(name)
    assert not failed, f"failures on these servers: {failed}"


main()
