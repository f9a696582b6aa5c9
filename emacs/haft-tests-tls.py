"""Speaks TLS before a server that speaks none: CERTIFICATE KEY PORT. Prints the port that it listens at."""

import socket
import ssl
import sys
import threading

certificate, key, port = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)


def pass_on(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(client):
    try:
        client = context.wrap_socket(client, server_side=True)
    except (OSError, ssl.SSLError):
        return
    server = socket.create_connection(("127.0.0.1", int(port)))
    threading.Thread(target=pass_on, args=(server, client), daemon=True).start()
    pass_on(client, server)


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
