"""The official Python client, several callers of `haft serve` at once. Arguments: how it agrees on the protocol, the address,
a key that may decide, a key that may only call, a key of another tenant. It fails unless every answer is as it should be."""
import asyncio
import sys

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

MODE, URL, DECIDER, RUNNER, OTHER = sys.argv[1:]
shown = []


async def fill_in(_context, params):
    shown.append(params.message)
    return types.ElicitResult(action="accept", content={"approve": True, "message": ""})


def client(key, **more):
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60)
    about = types.Implementation(name="sdk", version="1")
    return Client(streamable_http_client(f"{URL}/mcp", http_client=http), mode=MODE, client_info=about, **more)


async def names(caller):
    return {tool.name for tool in (await caller.list_tools()).tools}


async def main():
    async with client(DECIDER, elicitation_callback=fill_in) as decider, client(RUNNER) as runner, client(OTHER) as other:
        ours, theirs = await names(decider), await names(other)
        assert {"read_file", "write_file", "greet"} <= ours, ours
        assert not {"read_file", "greet"} & theirs, theirs

        many = [caller.call_tool("read_file", {"path": "a.txt"}) for caller in (decider, runner) for _ in range(20)]
        for read in await asyncio.gather(*many):
            assert read.structured_content["content"] == "a\n", read
        try:
            stranger = await other.call_tool("greet", {"q": "x"})
            raise AssertionError(f"another tenant's tool was called: {stranger}")
        except MCPError as error:
            assert "there is no tool" in str(error), error

        wrote = await decider.call_tool("write_file", {"path": "made.txt", "content": "made\n"})
        assert not wrote.is_error and "made.txt" in shown[0], (wrote, shown)

        waiting = asyncio.create_task(runner.call_tool("write_file", {"path": "asked.txt", "content": "asked\n"}))
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {DECIDER}"}) as http:
            while not (open_ones := (await http.get(f"{URL}/api/approvals")).json()["items"]):
                await asyncio.sleep(0.05)
            answered = await http.post(f"{URL}/api/approvals/{open_ones[0]['id']}/approve", json={})
            assert answered.status_code == 200, answered.text
        wrote = await waiting
        assert not wrote.is_error, wrote


asyncio.run(asyncio.wait_for(main(), 100))
