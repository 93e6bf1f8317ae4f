"""How a user of a kubeconfig shows who it is: what kubectl takes, refuses and prefers."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from podling.client.exec_plugin import VERSIONS, ExecLogin, Plugin
from podling.client.kubeconfig_entries import Cluster, Exec, User
from podling.client.kubeconfig_values import FieldError, header_value, pem
from podling.client.login import Login, StandingLogin, basic, bearer, bearer_in
from podling.client.reread import Reread
from podling.client.tls import Pair, Trust, client_tls, content
from podling.model.time import Clock

CLUSTER_CONFIG = "client.authentication.k8s.io/exec"
"""The extension of a cluster that is handed to the plugin."""


def login_of(user: User, pair: Pair, cluster: Cluster, trust: Trust, directory: Path, clock: Clock) -> Login:
    """Raises FieldError, and TlsError for certificates that cannot be used."""
    if user.auth_provider:
        raise FieldError("auth-provider", "not supported: use an exec plugin instead")
    if user.exec is not None:
        _check_alone(user)
        return ExecLogin(_plugin(user.exec, cluster, trust, directory), trust, clock)
    return StandingLogin(client_tls(trust, pair), _authorization(user, directory))


def pair_of(user: User, directory: Path) -> Pair:
    """Raises FieldError."""
    certificate = pem("client-certificate", user.client_certificate_data, user.client_certificate, directory)
    key = pem("client-key", user.client_key_data, user.client_key, directory)
    if bool(certificate) != bool(key):
        given, missing = ("client-certificate", "client-key")[:: 1 if certificate else -1]
        raise FieldError(missing, f"missing beside {given}")
    return Pair(certificate, key)


def impersonation(user: User) -> Iterator[tuple[str, str]]:
    """The headers that name whom to act as. Raises FieldError."""
    given = {"as-uid": user.as_uid, "as-groups": user.as_groups, "as-user-extra": user.as_user_extra}
    for field in (field for field, value in given.items() if value and not user.as_user):
        raise FieldError(field, "missing beside it is as, the user to impersonate")
    if user.as_user:
        yield "Impersonate-User", header_value("as", user.as_user)
    if user.as_uid:
        yield "Impersonate-Uid", header_value("as-uid", user.as_uid)
    for group in user.as_groups:
        yield "Impersonate-Group", header_value("as-groups", group)
    for key, values in user.as_user_extra.items():
        for value in values:
            yield f"Impersonate-Extra-{quote(key, safe='')}", header_value(f"as-user-extra.{key}", value)


def _authorization(user: User, directory: Path) -> Reread[str]:
    if user.password and not user.username:
        raise FieldError("username", "missing beside password")
    if user.username and (user.token or user.token_file):
        given = "token" if user.token else "tokenFile"
        raise FieldError("username", f"{given} is given, too: only one can be")
    if user.token_file:
        file = directory / user.token_file
        # As with kubectl, it wins over `token`.
        return _made("tokenFile", [file], lambda: bearer_in(file))
    if user.token:
        return _made("token", [], lambda: bearer(user.token))
    return Reread([], lambda: basic(user.username, user.password) if user.username else "")


def _made(field: str, files: list[Path], make: Callable[[], str]) -> Reread[str]:
    try:
        return Reread(files, make)
    except (OSError, ValueError) as error:
        raise FieldError(field, error) from error


def _check_alone(user: User) -> None:
    """Which of two credentials is shown should not be a matter of luck."""
    others = {
        "token": user.token,
        "tokenFile": user.token_file,
        "username": user.username,
        "client-certificate": user.client_certificate,
        "client-certificate-data": user.client_certificate_data,
    }
    for field in (field for field, value in others.items() if value):
        raise FieldError(field, "exec is given, too: only one can be")


def _plugin(given: Exec, cluster: Cluster, trust: Trust, directory: Path) -> Plugin:
    if given.api_version not in VERSIONS:
        wanted = " or ".join(VERSIONS)
        raise FieldError("exec.apiVersion", f'"{given.api_version}" is not supported: it must be {wanted}')
    if given.interactive_mode == "Always":
        raise FieldError("exec.interactiveMode", "Always is not supported: there is no standard input for it")
    if given.interactive_mode not in _modes(given.api_version):
        why = f'"{given.interactive_mode}" must be one of Never, IfAvailable, Always'
        raise FieldError("exec.interactiveMode", why)
    for variable in given.env or ():
        if not variable.name:
            raise FieldError("exec.env", "a variable has no name")
    return Plugin(
        (_program(given, directory), *(given.args or ())),
        {variable.name: variable.value for variable in given.env or ()},
        given.api_version,
        _told(cluster, trust) if given.provide_cluster_info else None,
    )


def _modes(api_version: str) -> tuple[str, ...]:
    return ("Never", "IfAvailable") if api_version == VERSIONS[0] else ("", "Never", "IfAvailable")


def _program(given: Exec, directory: Path) -> str:
    """A name without a slash is looked for on the PATH."""
    if not given.command:
        raise FieldError("exec.command", "missing")
    command = str(directory / given.command) if "/" in given.command else given.command
    if shutil.which(command) is None:
        hint = f"\n{given.install_hint.strip()}" if given.install_hint else ""
        raise FieldError("exec.command", f"{command} is not a program that can be run{hint}")
    return command


def _told(cluster: Cluster, trust: Trust) -> dict[str, Any]:
    configs = [found for found in cluster.extensions if found.get("name") == CLUSTER_CONFIG]
    told = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(content(trust.authority)).decode(),
        "proxy-url": cluster.proxy_url,
        "disable-compression": cluster.disable_compression,
        "config": configs[0].get("extension") if configs else None,
    }
    return {field: value for field, value in told.items() if value}
