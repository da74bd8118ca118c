"""The official client of OpenAI reads spaces as vector stores."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import openai

from lkr_server import API, URL, add, admin, call, read_key, run_page

TEXT = "# Tides\n\nThe moon pulls the sea twice a day.\n\n## Springs\n\nAt full moon the sun helps.\n"


def raises(error, status, function, *arguments, **options):
    """The error of a call, which must fail so."""
    try:
        function(*arguments, **options)
    except error as raised:
        assert raised.status_code == status, raised
        assert raised.body.keys() == {"message", "type", "param", "code"}, raised.body
        assert raised.request_id, raised
        return raised
    raise AssertionError(f"{function} did not fail")


token = admin()
call("POST", "/spaces", {"space": "legal", "title": "Contracts"}, token)
doc_id = add(token, text=TEXT, source="/tides.md", metadata={"team": "sea", "year": "2026"})
older = add(token, text="# Winds\n\nThe wind pushes the sea.\n", metadata={"team": "air", "year": "2024"})
add(token, text="# Rent\n\nThe rent is due in May.\n", space="legal")
key = read_key(token, ["default"])
client = openai.OpenAI(base_url=f"{API}/openai", api_key=key, max_retries=0)

stores = list(client.vector_stores.list())
assert [store.id for store in stores] == ["default"], stores
store = client.vector_stores.retrieve("default")
assert (store.object, store.status) == ("vector_store", "completed"), store
assert (store.file_counts.completed, store.file_counts.total) == (2, 2), store
everything = openai.OpenAI(base_url=f"{API}/openai", api_key=token, max_retries=0)
pages = everything.vector_stores.list(limit=1, order="asc")
assert [store.id for store in pages] == ["default", "legal"], "the client pages by `after`"
assert everything.vector_stores.retrieve("legal").name == "Contracts"

page = client.vector_stores.search("default", query="what pulls the sea?", max_num_results=5)
assert page.object == "vector_store.search_results.page", page
best = page.data[0]
assert best.file_id == doc_id and "moon" in best.content[0].text, best
assert best.filename == "Tides" and best.attributes["team"] == "sea", best
assert best.attributes["lkr.source"] == "/tides.md", best
scores = [result.score for result in page.data]
assert scores == sorted(scores, reverse=True) and 0 <= scores[-1] and scores[0] <= 1, scores
several = client.vector_stores.search("default", query=["moon", "wind"], rewrite_query=True)
assert {result.file_id for result in several} == {doc_id, older}, several
nested = {
    "type": "or",
    "filters": [
        {"type": "and", "filters": [
            {"type": "eq", "key": "team", "value": "air"},
            {"type": "lt", "key": "year", "value": 2026},
        ]},
        {"type": "in", "key": "lkr.source", "value": ["/none.md"]},
    ],
}
filtered = client.vector_stores.search("default", query="sea", filters=nested)
assert {result.file_id for result in filtered} == {older}, filtered
strict = {"ranker": "none", "score_threshold": scores[0]}
good = client.vector_stores.search("default", query="what pulls the sea?", ranking_options=strict)
assert [result.file_id for result in good] == [doc_id], good

files = client.vector_stores.files.list("default", limit=1, order="asc")
assert [file.id for file in files] == [doc_id, older], files
file = client.vector_stores.files.retrieve(doc_id, vector_store_id="default")
assert (file.status, file.vector_store_id, file.last_error) == ("completed", "default", None), file
assert file.attributes["year"] == "2026", file
content = client.vector_stores.files.content(doc_id, vector_store_id="default")
assert "".join(part.text for part in content) == TEXT, content

raises(openai.NotFoundError, 404, client.vector_stores.retrieve, "legal")
raises(openai.NotFoundError, 404, client.vector_stores.search, "nowhere", query="rent")
wrong = raises(openai.BadRequestError, 400, client.vector_stores.search, "default", query="a", max_num_results=99)
assert wrong.param == "max_num_results" and wrong.type == "invalid_request_error", wrong
stranger = openai.OpenAI(base_url=f"{API}/openai", api_key="wrong", max_retries=0)
refused = raises(openai.AuthenticationError, 401, stranger.vector_stores.list)
assert refused.code == "invalid_api_key", refused
raises(openai.APIStatusError, 405, client.vector_stores.create, name="new")
raises(openai.APIStatusError, 405, client.vector_stores.delete, "default")
raises(openai.NotFoundError, 404, client.files.create, file=("a.txt", b"text"), purpose="assistants")
raises(openai.NotFoundError, 404, client.models.list)

defined = run_page("integrations/openai.md", LKR_URL=URL, LKR_KEY=key)
assert defined["page"].data[0].file_id == doc_id, "the code on the page finds the document"
print("openai", openai.__version__, "reads spaces as vector stores")
