"""Reading and writing kubeconfig files (v1 Config): which server, whom to trust, who we are."""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from podling.client.https import HttpsTransport


class KubeconfigError(Exception):
    """The file cannot be used; the message names it and the field."""


@dataclass(frozen=True, slots=True)
class Access:
    """What one context of a kubeconfig says. Certificates and keys are PEM bytes."""

    server: str
    certificate_authority: bytes
    client_certificate: bytes = b""
    client_key: bytes = b""
    token: str = ""
    namespace: str = "default"

    def transport(self) -> HttpsTransport:
        return HttpsTransport(self.server, self._tls(), token=self.token)

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.certificate_authority.decode() or None)
        if self.client_certificate:
            # The ssl module loads a client certificate from files only.
            with tempfile.NamedTemporaryFile() as pem:
                pem.write(self.client_certificate + b"\n" + self.client_key)
                pem.flush()
                context.load_cert_chain(pem.name)
        return context


def write(path: Path, name: str, access: Access) -> None:
    """Write a kubeconfig with one context called `name`; only its owner may read it."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "server": access.server,
                    "certificate-authority-data": _encoded(access.certificate_authority),
                },
            }
        ],
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate-data": _encoded(access.client_certificate),
                    "client-key-data": _encoded(access.client_key),
                },
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    partial = path.with_name(path.name + ".new")
    partial.unlink(missing_ok=True)
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        yaml.safe_dump(document, file, sort_keys=False)
    partial.replace(path)


def read(path: Path, context: str = "") -> Access:
    """What `context` of the file says, or its current context. Raises KubeconfigError."""
    try:
        document = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise KubeconfigError(f"{path}: {error}") from error
    if not isinstance(document, dict):
        raise KubeconfigError(f"{path}: not a kubeconfig")
    chosen = context or document.get("current-context", "")
    selected = _named(path, document, "contexts", "context", chosen)
    cluster = _named(path, document, "clusters", "cluster", selected.get("cluster", ""))
    user = _named(path, document, "users", "user", selected.get("user", ""))
    return Access(
        server=cluster.get("server", ""),
        certificate_authority=_pem(path, cluster, "certificate-authority"),
        client_certificate=_pem(path, user, "client-certificate"),
        client_key=_pem(path, user, "client-key"),
        token=user.get("token", ""),
        namespace=selected.get("namespace") or "default",
    )


def _named(path: Path, document: dict[str, Any], section: str, field: str, name: str) -> dict[str, Any]:
    entries: Iterable[Any] = document.get(section) or ()
    for entry in entries:
        if isinstance(entry, dict) and entry.get("name") == name:
            return entry.get(field) or {}
    raise KubeconfigError(f'{path}: {section} has no entry named "{name}"')


def _pem(path: Path, section: dict[str, Any], field: str) -> bytes:
    """A PEM given inline (`FIELD-data`) or as a file next to the kubeconfig."""
    try:
        if data := section.get(f"{field}-data"):
            return base64.b64decode(data, validate=True)
        if file := section.get(field):
            return (path.parent / str(file)).read_bytes()
    except (ValueError, OSError) as error:
        raise KubeconfigError(f"{path}: {field}: {error}") from error
    return b""


def _encoded(pem: bytes) -> str:
    return base64.b64encode(pem).decode()
