"""A kept OpenID Connect provider for tests, on a free port. It prints its address, and ends with its input."""
import logging
import sys
import warnings

warnings.simplefilter("ignore")
logging.getLogger("werkzeug").setLevel(logging.ERROR)

from oidc_provider_mock import User, run_server_in_thread

users = [
    User(sub="ann-1", claims={"email": "Ann@acme.example", "email_verified": True, "name": "Ann Example"}),
    User(sub="eve-1", claims={"email": "eve@elsewhere.example", "email_verified": True}),
]
with run_server_in_thread(require_nonce=True, user_claims=users) as server:
    print(f"http://localhost:{server.server_port}", flush=True)
    sys.stdin.read()
