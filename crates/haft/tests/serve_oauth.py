"""The official Python client, let in by OAuth. Arguments: the address, and the cookie and CSRF token of somebody who is signed
in there and plays the person at the browser. It prints what it read, and fails unless every step is as it should be."""
import asyncio
import sys
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

URL, COOKIE, CSRF = sys.argv[1:]


class Kept:
    """What a client keeps between two starts."""

    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Browser:
    """Opens the page, and presses the button that lets the program in."""

    came_back = None

    async def open(self, address):
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        async with httpx2.AsyncClient(headers={"Cookie": COOKIE}) as http:
            page = await http.get(address)
            assert page.status_code == 200 and "Let a reader in?" in page.text, page.text
            chosen = {"tenant": "acme", "workspace": "shop", "scopes": asked["scope"].split(), "allow": True}
            sent = await http.post(f"{URL}/api/oauth/consents", json={**asked, **chosen}, headers={"X-CSRF-Token": CSRF})
            assert sent.status_code == 200, sent.text
        self.came_back = parse_qs(urlsplit(sent.json()["to"]).query)

    async def back(self):
        first = {name: values[0] for name, values in self.came_back.items()}
        return AuthorizationCodeResult(code=first["code"], state=first["state"], iss=first["iss"])


async def main():
    browser, kept = Browser(), Kept()
    about = OAuthClientMetadata(client_name="a reader", redirect_uris=["http://127.0.0.1:3999/back"], token_endpoint_auth_method="none")
    auth = OAuthClientProvider(f"{URL}/mcp", about, kept, redirect_handler=browser.open, callback_handler=browser.back)
    async with httpx2.AsyncClient(auth=auth, timeout=60) as http:
        async with Client(streamable_http_client(f"{URL}/mcp", http_client=http)) as client:
            read = await client.call_tool("read_file", {"path": "a.txt"})
            print(read.structured_content["content"], end="")
    assert kept.tokens.refresh_token.startswith("haftr_"), kept.tokens


asyncio.run(asyncio.wait_for(main(), 100))
