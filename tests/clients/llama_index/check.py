"""The retriever of docs/integrations/llama_index.md, as it stands there, finds a document in LlamaIndex."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import llama_index.core

from lkr_server import URL, run_page, tides_and_a_secret

key, doc_id, hidden = tides_and_a_secret()

page = run_page("integrations/llama_index.md", LKR_URL=URL, LKR_KEY=key)
nodes = page["nodes"]
assert nodes[0].metadata["doc_id"] == doc_id and nodes[0].score > 0, nodes
assert "moon" in nodes[0].text and nodes[0].metadata["source"] == "/tides.md", nodes
assert hidden not in {node.metadata["doc_id"] for node in nodes}, "the key reads one space"
filtered = page["LkrRetriever"](URL, key, where={"field": "source", "prefix": "/winds"})
assert filtered.retrieve("sea") == []
print("llama-index-core", llama_index.core.__version__, "retrieves")
