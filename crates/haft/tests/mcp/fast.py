"""The `fastmcp` client. Arguments: how it agrees on the protocol, then the command of the server. It fails unless every
answer is as it should be."""
import asyncio
import os
import sys

import mcp_types as types
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError

MODE, COMMAND = sys.argv[1], sys.argv[2:]
shown, heard = [], []


async def fill_in(message, response_type, _params, _context):
    shown.append(message)
    if "refused.txt" in message:
        return response_type(approve=False, message="not this one")
    return response_type(approve=True)


async def progress(done, _total, message):
    heard.append((done, message))


async def main():
    server = StdioTransport(COMMAND[0], COMMAND[1:], env=dict(os.environ), keep_alive=False)
    about = types.Implementation(name="fast", version="1")
    async with Client(server, mode=MODE, elicitation_handler=fill_in, client_info=about) as client:
        tools = {tool.name for tool in await client.list_tools()}
        assert {"read_file", "shell_exec", "wait_call"} <= tools, tools

        read = await client.call_tool("read_file", {"path": "a.txt"})
        assert read.structured_content["content"] == "a\n", read
        try:
            await client.call_tool("read_file", {"path": "nowhere"})
            raise AssertionError("a missing file was read")
        except ToolError as error:
            assert str(error).startswith("FILE_NOT_FOUND"), error

        said = await client.call_tool("shell_exec", {"command": "echo one; sleep 0.2; echo two"}, progress_handler=progress)
        assert said.structured_content["stdout"] == "one\ntwo\n", said
        assert "".join(message for _, message in heard) == "one\ntwo\n", heard

        wrote = await client.call_tool("write_file", {"path": "made.txt", "content": "made\n"})
        assert wrote.structured_content["created"] and "made.txt" in shown[0], (wrote, shown)
        try:
            await client.call_tool("write_file", {"path": "refused.txt", "content": "no\n"})
            raise AssertionError("a refused file was written")
        except ToolError as error:
            assert "not this one" in str(error), error
        assert len(shown) == 2, shown


asyncio.run(asyncio.wait_for(main(), 100))
