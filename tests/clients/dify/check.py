"""Requests as Dify sends them to an external knowledge API.

For each retrieval, Dify posts JSON to the configured endpoint with `/retrieval` appended. Its headers are Content-Type and, if a
key is configured, Authorization with a bearer token. The body has `knowledge_id`, `query` and `retrieval_setting`, whose
`score_threshold` is 0.0 unless the threshold is turned on, and `metadata_condition` only if there are conditions. It takes
`records` of an answer with the status 200 alone, and reads `content`, `score`, `title` and `metadata` of each.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lkr_server import API, add, admin, call, read_key, send

ENDPOINT = f"{API}/dify"

# Every operator of Dify's metadata filters, with a value, and the documents that it selects.
OPERATORS = [
    ("is", "sea", {"tides"}),
    ("is not", "sea", {"winds"}),
    ("start with", "se", {"tides"}),
    ("in", ["sea", "land"], {"tides"}),
    ("not in", ["sea", "land"], {"winds"}),
    ("empty", None, set()),
    ("not empty", None, {"tides", "winds"}),
    ("contains", "ea", None),
    ("not contains", "ea", None),
    ("end with", "ea", None),
]
NUMBERS = [
    ("=", 2026, {"tides"}),
    ("≠", 2026, {"winds"}),
    (">", 2024, {"tides"}),
    ("<", "2026", {"winds"}),
    ("≥", 2024, {"tides", "winds"}),
    ("≤", 2024, {"winds"}),
]
TIMES = [("before", 1767225600, {"winds"}), ("after", 1767225600, {"tides"})]


def condition(name, operator, value):
    return {"name": name, "comparison_operator": operator, "value": value}


def retrieve(key, knowledge_id, query, top_k=4, score_threshold=0.0, metadata_condition=None):
    """The status and the body of a retrieval."""
    body = {
        "retrieval_setting": {"top_k": top_k, "score_threshold": score_threshold},
        "query": query,
        "knowledge_id": knowledge_id,
    }
    if metadata_condition:
        body["metadata_condition"] = metadata_condition
    return send("POST", "/retrieval", body, key, base=ENDPOINT)


def records(*arguments, **options):
    """The records that Dify would use."""
    status, answer = retrieve(*arguments, **options)
    assert status == 200, answer
    for record in answer["records"]:
        assert isinstance(record["content"], str) and record["content"], record
        assert isinstance(record["score"], float) and 0 <= record["score"] <= 1, record
        assert isinstance(record["title"], str) and isinstance(record["metadata"], dict), record
    return answer["records"]


def refused(status, code, *arguments, **options):
    """The message of a refused retrieval."""
    answered, error = retrieve(*arguments, **options)
    assert (answered, error["error_code"]) == (status, code), (answered, error)
    return error["error_msg"]


token = admin()
call("POST", "/spaces", {"space": "legal"}, token)
# Dify stores times as Unix seconds.
add(token, text="# Tides\n\nThe moon pulls the sea.\n", title="tides", source="/tides.md",
    metadata={"topic": "sea", "year": "2026", "seen": "1780000000"})
add(token, text="# Winds\n\nThe wind pushes the sea.\n", title="winds",
    metadata={"topic": "air", "year": "2024", "seen": "1710000000"})
key = read_key(token, ["default"])

found = records(key, "default", "what does the moon do?")
assert found[0]["title"] == "tides" and "moon" in found[0]["content"], found
assert found[0]["metadata"]["lkr.source"] == "/tides.md", found
assert [record["score"] for record in found] == sorted((r["score"] for r in found), reverse=True), found
assert len(records(key, "default", "sea", top_k=1)) == 1
assert len(records(key, "default", "what does the moon do?", score_threshold=found[0]["score"])) == 1

for name, rows in [("topic", OPERATORS), ("year", NUMBERS), ("seen", TIMES)]:
    for operator, value, expected in rows:
        filters = {"logical_operator": "and", "conditions": [condition(name, operator, value)]}
        if expected is None:
            message = refused(400, 400, key, "default", "sea", metadata_condition=filters)
            assert f'"{operator}"' in message, message
            continue
        titles = {record["title"] for record in records(key, "default", "sea", metadata_condition=filters)}
        assert titles == expected, (operator, titles)
either = [condition("topic", "is", "air"), condition("year", ">", 2025)]
for operator, expected in [("or", {"tides", "winds"}), ("and", set())]:
    filters = {"logical_operator": operator, "conditions": either}
    titles = {record["title"] for record in records(key, "default", "sea", metadata_condition=filters)}
    assert titles == expected, (operator, titles)

refused(401, 1001, None, "default", "sea")
refused(401, 1002, "lkr_wrong", "default", "sea")
hidden = refused(404, 2001, key, "legal", "sea")
unknown = refused(404, 2001, key, "nowhere", "sea")
assert hidden.replace("legal", "nowhere") == unknown, (hidden, unknown)
print("dify's requests are answered")
