"""The official Python client. Arguments: how it agrees on the protocol, then the command of the server. It fails unless
every answer is as it should be."""
import asyncio
import os
import sys

import mcp_types as types
from mcp import Client, StdioServerParameters

MODE, COMMAND = sys.argv[1], sys.argv[2:]
shown, heard = [], []


async def fill_in(_context, params):
    shown.append(params.message)
    approve = "refused.txt" not in params.message
    content = {"approve": approve, "message": "" if approve else "not this one"}
    return types.ElicitResult(action="accept", content=content)


async def progress(done, _total, message):
    heard.append((done, message))


async def main():
    server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=dict(os.environ))
    about = types.Implementation(name="sdk", version="1")
    async with Client(server, mode=MODE, elicitation_callback=fill_in, client_info=about) as client:
        expected = "2025-11-25" if MODE == "legacy" else "2026-07-28"
        assert client.protocol_version == expected, client.protocol_version
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["read_file"].output_schema and tools["read_file"].annotations.read_only_hint, tools["read_file"]

        read = await client.call_tool("read_file", {"path": "a.txt"})
        assert not read.is_error and read.structured_content["content"] == "a\n", read
        missing = await client.call_tool("read_file", {"path": "nowhere"})
        assert missing.is_error and missing.content[0].text.startswith("FILE_NOT_FOUND"), missing

        said = await client.call_tool("shell_exec", {"command": "echo one; sleep 0.2; echo two"}, progress_callback=progress)
        assert said.structured_content["stdout"] == "one\ntwo\n", said
        assert "".join(message for _, message in heard) == "one\ntwo\n", heard

        wrote = await client.call_tool("write_file", {"path": "made.txt", "content": "made\n"})
        assert not wrote.is_error and "made.txt" in shown[0], (wrote, shown)
        refused = await client.call_tool("write_file", {"path": "refused.txt", "content": "no\n"})
        assert refused.is_error and "not this one" in refused.content[0].text, refused
        assert len(shown) == 2, shown

        large = await client.call_tool("shell_exec", {"command": "seq 1 80000"})
        whole = await client.read_resource(large.content[1].uri)
        assert "79999\\n80000\\n" in whole.contents[0].text

        many = await asyncio.gather(*(client.call_tool("read_file", {"path": "a.txt"}) for _ in range(50)))
        assert all(one.structured_content["content"] == "a\n" for one in many)


asyncio.run(asyncio.wait_for(main(), 100))
