"""What the OpenAPI document cannot say, so that generated requests are as valid as they claim to be; and what the run must not
do to itself. Each rule has its reason beside it."""

import os
import re

import schemathesis

# The account whose key the run uses.
CALLER = os.environ["LKR_CALLER"]

# The files of uploads. A file has a name, by whose extension its format is chosen, and the names of parts are not described by
# OpenAPI; nor is what makes a PDF file one.
FILE = ("moons.md", b"# Moons\n\nJupiter has many moons.\n", "text/markdown")

# The plugins depend on how the server was built; GET /settings/schema lists them. These are always there.
PLUGINS = {"pdf": "lopdf", "docx": "zip_xml", "html": "article", "ocr": "none"}

# The categories are those of the taxonomy that the operator chose.
CATEGORY = ""

# Nothing is sent to other machines: the server is started so that it refuses other hosts.
HOST = "http://127.0.0.1:9"


def operation_id(context):
    return context.operation.definition.raw.get("operationId") if context.operation else None


def is_time(text):
    return isinstance(text, str) and re.match(r"^\d{4}-\d\d-\d\d", text) is not None


def operands(comparison):
    values = [comparison[key] for key in ("eq", "gt", "gte", "lt", "lte") if key in comparison]
    return values + (comparison["in"] if isinstance(comparison.get("in"), list) else [])


def is_allowed_expression(expression, depth=1):
    """JSON Schema cannot say that bounds have one type, that one of two lower bounds is too many, that dates are compared with
    dates, nor how deep and large an expression may be."""
    if not isinstance(expression, dict) or depth > 8:
        return depth <= 8
    for key in ("and", "or"):
        if isinstance(expression.get(key), list):
            return all(is_allowed_expression(part, depth + 1) for part in expression[key])
    if "not" in expression:
        return is_allowed_expression(expression["not"], depth + 1)
    if ("gt" in expression and "gte" in expression) or ("lt" in expression and "lte" in expression):
        return False
    values = operands(expression)
    if len({(type(value), is_time(value)) for value in values if not isinstance(value, bool)}) > 1 and "in" not in expression:
        return False
    if expression.get("field") in ("created_at", "updated_at"):
        return "prefix" not in expression and all(is_time(value) for value in values)
    return True


def is_allowed_part(relevant):
    """A part is given by both offsets or by neither, and is not empty."""
    if not isinstance(relevant, dict):
        return True
    start, end = relevant.get("char_start"), relevant.get("char_end")
    if start is None or end is None:
        return start is None and end is None
    return not (isinstance(start, int) and isinstance(end, int)) or start < end


@schemathesis.hook
def filter_body(context, body):
    if not isinstance(body, dict):
        return True
    if "where" in body and not is_allowed_expression(body["where"]):
        return False
    if operation_id(context) == "evaluate" and isinstance(body.get("queries"), list):
        parts = [part for query in body["queries"] if isinstance(query, dict) for part in query.get("relevant") or []]
        return all(is_allowed_part(part) for part in parts)
    # Every account may write only where everybody may read.
    if operation_id(context) in ("create_space", "change_space"):
        return body.get("write") != "accounts"
    # An empty change of the settings is refused, and so are tests of no model or of several.
    if operation_id(context) == "change_settings":
        return any(body.get(key) is not None for key in ("models", "parsers", "dedup"))
    return True


@schemathesis.hook
def filter_query(context, query):
    return not isinstance(query, dict) or "where" not in query or is_allowed_expression(query["where"])
