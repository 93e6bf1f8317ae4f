"""The entries of a kubeconfig (v1 Config), as kubectl knows them.

A field that is not here is refused by its name: what podling does not know it cannot do.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Cluster(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: list[dict[str, Any]] = []


class Variable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    value: str = ""


class Exec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A credential plugin (client.authentication.k8s.io)."""

    command: str = ""
    args: list[str] | None = None
    env: list[Variable] | None = None
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class User(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    as_user: str = msgspec.field(name="as", default="")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}
    auth_provider: dict[str, Any] = {}
    exec: Exec | None = None
    extensions: list[dict[str, Any]] = []


class Context(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""
    extensions: list[dict[str, Any]] = []
