"""Reading and writing kubeconfig files (v1 Config): which server, whom to trust, who we are.

What kubectl refuses is refused, and so is what podling cannot do: by the name of its field, before anything
is asked of a server. Relative paths start at the file's directory.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from podling.client.https import HttpsTransport, Wire
from podling.client.kubeconfig_entries import Cluster, Context, User
from podling.client.kubeconfig_login import impersonation, login_of, pair_of
from podling.client.kubeconfig_values import FieldError, header_value, http_url, pem
from podling.client.login import Login
from podling.client.tls import Pair, Trust, client_tls, content
from podling.model.time import Clock, SystemClock

T = TypeVar("T")

_CLOCK = SystemClock()


class KubeconfigError(Exception):
    """The file cannot be used; the message names it and the field."""


class Access(msgspec.Struct, frozen=True):
    """What one context of a kubeconfig says. Certificates and keys are PEM, as they were when it was read;
    what requests show is of `login`, which sees them change."""

    server: str
    certificate_authority: bytes
    client_certificate: bytes
    client_key: bytes
    login: Login
    wire: Wire
    namespace: str = "default"

    def transport(self) -> HttpsTransport:
        return HttpsTransport(self.server, self.login, self.wire)


def write(
    path: Path,
    name: str,
    server: str,
    *,
    certificate_authority: bytes,
    client_certificate: bytes,
    client_key: bytes,
) -> None:
    """Write a kubeconfig with one context called `name`, of PEMs; only its owner may read it."""
    cluster = {"server": server, "certificate-authority-data": _encoded(certificate_authority)}
    user = {"client-certificate-data": _encoded(client_certificate), "client-key-data": _encoded(client_key)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    partial = path.with_name(path.name + ".new")
    partial.unlink(missing_ok=True)
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        yaml.safe_dump(document, file, sort_keys=False)
    partial.replace(path)


def read(path: Path, context: str = "", *, clock: Clock = _CLOCK) -> Access:
    """What `context` of the file says, or its current context. Raises KubeconfigError."""
    try:
        document = yaml.safe_load(path.read_text())
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise KubeconfigError(f"{path}: {error}") from error
    if not isinstance(document, dict):
        raise KubeconfigError(f"{path}: not a kubeconfig")
    try:
        return _access(document, context, path.parent, clock)
    except FieldError as error:
        raise KubeconfigError(f"{path}: {error}") from error


def _access(document: Mapping[str, Any], context: str, directory: Path, clock: Clock) -> Access:
    chosen = context or document.get("current-context")
    if not chosen:
        raise FieldError("current-context", "missing, so that no context is chosen")
    selected = _entry(document, "contexts", chosen, Context)
    cluster = _entry(document, "clusters", selected.cluster, Cluster)
    user = _entry(document, "users", selected.user, User) if selected.user else User()
    with _within("clusters", selected.cluster):
        if http_url("server", cluster.server, ("https", "http")).user is not None:
            raise FieldError("server", "who asks belongs into username and password of the user")
        trust = _trust(cluster, directory)
        proxy = http_url("proxy-url", cluster.proxy_url, ("http",)) if cluster.proxy_url else None
        server_name = header_value("tls-server-name", cluster.tls_server_name) or None
        # Trusted by itself first, so that what cannot be is this entry's fault.
        client_tls(trust, Pair())
        authority = content(trust.authority)
    with _within("users", selected.user):
        pair = pair_of(user, directory)
        login = login_of(user, pair, cluster, trust, directory, clock)
        headers = tuple(impersonation(user))
        wire = Wire(server_name, proxy, not cluster.disable_compression, headers)
        certificate, key = content(pair.certificate), content(pair.key)
    return Access(cluster.server, authority, certificate, key, login, wire, selected.namespace or "default")


def _trust(cluster: Cluster, directory: Path) -> Trust:
    given = cluster.certificate_authority_data, cluster.certificate_authority
    authority = pem("certificate-authority", *given, directory)
    if authority and cluster.insecure_skip_tls_verify:
        raise FieldError("insecure-skip-tls-verify", "certificate-authority is given, too: only one can be")
    return Trust(authority, cluster.insecure_skip_tls_verify)


def _entry(document: Mapping[str, Any], section: str, name: str, type_: type[T]) -> T:
    listed = document.get(section) or []
    if not isinstance(listed, list):
        raise FieldError(section, "not a list")
    found = [entry for entry in listed if isinstance(entry, dict) and entry.get("name") == name]
    if len(found) != 1:
        raise FieldError(section, f'{"two entries are" if found else "no entry is"} named "{name}"')
    with _within(section, name):
        return msgspec.convert(_given(found[0].get(section.removesuffix("s"))), type_)


def _given(value: object) -> object:
    """Without fields that are null, which is as good as not given."""
    if not isinstance(value, dict):
        return {} if value is None else value
    return {name: _given(inner) for name, inner in value.items() if inner is not None}


@contextmanager
def _within(section: str, name: str) -> Iterator[None]:
    """Whose fields an error is about."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise FieldError(f'{section} "{name}"', error) from error


def _encoded(pem: bytes) -> str:
    return base64.b64encode(pem).decode()
