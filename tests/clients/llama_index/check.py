"""The retriever of docs/integrations/llama_index.md, as it stands there, finds a document in LlamaIndex."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import llama_index.core

from lkr_server import URL, add, admin, call, read_key, run_page

token = admin()
call("POST", "/spaces", {"space": "legal"}, token)
doc_id = add(token, text="# Tides\n\n## Springs\n\nThe moon makes the sea rise.\n", source="/tides.md")
hidden = add(token, text="# Secret\n\nThe sea rises at night.\n", space="legal")
key = read_key(token, ["default"])

page = run_page("integrations/llama_index.md", LKR_URL=URL, LKR_KEY=key)
nodes = page["nodes"]
assert nodes[0].metadata["doc_id"] == doc_id and nodes[0].score > 0, nodes
assert "moon" in nodes[0].text and nodes[0].metadata["source"] == "/tides.md", nodes
assert hidden not in {node.metadata["doc_id"] for node in nodes}, "the key reads one space"
filtered = page["LkrRetriever"](URL, key, where={"field": "source", "prefix": "/winds"})
assert filtered.retrieve("sea") == []
print("llama-index-core", llama_index.core.__version__, "retrieves")
