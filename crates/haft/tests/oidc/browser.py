"""Somebody at a real browser, by keyboard: opens the page of a device, signs in with the provider, and lets the device in.
Arguments: the address of that page. It prints what the last page says, and fails unless every step is as it should be."""
import asyncio
import json
import subprocess
import sys
import tempfile
import urllib.request

import websockets

PAGE = sys.argv[1]
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-port=0"]


class Tab:
    """The one page of the browser."""

    asked = 0

    def __init__(self, socket):
        self.socket = socket

    async def call(self, method, **params):
        self.asked += 1
        await self.socket.send(json.dumps({"id": self.asked, "method": method, "params": params}))
        while True:
            said = json.loads(await self.socket.recv())
            if said.get("id") == self.asked:
                return said.get("result", {})

    async def value(self, expression):
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return found.get("result", {}).get("value")

    async def until(self, expression):
        """Waits for a page on which this holds."""
        while not await self.value(f"document.readyState === 'complete' && Boolean({expression})"):
            await asyncio.sleep(0.02)

    async def press(self, key, code, text=""):
        for kind in ("keyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text)

    async def tab_to(self, selector):
        """Moves by the Tab key alone, as far as this."""
        for _ in range(30):
            if await self.value(f"document.activeElement.matches({json.dumps(selector)})"):
                return
            await self.press("Tab", 9)
        raise AssertionError(f"{selector} is not reached by keyboard")

    async def enter(self, selector):
        await self.tab_to(selector)
        await self.press("Enter", 13, "\r")


async def main(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as listed:
        found = next(page for page in json.load(listed) if page["type"] == "page")
    async with websockets.connect(found["webSocketDebuggerUrl"], max_size=None) as socket:
        tab = Tab(socket)
        await tab.call("Page.navigate", url=PAGE)
        await tab.until("document.title === 'Sign in to haft'")
        await tab.enter("a.button")
        await tab.until("document.querySelector('input[name=sub]')")
        await tab.tab_to("input[name=sub]")
        await tab.call("Input.insertText", text="ann-1")
        await tab.press("Enter", 13, "\r")
        await tab.until("document.querySelector('#consent')")
        assert await tab.value("location.href") == PAGE, await tab.value("location.href")
        assert await tab.value("localStorage.getItem('csrf').length") == 43
        assert await tab.value("document.cookie") == "", "no script reads a cookie"
        await tab.enter("button[value=yes]")
        await tab.until("document.title === 'The device is let in'")
        print(await tab.value("document.querySelector('h1').textContent"))


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
    browser = subprocess.Popen(["chromium", *FLAGS, f"--user-data-dir={profile}", "about:blank"], stderr=subprocess.PIPE, text=True)
    try:
        listening = next(line for line in browser.stderr if "DevTools listening on" in line)
        asyncio.run(asyncio.wait_for(main(listening.split("127.0.0.1:")[1].split("/")[0]), 60))
    finally:
        browser.kill()
        browser.wait()
