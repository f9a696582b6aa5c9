"""An MCP server over HTTP that wants a token and answers as its first argument says: at once, as events, or
with what nobody should be told."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

how = sys.argv[1]
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
        self.reply(200, body.encode())


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
print(server.server_port, flush=True)
server.serve_forever()
