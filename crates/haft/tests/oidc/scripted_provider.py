"""An OpenID Connect provider that does what it is told, right or wrong. It prints its address, and ends with its input.

Every provider is a path: /good, and others that are wrong in one way each. `POST /script` says how the next tokens are made.
A code works once, for whoever shows the PKCE verifier and the client's secret."""
import base64
import hashlib
import hmac
import json
import secrets
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

script, codes, counts = {}, {}, {}
never = threading.Event()


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value, size=None):
    return b64(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))


class Keys:
    """The keys of the provider, with new names at each turn."""

    turn = 0

    def renew(self):
        self.turn += 1
        self.rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.ec = ec.generate_private_key(ec.SECP256R1())

    def published(self):
        rsa_key, point = self.rsa.public_key().public_numbers(), self.ec.public_key().public_numbers()
        return {"keys": [
            {"kty": "oct", "kid": "unknown kinds are passed over", "k": "AAAA"},
            {"kty": "RSA", "kid": f"rsa{self.turn}", "use": "sig", "alg": "RS256", "n": number(rsa_key.n), "e": number(rsa_key.e)},
            {"kty": "EC", "kid": f"ec{self.turn}", "crv": "P-256", "x": number(point.x, 32), "y": number(point.y, 32)},
        ]}

    def sign(self, alg, message):
        if alg == "RS256":
            return self.rsa.sign(message, padding.PKCS1v15(), hashes.SHA256())
        if alg == "ES256":
            r, s = utils.decode_dss_signature(self.ec.sign(message, ec.ECDSA(hashes.SHA256())))
            return r.to_bytes(32, "big") + s.to_bytes(32, "big")
        if alg == "HS256":
            public = self.rsa.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
            return hmac.new(public, message, hashlib.sha256).digest()
        return b""


keys, stranger = Keys(), Keys()
keys.renew()
stranger.renew()


def token(issuer, code):
    alg = script.get("alg", "RS256")
    kid = {"RS256": f"rsa{keys.turn}", "ES256": f"ec{keys.turn}"}.get(alg, f"rsa{keys.turn}")
    header = {"alg": alg, "kid": kid, **script.get("header", {})}
    now = int(time.time())
    claims = {"iss": issuer, "aud": "haft", "sub": "ann-1", "exp": now + 300, "iat": now, "nonce": code["nonce"], "email": "ann@acme.example", "email_verified": True}
    claims.update(script.get("claims", {}))
    claims = {name: value for name, value in claims.items() if value is not None}
    for name in script.get("shift", {}):
        claims[name] = now + script["shift"][name]
    signed = f"{b64(json.dumps(header).encode())}.{b64(json.dumps(claims).encode())}"
    signature = (stranger if script.get("stranger") else keys).sign(alg, signed.encode())
    if script.get("tamper"):
        claims["sub"] = "somebody-else"
        signed = f"{b64(json.dumps(header).encode())}.{b64(json.dumps(claims).encode())}"
    return f"{signed}.{b64(signature)}"


class Provider(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, status, value, headers=()):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers:
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass

    def handle_one(self):
        url = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        _, name, *rest = url.path.split("/")
        path, issuer = "/".join(rest), f"http://{self.headers['Host']}/{name}"
        counts[path] = counts.get(path, 0) + 1
        if name == "hang" or script.get("hang") == path:
            never.wait()
        if name == "large" or script.get("large") == path:
            return self.answer(200, b" " * (10 << 20))
        if path == ".well-known/openid-configuration":
            about = {"issuer": issuer, "authorization_endpoint": f"{issuer}/authorize", "token_endpoint": f"{issuer}/token", "jwks_uri": f"{issuer}/keys", "userinfo_endpoint": f"{issuer}/userinfo"}
            if name == "mismatch":
                about["issuer"] = f"http://{self.headers['Host']}/good"
            if name == "script":
                about["authorization_endpoint"] = "javascript:alert(1)"
            return self.answer(200, about)
        if path == "authorize":
            code = secrets.token_urlsafe()
            codes[code] = asked
            back = {"code": code, "state": asked["state"], **script.get("back", {})}
            return self.answer(302, b"", [("Location", f"{asked['redirect_uri']}?{urlencode(back)}")])
        if path == "keys":
            return self.answer(200, keys.published())
        if path == "userinfo":
            return self.answer(200, {"sub": "ann-1", **script.get("userinfo", {})})
        if path == "counts":
            return self.answer(200, counts)
        self.answer(404, {})

    do_GET = handle_one

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if self.path == "/script":
            script.clear()
            script.update(json.loads(body))
            if script.get("renew"):
                keys.renew()
            return self.answer(200, {})
        _, name, path = urlsplit(self.path).path.split("/")
        issuer = f"http://{self.headers['Host']}/{name}"
        if script.get("hang") == path:
            never.wait()
        if script.get("large") == path:
            return self.answer(200, b" " * (10 << 20))
        sent = {name: values[0] for name, values in parse_qs(body).items()}
        code = codes.pop(sent.get("code"), None)
        challenge = b64(hashlib.sha256(sent.get("code_verifier", "").encode()).digest())
        knows_secret = self.headers["Authorization"] == "Basic " + base64.b64encode(b"haft:s%2Fcret%2Bof%2Dhaft").decode()
        if not code or code["code_challenge"] != challenge or code["redirect_uri"] != sent["redirect_uri"] or not knows_secret:
            return self.answer(400, {"error": "invalid_grant"})
        self.answer(200, {"access_token": "opaque", "token_type": "Bearer", "id_token": token(issuer, code)})


server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{server.server_port}", flush=True)
sys.stdin.read()
