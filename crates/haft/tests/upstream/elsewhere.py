"""An MCP server over HTTP that wants a token and answers as its first argument says: at once, as events, or
with what nobody should be told. One that keeps sessions says in its own way that it does not know one. The second
argument is a port that it had before."""

import json
import sys
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

how = sys.argv[1]
port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
sessions = set()
schema = {"type": "object", "properties": {"text": {"type": "string"}}}


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply(405)

    def do_DELETE(self):
        self.reply(200)

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if how == "tells":
            told = "nobody is known by %s" % self.headers["Authorization"].removeprefix("Bearer ")
            return self.reply(500, told.encode(), kind="text/plain")
        if self.headers["Authorization"] != "Bearer good-token":
            return self.reply(401, WWW_Authenticate="Bearer")
        if "id" not in request:
            return self.reply(202)
        if how == "lost" and request["method"] == "tools/call":
            return self.connection.close()
        answer = {"jsonrpc": "2.0", "id": request["id"]}
        params = request.get("params") or {}
        if how.startswith("session") and request["method"] not in ("initialize", "server/discover"):
            if self.headers["Mcp-Session-Id"] not in sessions:
                return self.unknown_session()
        if how.startswith("refuses") and request["method"] == "tools/call":
            status, events = (500, False) if how.endswith("500") else (200, how.endswith("events"))
            body = json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": "the disk is full"}})
            if events:
                return self.reply(status, ("event: message\ndata: %s\n\n" % body).encode(), "text/event-stream")
            return self.reply(status, body.encode())
        if request["method"] == "initialize":
            answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                "serverInfo": {"name": "http", "version": "1"}}
        elif request["method"] == "tools/list":
            answer["result"] = {"tools": [{"name": "echo", "description": "Says it again.", "inputSchema": schema}]}
        elif request["method"] == "tools/call":
            answer["result"] = {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
        else:
            return self.reply(400, b"Bad Request: no session", kind="text/plain")
        body = json.dumps(answer)
        if how == "events":
            return self.reply(200, ("event: message\ndata: %s\n\n" % body).encode(), "text/event-stream",
                              Mcp_Session_Id="s1")
        if how.startswith("session") and request["method"] == "initialize":
            session = uuid.uuid4().hex
            sessions.add(session)
            return self.reply(200, body.encode(), Mcp_Session_Id=session)
        self.reply(200, body.encode())

    def unknown_session(self):
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "No valid session ID provided"}}
        kind = how.removeprefix("session ")
        if kind == "text":
            return self.reply(400, b"Bad Request: no session", kind="text/plain")
        self.reply(int(kind), json.dumps(error).encode())


server = ThreadingHTTPServer(("127.0.0.1", port), Server)
print(server.server_port, flush=True)
server.serve_forever()
