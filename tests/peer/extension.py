"""An API server behind others: it has a group of its own, says what it was asked and by whom, and misbehaves
where it is told to.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

VERSION = "v1"
RESOURCES = [
    {
        "name": "things",
        "singularName": "thing",
        "namespaced": True,
        "kind": "Thing",
        "verbs": ["create", "get", "list", "watch"],
        "shortNames": ["th"],
    },
    {"name": "things/exec", "singularName": "", "namespaced": True, "kind": "Thing", "verbs": ["get"]},
]
TOLD = ("Accept", "Accept-Encoding", "User-Agent", "X-Forwarded-For", "X-Forwarded-Uri", "Authorization")
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Extension:
    """Its behaviour, which may change while it runs. `group` is the one it has, `says` what it says of it in
    discovery, `status` how it answers discovery; without `aggregates` it knows the older form alone."""

    def __init__(self, group: str, *, aggregates: bool = True) -> None:
        self.group = group
        self.aggregates = aggregates
        self.port = 0
        self.status = 200
        self.hangs = False
        self.go_on = threading.Event()
        self.ending = threading.Event()
        self.discovered: list[str] = []
        """The paths and users of discovery."""

    @property
    def place(self) -> str:
        return f"/apis/{self.group}/{VERSION}"


def _aggregated(group: str) -> dict[str, Any]:
    resource = {
        "resource": "things",
        "responseKind": {"group": group, "version": VERSION, "kind": "Thing"},
        "scope": "Namespaced",
        "singularResource": "thing",
        "verbs": ["create", "get", "list", "watch"],
        "shortNames": ["th"],
    }
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": group},
                "versions": [{"version": VERSION, "resources": [resource], "freshness": "Current"}],
            }
        ],
    }


def _older(place: str) -> dict[str, Any]:
    """OpenAPI v2, with a path that is not its own, a name that Kubernetes has, too, and what nothing uses."""
    meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    thing = {
        "description": "A thing",
        "type": "object",
        "properties": {"metadata": {"$ref": f"#/definitions/{meta}"}, "$ref": {"type": "string"}},
    }
    answered = {"200": {"description": "OK", "schema": {"$ref": "#/definitions/test.Thing"}}}
    parameters = [{"$ref": "#/parameters/pretty-test"}]
    asked = {"get": {"operationId": "list", "parameters": parameters, "responses": answered}}
    return {
        "swagger": "2.0",
        "info": {"title": "extension", "version": "v1"},
        "paths": {f"{place}/things": asked, "/apis/other.test/v1/things": asked, f"{place}x/things": asked},
        "definitions": {
            "test.Thing": thing,
            "test.Unused": {"type": "object"},
            meta: {"description": "of another form", "type": "object"},
        },
        "parameters": {"pretty-test": {"name": "pretty", "in": "query", "type": "string"}},
    }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    tls: ClassVar[ssl.SSLContext]
    extension: ClassVar[Extension]

    def log_message(self, format: str, *args: Any) -> None: ...

    def setup(self) -> None:
        try:
            self.request = self.tls.wrap_socket(self.request, server_side=True)
        except OSError:
            self.request.close()
        super().setup()

    def handle(self) -> None:
        with suppress(OSError, ValueError):
            super().handle()

    def finish(self) -> None:
        with suppress(OSError, ValueError):
            super().finish()
        self.request.close()

    def _say(self, code: int, body: Any, content_type: str = "application/json", **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def _piece(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _any(self) -> None:
        one = self.extension
        path, _, query = self.path.partition("?")
        length = self.headers.get("Content-Length")
        sent = self.rfile.read(int(length)) if length else b""
        user = self.headers.get("X-Remote-User", "")
        if path in (one.place, "/apis", "/openapi/v2") or path.startswith("/openapi/v3"):
            one.discovered.append(f"{path} {user}")
            if one.hangs:
                one.ending.wait(60)
                return
            self._discovery(path)
            return
        last = path.rpartition("/")[2]
        if last == "hang":
            one.ending.wait(60)
        elif last == "close":
            self.close_connection = True
        elif last == "partly":
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b'{"a":')
            self.close_connection = True
        elif last == "redirect":
            self._say(302, b"", "text/plain", Location="https://127.0.0.1:1/elsewhere")
        elif last.startswith("status-"):
            self._say(int(last.removeprefix("status-")), b"as told\n", "text/plain", X_Own="kept")
        elif last == "exec" and "Upgrade" in self.headers:
            self._upgrade()
        elif "watch=true" in query:
            self._watch()
        else:
            self._echo(path, query, sent)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _any

    def _discovery(self, path: str) -> None:
        one = self.extension
        if one.status != 200:
            self._say(one.status, b"not now\n", "text/plain")
        elif path == one.place:
            listed = {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": f"{one.group}/{VERSION}",
                "resources": RESOURCES,
            }
            self._say(200, listed)
        elif path == "/apis" and one.aggregates and "APIGroupDiscoveryList" in self.headers.get("Accept", ""):
            self._say(200, _aggregated(one.group), AGGREGATED)
        elif path == "/apis":
            version = {"groupVersion": f"{one.group}/{VERSION}", "version": VERSION}
            groups = [{"name": one.group, "versions": [version], "preferredVersion": version}]
            self._say(200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        elif path == "/openapi/v3":
            name = one.place.lstrip("/")
            self._say(200, {"paths": {name: {"serverRelativeURL": f"/openapi/v3/{name}?hash=A"}}})
        elif path.startswith("/openapi/v3/"):
            info = {"title": "extension", "version": "v1"}
            self._say(200, {"openapi": "3.0.0", "info": info, "paths": {f"{one.place}/things": {}}})
        else:
            self._say(200, _older(one.place))

    def _who(self) -> dict[str, Any]:
        shown = self.request.getpeercert() or {}
        names = dict(pair for part in shown.get("subject", ()) for pair in part)
        told = {
            name: self.headers.get_all(name)
            for name in dict.fromkeys(self.headers)
            if name in TOLD or name.lower().startswith(("x-remote-", "impersonate"))
        }
        return {"certificate": names.get("commonName", ""), "headers": dict(sorted(told.items()))}

    def _echo(self, path: str, query: str, sent: bytes) -> None:
        echo = {
            "kind": "Thing",
            "apiVersion": f"{self.extension.group}/{VERSION}",
            "method": self.command,
            "path": path,
            "query": query,
            "body": sent.decode(),
            **self._who(),
        }
        self._say(200, echo, X_Own="kept")

    def _watch(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._piece(b'{"type":"ADDED","object":{"kind":"Thing","n":1}}\n')
        self.extension.go_on.wait(30)
        self._piece(b'{"type":"ADDED","object":{"kind":"Thing","n":2}}\n')
        self._piece(b"")

    def _upgrade(self) -> None:
        self.send_response(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", self.headers["Upgrade"])
        self.send_header("X-Who", json.dumps(self._who()["headers"].get("X-Remote-User")))
        self.end_headers()
        while line := self.rfile.readline():
            self.wfile.write(line.upper())
        self.close_connection = True


@contextmanager
def serving(
    extension: Extension, host: str, certificate: Path, key: Path, proxy_ca: Path
) -> Iterator[Extension]:
    """While the block runs, on a port of `host`. Clients must show a certificate of `proxy_ca`."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(proxy_ca))
    tls.load_cert_chain(certificate, key)
    tls.verify_mode = ssl.CERT_OPTIONAL
    handler = type("Handler", (_Handler,), {"tls": tls, "extension": extension})
    with ThreadingHTTPServer((host, 0), handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        extension.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield extension
        finally:
            extension.ending.set()
            extension.go_on.set()
            server.shutdown()
            thread.join()
