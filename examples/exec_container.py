"""Runs a command in a new container of a running pod, on one connection (gate ExecEphemeralContainer):

    echo 'ps; exit' | python examples/exec_container.py web shell busybox:1.36 sh

What is on standard input is sent to the command; what the command prints is shown, and its exit code is this
program's. The kubeconfig is that of $KUBECONFIG.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import yaml

STDIN, STDOUT, STDERR, ERROR = 0, 1, 2, 3


async def main(pod: str, name: str, image: str, *command: str) -> int:
    """The command's exit code; 1, with the reason on standard error, when it could not be run."""
    config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    asked = {
        "ephemeralContainerName": name,
        "ephemeralContainerImage": image,
        "command": command,
        "stdin": "true",
        "stdout": "true",
        "stderr": "true",
    }
    path = f"/api/v1/namespaces/default/pods/{pod}/exec?{urlencode(asked, doseq=True)}"
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(
            cluster["server"] + path, ssl=tls(cluster, user), protocols=("v4.channel.k8s.io",)
        ) as socket,
    ):
        await socket.send_bytes(bytes([STDIN]) + sys.stdin.buffer.read())
        async for message in socket:
            channel, data = message.data[0], message.data[1:]
            if channel in (STDOUT, STDERR):
                output = sys.stdout if channel == STDOUT else sys.stderr
                output.buffer.write(data)
                output.flush()
            elif channel == ERROR:
                return exit_code(json.loads(data))
    sys.stderr.write("the connection ended before the command did\n")
    return 1


def exit_code(status: dict[str, Any]) -> int:
    """Of the Status that tells how a command ended."""
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
    try:
        sys.exit(asyncio.run(main(*sys.argv[1:])))
    except aiohttp.WSServerHandshakeError as refused:
        sys.exit(f"refused: HTTP {refused.status}")
