"""An issuer of ID tokens and an API server behind one port of loopback, over TLS; and kubeconfigs whose user
logs in by `oidc`.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from podling.machine.pki import Authority


def token(end: float, name: str = "ada") -> str:
    """A JWT that nobody here verifies."""
    parts = ({"alg": "none"}, {"exp": int(end), "sub": name})
    said = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join([*said, "c2ln"])


@dataclass
class Issuer:
    """`answers` are those of its token endpoint; `asked` are method, path, `Authorization` and body of each
    request."""

    directory: Path
    answers: tuple[int, Any] = (200, {})
    refused: str = ""
    port: int = 0
    authority: str = ""
    asked: list[tuple[str, str, str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def kubeconfig(self, config: Mapping[str, str], **user: Any) -> Path:
        told = {
            "idp-issuer-url": self.url,
            "idp-certificate-authority-data": self.authority,
            "client-id": "podling",
            "client-secret": "a b",
            **config,
        }
        provider = {"name": "oidc", "config": {key: value for key, value in told.items() if value}}
        cluster = {"server": self.url, "certificate-authority-data": self.authority}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [
                {"name": "other", "user": {}},
                {"name": "u", "user": {"auth-provider": provider, **user}},
            ],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        file = self.directory / "config"
        file.write_text(yaml.safe_dump(document))
        file.chmod(0o640)
        return file

    def kept(self, file: Path) -> dict[str, str]:
        """What the kubeconfig has of the login now."""
        config: dict[str, str] = yaml.safe_load(file.read_text())["users"][1]["user"]["auth-provider"][
            "config"
        ]
        return config

    @contextmanager
    def running(self) -> Iterator[Issuer]:
        pki = Authority(self.directory / "pki", datetime.now(UTC))
        pair = pki.server("server", "server", ["127.0.0.1"])
        self.authority = base64.b64encode(pki.ca.certificate.read_bytes()).decode()
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer()

            def do_POST(self) -> None:
                self._answer()

            def log_message(self, *_: Any) -> None: ...

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                shown = self.headers.get("Authorization") or ""
                issuer.asked.append((self.command, self.path, shown, body))
                code, said = 200, json.dumps({"token_endpoint": f"{issuer.url}/token"})
                if self.path == "/token":
                    code, answer = issuer.answers
                    said = answer if isinstance(answer, str) else json.dumps(answer)
                elif self.path == "/api":
                    code, said = (401, "{}") if shown == issuer.refused else (200, "{}")
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said.encode())

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = server.server_address[1]
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(pair.certificate, pair.key)
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
