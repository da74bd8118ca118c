"""The retriever of docs/integrations/langchain.md, as it stands there, finds a document in LangChain."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import langchain_core
from langchain_core.runnables import RunnableLambda

from lkr_server import URL, run_page, tides_and_a_secret

key, doc_id, hidden = tides_and_a_secret()

page = run_page("integrations/langchain.md", LKR_URL=URL, LKR_KEY=key)
documents = page["documents"]
assert documents[0].metadata["doc_id"] == doc_id, documents
assert "moon" in documents[0].page_content and documents[0].metadata["source"] == "/tides.md", documents
assert hidden not in {document.metadata["doc_id"] for document in documents}, "the key reads one space"
filtered = page["LkrRetriever"](url=URL, api_key=key, where={"field": "source", "prefix": "/winds"})
assert filtered.invoke("sea") == []
chain = page["retriever"] | RunnableLambda(lambda found: [document.page_content for document in found])
assert any("moon" in text for text in chain.invoke("why does the sea rise?"))
print("langchain-core", langchain_core.__version__, "retrieves")
