"""The Python SDK of the Model Context Protocol: every tool over HTTP, over `lkr mcp --server` and over `lkr mcp` on a data
folder, in the current revision and in those with a handshake, with a key that may write and one that may not."""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from lkr_server import URL, admin, key

PROGRAM, SCRATCH = os.environ["LKR_BIN"], os.environ["SCRATCH"]
READING = ["search", "fetch", "context", "list"]


@asynccontextmanager
async def over_http(token, mode):
    headers = {"authorization": f"Bearer {token}"} if token else None
    async with create_mcp_http_client(headers) as http:
        async with Client(streamable_http_client(f"{URL}/mcp", http_client=http), mode=mode) as client:
            yield client


def over_stdio(token, mode):
    environment = {"LKR_TOKEN": token} if token else None
    return Client(StdioServerParameters(command=PROGRAM, args=["mcp", "--server", URL], env=environment), mode=mode)


def on_a_folder(name, mode, *flags):
    arguments = ["mcp", "--data-dir", os.path.join(SCRATCH, name), *flags]
    return Client(StdioServerParameters(command=PROGRAM, args=arguments), mode=mode)


async def call(client, tool, **arguments):
    """Calls a tool, and returns its texts."""
    result = await client.call_tool(tool, arguments)
    texts = [part.text for part in result.content]
    assert not result.is_error, texts
    return texts


async def refusal(client, tool, **arguments):
    """Calls a tool that must fail, and returns the reason."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result
    return result.content[0].text


async def names(client):
    return [tool.name for tool in (await client.list_tools()).tools]


async def write_and_read(client, word):
    """What a caller that may write does: `word` makes the text its own."""
    assert await names(client) == [*READING, "add"]
    text = f"# Tides of {word}\n\nThe moon pulls the sea of {word} twice a day."
    added = json.loads((await call(client, "add", text=text, source="https://example.org/tides"))[0])
    assert added["status"] == "done", added
    await read(client, word, added["id"])


async def read(client, word, doc_id):
    found = json.loads((await call(client, "search", query=f"moon {word}"))[0])["results"][0]
    assert found["title"] == f"Tides of {word}" and found["url"] == "https://example.org/tides", found
    whole = json.loads((await call(client, "fetch", id=doc_id))[0])
    assert whole["text"].startswith(f"# Tides of {word}"), whole
    assert json.loads((await call(client, "fetch", id=found["id"]))[0])["text"] in whole["text"]
    text, citations = await call(client, "context", query=f"what moves the sea of {word}?")
    assert f"sea of {word}" in text and json.loads(citations)["passages"][0]["marker"] == "[1]", text
    listed = json.loads((await call(client, "list", title=f"Tides of {word}"))[0])
    assert [item["id"] for item in listed["documents"]] == [doc_id], listed
    uris = [str(resource.uri) for resource in (await client.list_resources()).resources]
    assert f"lkr://documents/{doc_id}" in uris, uris
    contents = (await client.read_resource(f"lkr://documents/{doc_id}")).contents
    assert contents[0].text == whole["text"], contents


async def read_only(client):
    """What a caller that may only read is refused."""
    assert await names(client) == READING
    assert "not add" in await refusal(client, "add", text="Basalt is dark.")
    assert "no document" in await refusal(client, "fetch", id="0" * 32)
    assert "query" in await refusal(client, "search")


async def main():
    token = admin()
    writing, reading = key(token), key(token, scope="read")
    for mode in ["auto", "legacy"]:
        for transport in [over_http, over_stdio]:
            where = f"{transport.__name__}_{mode}"
            async with transport(writing, mode) as client:
                await write_and_read(client, f"Ganymede{where.replace('_', '')}")
                revision = client.protocol_version
            for credential in [reading, None]:
                async with transport(credential, mode) as client:
                    await read_only(client)
            print(f"{where}: revision {revision}")
        async with on_a_folder(f"kb-{mode}", mode) as client:
            await write_and_read(client, "Callisto")
            print(f"on_a_folder_{mode}: revision {client.protocol_version}")
        async with on_a_folder(f"kb-{mode}", mode, "--read-only") as client:
            assert await names(client) == READING
            assert "read only" in await refusal(client, "add", text="Basalt is dark.")
            assert "Callisto" in (await call(client, "search", query="moon"))[0]


asyncio.run(main())
