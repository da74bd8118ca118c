"""Generates a Python client from the server's OpenAPI document, and uses it."""

import importlib
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from openapi_spec_validator import OpenAPIV31SpecValidator

URL = os.environ["LKR_URL"]
SCRATCH = Path(os.environ["SCRATCH"])

# Responses of bytes of any content type, which the generator leaves to the caller. Every other warning is a failure.
BYTES = {"GET /api/v1/backup", "GET /api/v1/documents/{doc_id}/file", "GET /docs/{file}"}

# Nothing is reformatted: the generated code is only run.
CONFIG = {"post_hooks": [], "package_name_override": "generated_lkr", "project_name_override": "generated-lkr"}


def document():
    with urllib.request.urlopen(f"{URL}/api/v1/openapi.json") as response:
        return json.load(response)


def generate():
    config = SCRATCH / "generator.json"
    config.write_text(json.dumps(CONFIG))
    command = [sys.executable, "-m", "openapi_python_client", "generate"]
    command += ["--url", f"{URL}/api/v1/openapi.json", "--config", str(config)]
    command += ["--output-path", str(SCRATCH / "client"), "--overwrite", "--meta", "none"]
    done = subprocess.run(command, capture_output=True, text=True)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    warnings = set(re.findall(r"WARNING parsing (.*?) within", output))
    assert warnings == BYTES, output
    (SCRATCH / "client").rename(SCRATCH / "generated_lkr")
    sys.path.insert(0, str(SCRATCH))


def operation(tag, name):
    return importlib.import_module(f"generated_lkr.api.{tag}.{name}")


def called(tag, name, status, **arguments):
    """Calls an operation, and returns the payload of its response."""
    response = operation(tag, name).sync_detailed(**arguments)
    assert response.status_code == status, (name, response.status_code, response.content)
    assert response.parsed.code == 0, response.parsed
    assert response.parsed.request_id == response.headers["x-request-id"]
    return response.parsed.data


def story():
    from generated_lkr import AuthenticatedClient, Client
    from generated_lkr.models import Credentials, DocumentInput, SearchInput

    anonymous = Client(base_url=URL)
    credentials = Credentials(username="admin", password=os.environ["LKR_ADMIN_PASSWORD"])
    token = called("accounts", "login", 200, client=anonymous, body=credentials)
    assert token.token_type == "Bearer" and token.user.role == "admin"
    client = AuthenticatedClient(base_url=URL, token=token.access_token)

    text = "# Moons\n\nJupiter has many moons.\n\n## Europa\n\nEuropa hides an ocean under its ice.\n"
    document = DocumentInput(text=text, title="Moons", source="client:moons")
    accepted = called("documents", "add_document", 202, client=client, body=document)
    deadline = time.monotonic() + 60
    while True:
        task = called("tasks", "get_task", 200, client=client, task_id=accepted.task_id)
        if task.status in ("done", "failed"):
            break
        assert time.monotonic() < deadline, task
        time.sleep(0.1)
    assert task.status == "done", task

    answer = called("search", "search", 200, client=anonymous, body=SearchInput(query="ocean under ice"))
    best = answer.results[0]
    assert best.doc_id == task.doc_id and "ocean" in best.text, answer
    detail = called("documents", "get_document", 200, client=anonymous, doc_id=best.doc_id)
    assert detail.l1.title == "Moons" and detail.file is None
    assert called("documents", "get_text", 200, client=anonymous, doc_id=best.doc_id).text == text
    listed = called("documents", "list_documents", 200, client=anonymous, limit=1)
    assert [item.doc_id for item in listed.items] == [best.doc_id] and listed.next_offset is None

    deleted = called("documents", "delete_document", 200, client=client, doc_id=best.doc_id)
    assert deleted.deleted.l1 == 1, deleted
    gone = operation("documents", "get_document").sync_detailed(client=client, doc_id=best.doc_id)
    assert (gone.status_code, gone.parsed.code) == (404, 1004), gone
    refused = operation("users", "list_users").sync_detailed(client=AuthenticatedClient(base_url=URL, token="no"))
    assert (refused.status_code, refused.parsed.code) == (401, 1005), refused


OpenAPIV31SpecValidator(document()).validate()
generate()
story()
