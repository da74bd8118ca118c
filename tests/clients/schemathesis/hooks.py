"""What the OpenAPI document cannot say, so that valid requests are valid; and what the run must not do to itself. Each rule has
its reason beside it. Requests that are meant to be invalid are sent as they are."""

import json
import os
import re

import schemathesis
from schemathesis.core.parameters import ParameterLocation

# The key of the run, and the account that it belongs to: resetting that account's password or revoking the key ends the run.
CALLER, KEY_ID = os.environ["LKR_CALLER"], os.environ["LKR_KEY_ID"]

# Another account, whose password may be reset.
OTHER = os.environ["LKR_OTHER"]

# The server of the run may call this address alone, where nothing listens. Which hosts may be called is configuration.
URL = "http://127.0.0.1:9/events"

# Which plugins there are depends on how the server was built; GET /settings/schema lists them. These are always there.
PLUGINS = {"pdf": "lopdf", "docx": "zip_xml", "html": "article", "ocr": "none"}

# The contents of every uploaded file.
FILE = "# Moons\n\nJupiter has many moons.\n"

# An expression in place of those that JSON Schema cannot refuse.
EXPRESSION = {"field": "source", "prefix": "client:"}


def is_time(value):
    return isinstance(value, str) and re.match(r"^\d{4}-\d\d-\d\d", value) is not None


def is_expression(value, depth=1):
    """Bounds are one lower and one upper of one type, dates are compared with dates, and at most 8 are nested."""
    if depth > 8:
        return False
    parts = value.get("and") or value.get("or") or ([value["not"]] if "not" in value else [])
    if parts:
        return all(is_expression(part, depth + 1) for part in parts)
    bounds = [value[name] for name in ("gt", "gte", "lt", "lte") if name in value]
    if ("gt" in value and "gte" in value) or ("lt" in value and "lte" in value):
        return False
    if len({(isinstance(bound, str), is_time(bound)) for bound in bounds}) > 1:
        return False
    if value["field"] in ("created_at", "updated_at"):
        operands = bounds + value.get("in", []) + ([value["eq"]] if "eq" in value else [])
        return "prefix" not in value and all(is_time(operand) for operand in operands)
    return True


def repair_model(entry):
    if entry.get("base_url"):
        entry["base_url"] = URL


def repair_settings(body):
    for name, entry in (body.get("parsers") or {}).items():
        if entry and entry.get("plugin") is not None:
            entry["plugin"] = PLUGINS[name]
        # Two letters are not always a language.
        if entry and entry.get("languages"):
            entry["languages"] = ["en"]
    for entry in filter(None, (body.get("models") or {}).values()):
        repair_model(entry)


def change_settings(body):
    repair_settings(body)
    # An empty change is refused.
    if all(body.get(name) is None for name in ("models", "parsers", "dedup")):
        body["dedup"] = {"strategy": "none"}


def test_settings(body):
    # Exactly one model is tested.
    body["models"] = {"summarize": body["models"].get("summarize") or {}}
    repair_settings(body)


def create_webhook(body):
    body["url"] = URL


def evaluate(body):
    # A part has both offsets or neither, and is not empty.
    for relevant in (relevant for query in body["queries"] for relevant in query["relevant"]):
        start, end = relevant.get("char_start"), relevant.get("char_end")
        if start is None or end is None or start >= end:
            relevant["char_start"] = relevant["char_end"] = None


def space_policies(body):
    # Every account may write only where everybody may read.
    if body.get("write") == "accounts":
        body["read"] = "everyone"
    elif body.get("read") == "members":
        body["write"] = "members"


def change_document(body):
    # The categories are those of the taxonomy that the operator chose.
    if body.get("category"):
        body["category"] = ""


def form(body):
    # The name of the part says that the file is Markdown, so pictures and white space are refused.
    if "file" in body:
        body["file"] = FILE


def text_parts(body):
    """The parts of a form are texts, whatever they were made from."""
    for name in ("title", "source", "metadata", "space"):
        if name in body and not isinstance(body[name], str):
            body[name] = json.dumps(body[name])
    form(body)


