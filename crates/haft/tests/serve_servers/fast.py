"""An MCP server over HTTP as people write one with FastMCP. It prints the port that it takes."""

import asyncio
import socket

import uvicorn
from fastmcp import FastMCP

server = FastMCP("sums")


@server.tool(annotations={"readOnlyHint": True})
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen()
print(listening.getsockname()[1], flush=True)
app = server.http_app(path="/mcp")
asyncio.run(uvicorn.Server(uvicorn.Config(app, log_level="error")).serve(sockets=[listening]))
