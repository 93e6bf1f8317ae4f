"""R-SYS-8: Kubernetes' kubectl explains every field of every kind as with Kubernetes, but for the words."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar
from zlib import crc32

import msgspec
import pytest

from peer import counted
from peer.openapi_facts import level
from peer.server import Server, write_kubeconfig
from podling.model.scheme import RESOURCES, Resource

DOCUMENTS = "/openapi/v3/"
WORDS = re.compile(r"DESCRIPTION:\n.*?(?=\nFIELDS:|\Z)", re.DOTALL)
OWN = re.compile(r"^( *)(container\t<Container>|debugContainerStatuses\t.*)\n(\1 .*\n)*", re.MULTILINE)
"""Fields of earlier designs, with what is in them (R-DBG-1, R-VOL-1)."""


class _Readable(BaseHTTPRequestHandler):
    """Kubernetes' answers, with documents that kubectl can read: see `level`."""

    kubernetes: ClassVar[Server]
    told: ClassVar[dict[tuple[str, str], tuple[int, str, bytes]]]
    """Code, type and body by path and accepted type: each `kubectl` asks for the same again."""

    def do_GET(self) -> None:
        accept = "application/json" if self.path.startswith("/openapi/") else self.headers["Accept"]
        asked = self.path, accept
        if asked not in self.told:
            answer = self.kubernetes.ask("GET", self.path, Accept=accept)
            body = level(answer.body) if self.path.startswith(DOCUMENTS) else answer.body
            made = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.told[asked] = answer.code, answer.headers["Content-Type"], made
        code, content_type, data = self.told[asked]
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def readable(kubernetes: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Reached without TLS."""
    handler = type("Handler", (_Readable,), {"kubernetes": kubernetes, "told": {}})
    with ThreadingHTTPServer((kubernetes.host, 0), handler) as listening:
        Thread(target=listening.serve_forever, daemon=True).start()
        kubeconfig = tmp_path_factory.mktemp("readable") / "kubeconfig"
        server = msgspec.structs.replace(kubernetes, port=listening.server_port, kubeconfig=kubeconfig)
        write_kubeconfig(server)
        kubeconfig.write_text(kubeconfig.read_text().replace("https:", "http:"))
        yield server
        listening.shutdown()


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda one: f"{one.plural}.{one.api_version}")
def test_every_field_is_explained(
    resource: Resource, readable: Server, podling: Server, kubernetes_programs: Path
) -> None:
    def explained(server: Server, *asked: str) -> str:
        command: list[str | Path] = [
            kubernetes_programs / "kubectl",
            "--kubeconfig",
            server.kubeconfig,
            "explain",
            *asked,
        ]
        counted.sent(server.name, "explain", asked[0])
        done = subprocess.run(
            [*command, "--api-version", resource.api_version],
            capture_output=True, text=True, env={"HOME": str(readable.kubeconfig.parent)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return OWN.sub("", WORDS.sub("", done.stdout))

    theirs, ours = (explained(server, resource.plural, "--recursive") for server in (readable, podling))
    assert ours == theirs
    paths = list(fields_in(ours.partition("FIELDS:\n")[2]))
    one = f"{resource.plural}.{paths[crc32(resource.kind.encode()) % len(paths)]}"
    assert brief(explained(podling, one)) == brief(explained(readable, one))


def brief(text: str) -> list[str]:
    """Without what is said of each field below."""
    head, _, fields = text.partition("FIELDS:\n")
    return [head, *(line for line in fields.splitlines() if re.match(r"  \S", line))]


def fields_in(tree: str) -> Iterator[str]:
    """The path of each field of a tree that is indented."""
    above: list[str] = []
    for line in tree.splitlines():
        if found := re.match(r"( +)([^ \t]+)\t", line):
            above = [*above[: len(found[1]) // 2 - 1], found[2]]
            yield ".".join(above)
