"""An MCP server with a login as people write one with FastMCP. It prints the port that it takes."""

import asyncio
import socket

import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions

listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen()
port = listening.getsockname()[1]
login = InMemoryOAuthProvider(
    base_url="http://127.0.0.1:%d" % port,
    client_registration_options=ClientRegistrationOptions(enabled=True),
    revocation_options=RevocationOptions(enabled=True),
)
server = FastMCP("sums", auth=login)


@server.tool(annotations={"readOnlyHint": True})
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


print(port, flush=True)
app = server.http_app(path="/mcp")
asyncio.run(uvicorn.Server(uvicorn.Config(app, log_level="error")).serve(sockets=[listening]))
