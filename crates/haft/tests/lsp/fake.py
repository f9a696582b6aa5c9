"""A language server that does as its `init_options` say: well, or in one of the ways in which servers go wrong."""

import json
import os
import sys
import threading
import time

documents, events, options, answers = {}, [], {}, {}
loading = True
out = threading.Lock()


def send(message):
    body = json.dumps(message).encode()
    with out:
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        sys.stdout.buffer.flush()


def receive():
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        name, value = line.split(b":", 1)
        if name.lower() == b"content-length":
            length = int(value)
    return json.loads(sys.stdin.buffer.read(length)) if length else None


def note(method, params):
    send({"jsonrpc": "2.0", "method": method, "params": params})


def reply(request, result):
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def width(text):
    encoding = {"utf-8": "utf-8", "utf-32": "utf-32-le"}.get(options.get("encoding"), "utf-16-le")
    return len(text.encode(encoding)) // {"utf-8": 1, "utf-32-le": 4, "utf-16-le": 2}[encoding]


def words(uri, word):
    """The ranges of a word in a document."""
    found = []
    for number, line in enumerate(documents[uri]["text"].split("\n")):
        at = line.find(word)
        while at >= 0:
            start = width(line[:at])
            end = {"line": number, "character": start + width(word)}
            found.append({"start": {"line": number, "character": start}, "end": end})
            at = line.find(word, at + 1)
    return found


def wrong(uri):
    return [{"range": r, "severity": 2, "code": 7, "source": "fake", "message": "bad"} for r in words(uri, "bad")]


def publish(uri):
    if not options.get("pull") and not options.get("mute"):
        note("textDocument/publishDiagnostics", {"uri": uri, "version": documents[uri]["version"], "diagnostics": wrong(uri)})


def progress(kind, **more):
    note("$/progress", {"token": 1, "value": {"kind": kind, **more}})


def loaded():
    global loading
    loading = False
    progress("end")


def initialize(request):
    options.update(request["params"].get("initializationOptions") or {})
    mode = options.get("mode")
    if mode == "refuses to begin":
        print("fake: cannot begin", file=sys.stderr, flush=True)
        os._exit(3)
    if mode == "never begins":
        return
    # The folder of the workspace is the current one.
    while mode == "begins when told" and not os.path.exists("begin"):
        time.sleep(0.01)
    if mode == "flood":
        for number in range(200_000):
            print("noise", number, file=sys.stderr)
        sys.stderr.flush()
    can = {"textDocumentSync": {"openClose": True, "change": 1, "save": True}}
    can |= {f"{name}Provider": True for name in ("hover", "definition", "references", "documentSymbol")}
    can |= {"hoverProvider": False} if mode == "cannot" else {}
    can |= {"positionEncoding": options["encoding"]} if "encoding" in options else {}
    can |= {"diagnosticProvider": {"identifier": "x"}} if options.get("pull") else {}
    reply(request, {"capabilities": can, "serverInfo": {"name": "fake", "version": "1"}})


def state():
    return json.dumps({"documents": documents, "events": events, "answers": answers})


def hover(request):
    mode = options.get("mode")
    if mode == "crashes":
        print("fake: I crash", file=sys.stderr, flush=True)
        os._exit(7)
    if mode == "crashes once":
        mark = os.path.join(os.environ["CARGO_TARGET_DIR"], "mark")
        if not os.path.exists(mark):
            os.makedirs(os.path.dirname(mark), exist_ok=True)
            open(mark, "w").close()
            os._exit(7)
    raw = {"garbled": b"hello there\n", "no json": b"Content-Length: 3\r\n\r\n{x}", "huge": b"Content-Length: 99999999999\r\n\r\n"}
    if mode in raw:
        sys.stdout.buffer.write(raw[mode])
        return sys.stdout.buffer.flush()
    if mode == "grows":
        taken = bytearray(os.urandom(1 << 20) * 600)
        threading.Event().wait(60)
    if mode == "silent" or mode == "slow" or (mode == "loads until told" and loading):
        return
    if documents[request["params"]["textDocument"]["uri"]]["text"].strip() == "unknown":
        return reply(request, None)
    if mode == "lies":
        return reply(request, {"contents": 5})
    if mode == "asks":
        for number, (method, params) in enumerate(
            [
                ("workspace/applyEdit", {"edit": {"changes": {}}}),
                ("workspace/configuration", {"items": [{"section": "fake.a"}]}),
                ("window/workDoneProgress/create", {"token": 9}),
                ("client/registerCapability", {"registrations": []}),
                ("made/up", {}),
            ]
        ):
            send({"jsonrpc": "2.0", "id": f"q{number}", "method": method, "params": params})
        while len(answers) < 5:
            take(receive())
    reply(request, {"contents": {"kind": "plaintext", "value": state()}})


def places(request):
    uri = request["params"]["textDocument"]["uri"]
    folder = uri.rsplit("/", 1)[0]
    spot = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}}
    if options.get("mode") == "outside":
        for other in ("file:///etc/passwd", "made:up", folder + "/leads-out.fake", folder + "/gone.fake", folder + "/.env"):
            yield {"uri": other, "range": spot}
    if options.get("mode") in ("loads", "loads until told") and loading:
        return
    for span in words(uri, "word"):
        yield {"uri": uri, "range": span}


def take(message):
    method, params = message.get("method"), message.get("params") or {}
    uri = params.get("textDocument", {}).get("uri")
    if method is None:
        answers[message["id"]] = message.get("result", message.get("error"))
    elif method == "initialize":
        initialize(message)
    elif method == "initialized" and "status" in options:
        note("experimental/serverStatus", options["status"])
    elif method == "initialized" and options.get("mode") in ("loads", "loads for ever", "loads until told"):
        progress("begin", title="Reading", percentage=0)
        progress("report", percentage=63)
        if options["mode"] == "loads":
            threading.Timer(0.7, loaded).start()
    elif method == "textDocument/didOpen":
        documents[uri] = {"version": params["textDocument"]["version"], "text": params["textDocument"]["text"]}
        publish(uri)
    elif method == "textDocument/didChange":
        documents[uri] = {"version": params["textDocument"]["version"], "text": params["contentChanges"][-1]["text"]}
        publish(uri)
    elif method == "textDocument/didClose":
        documents.pop(uri)
    elif method == "workspace/didChangeWatchedFiles":
        events.extend([change["uri"].rsplit("/", 1)[1], change["type"]] for change in params["changes"])
        if options.get("mode") == "loads until told" and ["loaded.fake", 1] in events:
            loaded()
    elif method == "$/cancelRequest" and options.get("mode") == "slow":
        send({"jsonrpc": "2.0", "id": params["id"], "error": {"code": -32800, "message": "cancelled"}})
    elif method == "textDocument/hover":
        hover(message)
    elif method == "textDocument/definition" and options.get("mode") == "lies":
        send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}})
    elif method in ("textDocument/definition", "textDocument/references"):
        reply(message, list(places(message)))
    elif method == "textDocument/documentSymbol" and options.pop("busy", False):
        pass
    elif method == "textDocument/documentSymbol":
        reply(message, [{"name": "word", "kind": 12, "range": r, "selectionRange": r} for r in words(uri, "word")])
    elif method == "textDocument/diagnostic":
        reply(message, {"kind": "full", "items": wrong(uri)})
    elif method == "shutdown":
        reply(message, None)
    elif method == "exit":
        os._exit(0)


while message := receive():
    take(message)