def attribute(filter):
    """Names that begin with lkr. are those of lkr's own fields, and times are compared with times."""
    if filter.get("key", "").startswith("lkr."):
        filter["key"] = "team"
    for part in filter.get("filters", []):
        attribute(part)


def vector_search(body):
    if body.get("filters"):
        attribute(body["filters"])
        if depth(body["filters"]) > 4:
            body["filters"] = {"type": "eq", "key": "team", "value": "sea"}


def depth(filter):
    return 1 + max(map(depth, filter.get("filters", [])), default=0)


def retrieval(body):
    """A number may be a string that is one, and a time a string that is one."""
    for condition in (body.get("metadata_condition") or {}).get("conditions") or []:
        if condition["name"].startswith("lkr."):
            condition["name"] = "team"
        if condition["comparison_operator"] in ("=", "≠", ">", "<", "≥", "≤", "before", "after"):
            condition["value"] = 7


REPAIRS = {
    "change_settings": change_settings,
    "test_settings": test_settings,
    "create_webhook": create_webhook,
    "evaluate": evaluate,
    "create_space": space_policies,
    "change_space": space_policies,
    "change_document": change_document,
    "upload_document": form,
    "replace_file": form,
    "openai_search_vector_store": vector_search,
    "dify_retrieval": retrieval,
}


def page_of_stores(query):
    """A page begins after an object or ends before one that exists."""
    if query.get("after") or query.get("before"):
        query.pop("before", None)
        query["after"] = "default"


def page_of_files(query):
    if query.get("after"):
        query.pop("before", None)


QUERY_REPAIRS = {"openai_list_vector_stores": page_of_stores, "openai_list_files": page_of_files}


def repair_query(query):
    where = query.get("where") if isinstance(query, dict) else None
    if isinstance(where, str) and not is_expression(json.loads(where)):
        query["where"] = json.dumps(EXPRESSION)
    if isinstance(where, dict) and not is_expression(where):
        query["where"] = EXPRESSION


def whole_numbers(value):
    """In JSON Schema, 1.0 is an integer. The server reads whole numbers without a fraction, as most programs do."""
    if isinstance(value, dict):
        return {name: whole_numbers(part) for name, part in value.items()}
    if isinstance(value, list):
        return [whole_numbers(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def existing_member(case):
    """Only accounts and groups that exist become members."""
    operation, path = case.operation.definition.raw["operationId"], case.path_parameters
    if operation == "put_group_member":
        path["username"] = CALLER
    if operation == "put_member":
        path["member"] = f"user:{CALLER}"


def protect(case):
    operation, path = case.operation.definition.raw["operationId"], case.path_parameters or {}
    if operation == "reset_password" and str(path.get("username")).lower() == CALLER:
        path["username"] = OTHER
    if operation == "delete_key" and path.get("id") == KEY_ID:
        path["id"] = "0" * 32


def forget_key(case):
    """A repeated Idempotency-Key is answered with the first task, whatever the body is."""
    headers = case.headers or {}
    if "Idempotency-Key" in headers and not case.meta.is_negative_at(ParameterLocation.HEADER):
        del headers["Idempotency-Key"]


@schemathesis.hook
def before_call(context, case, kwargs):
    protect(case)
    if case.meta is None:
        return
    if case.meta.generation.mode.is_negative:
        forget_key(case)
        if case.media_type == "multipart/form-data" and isinstance(case.body, dict):
            text_parts(case.body)
        return
    existing_member(case)
    repair_query(case.query)
    repair = QUERY_REPAIRS.get(case.operation.definition.raw["operationId"])
    if repair and isinstance(case.query, dict):
        repair(case.query)
    if not isinstance(case.body, dict):
        return
    case.body = whole_numbers(case.body)
    if case.body.get("where") and not is_expression(case.body["where"]):
        case.body["where"] = EXPRESSION
    repair = REPAIRS.get(case.operation.definition.raw["operationId"])
    if repair:
        repair(case.body)
