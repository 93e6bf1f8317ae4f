"""Runs a command in a new container of a running pod, on one connection (gate ExecEphemeralContainer):

    echo 'ps; exit' | python examples/exec_container.py web shell busybox:1.36 sh

What is on standard input is sent to the command; what the command prints is shown, and its exit code is this
program's. The kubeconfig is that of $KUBECONFIG.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import ssl
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import yaml
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    Event,
    Message,
    Ping,
    RejectConnection,
    RejectData,
    Request,
)

STDIN, STDOUT, ERROR = 0, 1, 3
"""Channels of the subprotocol: the first byte of each message. The container has a terminal, and a terminal
has one output."""


def main(pod: str, name: str, image: str, *command: str) -> int:
    """The command's exit code; 1, with the reason on standard error, when it could not be run."""
    config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    asked = {
        "ephemeralContainerName": name,
        "ephemeralContainerImage": image,
        "command": command,
        "stdin": "true",
        "stdout": "true",
        "tty": "true",
    }
    path = f"/api/v1/namespaces/default/pods/{pod}/exec?{urlencode(asked, doseq=True)}"
    server = urlsplit(cluster["server"])
    with (
        socket.create_connection((server.hostname, server.port or 443)) as plain,
        tls(cluster, user).wrap_socket(plain, server_hostname=server.hostname) as connection,
    ):
        return converse(connection, Request(server.netloc, path, subprotocols=["v4.channel.k8s.io"]))


def converse(connection: ssl.SSLSocket, request: Request) -> int:
    protocol, refusal, message = WSConnection(ConnectionType.CLIENT), b"", b""
    connection.sendall(protocol.send(request))
    for event in received(connection, protocol):
        if isinstance(event, AcceptConnection):
            given = sys.stdin.buffer.read()
            connection.sendall(protocol.send(Message(bytes([STDIN]) + given)))
        elif isinstance(event, RejectConnection):
            sys.stderr.write(f"refused: HTTP {event.status_code}\n")
        elif isinstance(event, RejectData):
            refusal += event.data
            if event.body_finished:
                return exit_code(json.loads(refusal))
        elif isinstance(event, Ping):
            connection.sendall(protocol.send(event.response()))
        elif isinstance(event, BytesMessage):
            message += event.data
            if event.message_finished:
                channel, data, message = message[0], message[1:], b""
                if channel == ERROR:
                    return exit_code(json.loads(data))
                if channel == STDOUT:
                    sys.stdout.buffer.write(data)
                    sys.stdout.flush()
    sys.stderr.write("the connection ended before the command did\n")
    return 1


def received(connection: ssl.SSLSocket, protocol: WSConnection) -> Iterator[Event]:
    while data := connection.recv(65536):
        protocol.receive_data(data)
        yield from protocol.events()


def exit_code(status: dict[str, Any]) -> int:
    """Of the Status that tells how a command ended, or why it was refused."""
    if status["status"] == "Success":
        return 0
    for cause in status.get("details", {}).get("causes", ()):
        if cause["reason"] == "ExitCode":
            return int(cause["message"])
    sys.stderr.write(status["message"] + "\n")
    return 1


def tls(cluster: dict[str, Any], user: dict[str, Any]) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=decoded(cluster, "certificate-authority"))
    with tempfile.NamedTemporaryFile("w") as pem:
        pem.write(decoded(user, "client-certificate") + "\n" + decoded(user, "client-key"))
        pem.flush()
        context.load_cert_chain(pem.name)
    return context


def decoded(section: dict[str, Any], field: str) -> str:
    return base64.b64decode(section[f"{field}-data"]).decode()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
