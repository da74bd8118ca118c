"""What the checks share: requests to the server under test, as its admin."""

import json
import os
import re
import time
import urllib.error
import urllib.request
from pathlib import Path

URL = os.environ["LKR_URL"]
API = f"{URL}/api/v1"

ROOT = Path(__file__).resolve().parents[2]


def send(method, path, body=None, token=None, base=API):
    """Sends a request and returns the status and the JSON of the response."""
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def call(method, path, body=None, token=None):
    """The payload of a response of the server's own API, which must be no error."""
    status, answer = send(method, path, body, token)
    assert answer["code"] == 0, (method, path, status, answer)
    return answer["data"]


def admin():
    """A token of the account admin."""
    login = {"username": "admin", "password": os.environ["LKR_ADMIN_PASSWORD"]}
    return call("POST", "/auth/login", login)["access_token"]


def key(token, **limits):
    """A key with these limits."""
    return call("POST", "/auth/keys", {"name": "a client", **limits}, token)["key"]


def read_key(token, spaces):
    """A key that reads these spaces and does nothing else."""
    return key(token, scope="read", spaces=spaces)


def tides_and_a_secret():
    """Adds a document, and one in a space that the returned key does not read. Returns the key and both ids."""
    token = admin()
    call("POST", "/spaces", {"space": "legal"}, token)
    doc_id = add(token, text="# Tides\n\n## Springs\n\nThe moon makes the sea rise.\n", source="/tides.md")
    hidden = add(token, text="# Secret\n\nThe sea rises at night.\n", space="legal")
    return read_key(token, ["default"]), doc_id, hidden


def add(token, **document):
    """Adds a document, waits until it can be searched, and returns its id."""
    task_id = call("POST", "/documents", document, token)["task_id"]
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        task = call("GET", f"/documents/tasks/{task_id}", token=token)
        if task["status"] in ("done", "failed"):
            assert task["status"] == "done", task
            return task["doc_id"]
        time.sleep(0.05)
    raise AssertionError(f"task {task_id} does not end")


def code_blocks(page, language="python"):
    """The code blocks of a page of the documentation."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    assert blocks, f"{page} has no block of {language}"
    return blocks


def run_page(page, **environment):
    """Runs the code blocks of a page, one after another, and returns what they defined."""
    os.environ.update(environment)
    defined = {"__name__": "page"}
    for block in code_blocks(page):
        exec(compile(block, page, "exec"), defined)
    return defined
