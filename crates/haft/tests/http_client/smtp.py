"""A mail server for tests. Arguments: a folder for its certificate, and what it wants: `plain`, or `secure` for STARTTLS and
AUTH before any mail. It prints its port, then one JSON line for each mail that it was given.

Some recipients are special: refused@… is answered 550, later@… 451 the first time, slow@… gets no answer to its first mail."""
import asyncio
import datetime
import email
import email.policy
import ipaddress
import json
import pathlib
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

FOLDER, KIND = pathlib.Path(sys.argv[1]), sys.argv[2]


def signed(name, key, issuer, issuer_key, extensions):
    now = datetime.datetime.now(datetime.timezone.utc)
    named = lambda text: x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])
    built = x509.CertificateBuilder().subject_name(named(name)).issuer_name(named(issuer)).public_key(key.public_key())
    built = built.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
    built = built.not_valid_after(now + datetime.timedelta(days=2))
    for extension in extensions:
        built = built.add_extension(extension, critical=False)
    return built.sign(issuer_key, hashes.SHA256())


def context():
    """What the server shows; whoever trusts `ca.pem` believes it."""
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = signed("tests", ca_key, "tests", ca_key, [x509.BasicConstraints(ca=True, path_length=None)])
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    server = signed("mail", key, "tests", ca_key, [here, x509.BasicConstraints(ca=False, path_length=None)])
    pem = serialization.Encoding.PEM
    (FOLDER / "ca.pem").write_bytes(authority.public_bytes(pem))
    (FOLDER / "server.pem").write_bytes(server.public_bytes(pem))
    plain = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (FOLDER / "key.pem").write_bytes(plain)
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made.load_cert_chain(FOLDER / "server.pem", FOLDER / "key.pem")
    return made


def part(message, kind):
    found = message.get_body((kind,))
    return found.get_content() if found else None


class Mails:
    def __init__(self):
        self.seen = set()

    def first_time(self, address):
        is_new = address not in self.seen
        self.seen.add(address)
        return is_new

    async def handle_RCPT(self, _server, _session, envelope, address, _options):
        if address.startswith("refused@"):
            return "550 5.1.1 nobody is called that here"
        if address.startswith("later@") and self.first_time(address):
            return "451 4.7.1 greylisted, come back"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server, session, envelope):
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        login = session.auth_data.login.decode() if session.auth_data else None
        print(json.dumps({
            "from": envelope.mail_from, "to": envelope.rcpt_tos, "tls": session.ssl is not None, "login": login,
            "headers": [[name, str(value)] for name, value in message.items()], "subject": str(message["Subject"]),
            "id": message["Message-ID"], "text": part(message, "plain"), "html": part(message, "html"),
            "raw": envelope.content.decode("latin-1"),
        }), flush=True)
        if envelope.rcpt_tos[0].startswith("slow@") and self.first_time(envelope.rcpt_tos[0]):
            await asyncio.sleep(60)
        return "250 taken"


def known(_server, _session, _envelope, _mechanism, given):
    is_known = isinstance(given, LoginPassword) and (given.login, given.password) == (b"haft", b"correct horse")
    return AuthResult(success=is_known, handled=False, auth_data=given)


async def main():
    wants = {}
    if KIND == "secure":
        wants = {"tls_context": context(), "require_starttls": True, "authenticator": known, "auth_required": True}
    loop, mails = asyncio.get_running_loop(), Mails()
    server = await loop.create_server(lambda: SMTP(mails, hostname="127.0.0.1", loop=loop, **wants), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    # It ends with whoever started it.
    await loop.run_in_executor(None, sys.stdin.read)


asyncio.run(main())
