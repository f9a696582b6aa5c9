"""A client that begins a call and then only waits to be killed. Arguments: the call's input, then the command of the
server. It prints the server's process id once it has been greeted, and reads nothing more."""
import json
import subprocess
import sys

server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def send(message):
    server.stdin.write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())
    server.stdin.flush()


about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "vanishing", "version": "1"}}
send({"id": 1, "method": "initialize", "params": about})
server.stdout.readline()
send({"method": "notifications/initialized"})
arguments = {"name": "shell_exec", "arguments": json.loads(sys.argv[1]), "_meta": {"progressToken": 1}}
send({"id": 2, "method": "tools/call", "params": arguments})
print(server.pid, flush=True)
server.wait()
