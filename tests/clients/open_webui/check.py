"""What Open WebUI does with an OpenAPI document, written from a description of its behaviour, not with its code.

Its backend fetches the document below the configured URL with the configured key. Each operation becomes a tool: its name is the
operationId, its description the description or the summary, its parameters those of path and query and the properties of the
JSON body with references resolved. To call a tool it appends the operation's path to the URL, puts parameters into path and
query, and sends the others as the body. A filter list admits names that end with one of its entries, and removes those that end
with an entry after `!`.
"""

import copy
import re
import sys
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lkr_server import ROOT, URL, add, admin, call, read_key, send

METHODS = ("get", "put", "post", "delete", "patch")


def fields_of_the_page():
    """The values that the page says to enter."""
    page = (ROOT / "docs/integrations/open_webui.md").read_text(encoding="utf-8")
    spec = re.search(r"^\| OpenAPI Spec \| URL, `(.*)` \|$", page, flags=re.MULTILINE)
    names = re.search(r"^\| Function Name Filter List \| `(.*)` \|$", page, flags=re.MULTILINE)
    return spec.group(1), names.group(1).split(",")


def is_admitted(name, filters):
    admitted = [entry for entry in filters if not entry.startswith("!")]
    removed = [entry[1:] for entry in filters if entry.startswith("!")]
    return any(map(name.endswith, admitted)) and not any(map(name.endswith, removed))


def resolved(schema, document, seen=()):
    """A schema with its references resolved. A reference inside itself becomes an empty schema."""
    if "$ref" in schema:
        reference = schema["$ref"]
        if reference in seen:
            return {}
        target = document
        for part in reference.removeprefix("#/").split("/"):
            target = target[part]
        return resolved(target, document, (*seen, reference))
    schema = copy.deepcopy(schema)
    for name, inner in schema.get("properties", {}).items():
        schema["properties"][name] = resolved(inner, document, seen)
    if isinstance(schema.get("items"), dict):
        schema["items"] = resolved(schema["items"], document, seen)
    for keyword in ("oneOf", "anyOf", "allOf"):
        if keyword in schema:
            schema[keyword] = [resolved(inner, document, seen) for inner in schema[keyword]]
    return schema


def body_schema(operation, document):
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema")
    return resolved(schema, document) if schema else {}


def tools_of(document):
    """A tool for each operation, by its name."""
    tools = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if method not in METHODS or "operationId" not in operation:
                continue
            properties, required = {}, []
            for parameter in operation.get("parameters", []):
                # A parameter with JSON has content in place of a schema, and counts as a string.
                schema = parameter.get("schema", {})
                properties[parameter["name"]] = {
                    "type": schema.get("type", "string"),
                    "description": schema.get("description") or parameter.get("description", ""),
                }
                if parameter.get("required"):
                    required.append(parameter["name"])
            body = body_schema(operation, document)
            properties.update(body.get("properties", {}))
            required.extend(body.get("required", []))
            tools[operation["operationId"]] = {
                "path": path,
                "method": method,
                "operation": operation,
                "description": operation.get("description", operation.get("summary")),
                "properties": properties,
                "required": required,
            }
    return tools


def use(tool, key, **arguments):
    """Calls a tool as the model asks for it."""
    path, query = tool["path"], {}
    declared = {parameter["name"]: parameter["in"] for parameter in tool["operation"].get("parameters", [])}
    for name, value in arguments.items():
        if declared.get(name) == "path":
            path = path.replace(f"{{{name}}}", urllib.parse.quote(str(value), safe=""))
        elif declared.get(name) == "query":
            query[name] = value
    if query:
        path += "?" + urllib.parse.urlencode(query)
    body = {name: value for name, value in arguments.items() if name not in declared}
    has_body = "requestBody" in tool["operation"]
    return send(tool["method"].upper(), path, body if has_body else None, key, base=URL)


token = admin()
call("POST", "/spaces", {"space": "legal"}, token)
doc_id = add(token, text="# Tides\n\nThe moon pulls the sea twice a day.\n", source="/tides.md")
add(token, text="# Rent\n\nThe rent is due in May.\n", space="legal")
key = read_key(token, ["default"])

spec_path, filters = fields_of_the_page()
status, document = send("GET", "/" + spec_path, token=key, base=URL)
assert status == 200, document
all_tools = tools_of(document)
tools = {name: tool for name, tool in all_tools.items() if is_admitted(name, filters)}
assert sorted(tools) == ["context", "get_document", "get_text", "search"], sorted(tools)
for name, tool in all_tools.items():
    assert tool["description"], name
    for parameter, schema in tool["properties"].items():
        assert isinstance(schema, dict) and "$ref" not in schema, (name, parameter, schema)
    assert set(tool["required"]) <= set(tool["properties"]), name
assert tools["search"]["required"] == ["query"], tools["search"]["required"]
assert {"query", "top_k", "where"} <= set(tools["search"]["properties"]), tools["search"]["properties"]
assert tools["get_document"]["required"] == ["doc_id"], tools["get_document"]["required"]

status, answer = use(tools["search"], key, query="what pulls the sea?", top_k=3)
assert status == 200 and answer["data"]["results"][0]["doc_id"] == doc_id, answer
status, answer = use(tools["context"], key, query="what pulls the sea?", max_tokens=200)
assert status == 200 and "moon" in answer["data"]["text"], answer
status, answer = use(tools["get_document"], key, doc_id=doc_id)
assert status == 200 and answer["data"]["l1"]["title"] == "Tides", answer
status, answer = use(tools["get_text"], key, doc_id=doc_id)
assert status == 200 and "moon" in answer["data"]["text"], answer
status, answer = use(tools["search"], key, query="when is the rent due?")
assert status == 200 and all(result["space"] == "default" for result in answer["data"]["results"]), answer
status, answer = use(all_tools["create_space"], key, space="new")
assert status == 403, answer
print("the document makes", len(all_tools), "tools")
