"""A program: admission webhooks over HTTPS, which changes pods and refuses ephemeral containers.

`webhook_server.py PORT DIRECTORY` listens on all addresses with `tls.crt` and `tls.key` of the directory.
`/mutate` gives each pod a label, `/validate` refuses every pod that has an ephemeral container of another
image than the pod's first. Nothing but the standard library is needed.
"""

from __future__ import annotations

import base64
import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LABEL = "webhook.example.com/seen"
WARNING = "debugging is written down"


def mutate(pod: dict[str, Any]) -> dict[str, Any]:
    labels = {**pod["metadata"].get("labels", {}), LABEL: "yes"}
    patch = json.dumps([{"op": "add", "path": "/metadata/labels", "value": labels}]).encode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}


def validate(pod: dict[str, Any]) -> dict[str, Any]:
    """Sees the whole pod, also where only its ephemeral containers are written."""
    own = pod["spec"]["containers"][0]["image"]
    for container in pod["spec"].get("ephemeralContainers", []):
        if container["image"] != own:
            message = f"nobody debugs {pod['metadata']['name']} with {container['image']}, ask for {own}"
            return {"allowed": False, "status": {"code": 418, "message": message}}
    return {"allowed": True, "warnings": [WARNING]}


ANSWERS = {"/mutate": mutate, "/validate": validate}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._say(b"ok")

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review["request"]
        answer = ANSWERS[self.path.partition("?")[0]](request["object"])
        self._say(json.dumps({**review, "response": {"uid": request["uid"], **answer}}).encode())

    def _say(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(port: int, directory: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    server = ThreadingHTTPServer(("", port), Handler)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
