"""An MCP server that wants a login, and the authorization server that gives it. It prints the port that it takes. `/control`
takes JSON that says what is to go wrong, and `/counts` tells what came."""

import base64
import hashlib
import json
import secrets
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

lock = threading.Lock()
faults = {"expires_in": 3600}
counts = {"refresh": 0, "register": 0, "revoke": 0, "token": 0, "foreign": 0}
codes, tokens, refreshes, seen = {}, {}, {}, []
schema = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS = [{"name": name, "description": "Does `%s`." % name, "inputSchema": schema, "annotations": {"readOnlyHint": True}}
         for name in ("admin", "tell", "whoami")]


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", **headers):
        body = json.dumps(body).encode() if not isinstance(body, bytes) else body
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass

    def here(self):
        return "http://127.0.0.1:%d" % self.server.server_port

    def text(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()

    def do_GET(self):
        path, query = urlsplit(self.path).path, {k: v[0] for k, v in parse_qs(urlsplit(self.path).query).items()}
        here = self.here()
        if path == "/counts":
            return self.reply(200, {**counts, "seen": seen})
        if path == "/.well-known/oauth-protected-resource/mcp":
            return self.reply(200, {"resource": faults.get("resource") or here + "/mcp",
                                    "authorization_servers": [faults.get("authorization_server") or here]})
        if path == "/.well-known/oauth-authorization-server":
            return self.reply(200, {
                "issuer": faults.get("issuer") or here,
                "authorization_endpoint": here + "/authorize",
                "token_endpoint": faults.get("token_endpoint") or here + "/token",
                "registration_endpoint": here + "/register", "revocation_endpoint": here + "/revoke",
                "code_challenge_methods_supported": faults.get("pkce", ["S256"]),
                "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
                "client_id_metadata_document_supported": faults.get("takes_documents", False),
                "authorization_response_iss_parameter_supported": True})
        if path == "/authorize":
            code = secrets.token_urlsafe(8)
            codes[code] = {**query, "user": query.get("login_as", "nobody")}
            back = {"code": code, "state": query["state"], "iss": faults.get("iss") or here}
            if faults.get("iss") == "":
                del back["iss"]
            return self.reply(302, Location=query["redirect_uri"] + "?" + urlencode(back))
        self.reply(404)

    def do_DELETE(self):
        self.reply(200)

    def do_POST(self):
        path, text = urlsplit(self.path).path, self.text()
        if path == "/control":
            asked = json.loads(text)
            if asked.pop("forget", False):
                tokens.clear()
            faults.update(asked)
            return self.reply(200)
        if path == "/register":
            counts["register"] += 1
            return self.reply(201, {"client_id": "client-%d" % counts["register"], **json.loads(text)})
        form = {k: v[0] for k, v in parse_qs(text).items()} if path in ("/token", "/revoke") else {}
        if path == "/revoke":
            counts["revoke"] += 1
            refreshes.pop(form["token"], None)
            return self.reply(200)
        if path == "/token":
            return self.token(form)
        self.mcp(json.loads(text))

    def token(self, form):
        if faults.get("token") == "hang":
            return time.sleep(60)
        if faults.get("token") == "huge":
            return self.reply(200, b'{"access_token": "' + b"x" * (10 << 20) + b'"}')
        if faults.get("token") == "redirect":
            return self.reply(307, Location=self.here() + "/token")
        if form.get("resource") != self.here() + "/mcp":
            return self.reply(400, {"error": "invalid_target"})
        if form["grant_type"] == "refresh_token":
            with lock:
                counts["refresh"] += 1
                user = refreshes.pop(form["refresh_token"], None)
            # Long enough that whoever else wants one comes meanwhile.
            time.sleep(0.5)
            if user is None or faults.get("refuse_refresh"):
                return self.reply(400, {"error": "invalid_grant"})
            return self.give(user)
        counts["token"] += 1
        code = codes.pop(form["code"], None)
        shown = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if code is None or shown != code["code_challenge"] or form["redirect_uri"] != code["redirect_uri"]:
            return self.reply(400, {"error": "invalid_grant"})
        self.give((code["user"], code.get("scope", "")))

    def give(self, user):
        access, refresh = "access-" + secrets.token_urlsafe(16), "refresh-" + secrets.token_urlsafe(16)
        seen.extend([access, refresh])
        tokens[access], refreshes[refresh] = (user, time.monotonic() + faults["expires_in"]), user
        self.reply(200, {"access_token": access, "token_type": "Bearer", "expires_in": faults["expires_in"],
                         "refresh_token": refresh})

    def mcp(self, request):
        said = self.headers.get("Authorization", "")
        (user, scope), ends = tokens.get(said.removeprefix("Bearer "), ((None, ""), 0))
        if said and user is None:
            counts["foreign"] += 1
        if user is None or ends < time.monotonic() or faults.get("takes_none"):
            challenge = 'Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp", scope="read"'
            where = faults.get("metadata_at") or self.here()
            return self.reply(401, {"error": "invalid_token"}, WWW_Authenticate=challenge % where)
        if "id" not in request:
            return self.reply(202)
        method, params = request["method"], request.get("params") or {}
        answer = {"jsonrpc": "2.0", "id": request["id"]}
        if method == "initialize":
            answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                "serverInfo": {"name": "guarded", "version": "1"}}
        elif method == "tools/list":
            answer["result"] = {"tools": TOOLS}
        elif method == "tools/call":
            if params["name"] == "admin" and "admin" not in scope.split():
                return self.reply(403, {}, WWW_Authenticate='Bearer error="insufficient_scope", scope="admin"')
            text = {"whoami": user, "admin": "admin " + user, "tell": "it came with " + said}[params["name"]]
            answer["result"] = {"content": [{"type": "text", "text": text}]}
        else:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        self.reply(200, answer)


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Server)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
