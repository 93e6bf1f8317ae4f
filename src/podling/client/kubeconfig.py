"""Reading and writing kubeconfig files (v1 Config): the server, whom to trust, and the user's credentials.

The structs have the fields that kubectl knows. What kubectl refuses is refused here, and so is a field that
podling has no support for: by its name, before any request. Relative paths start at the file's directory.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import SplitResult, quote, urlsplit

import msgspec
from msgspec.structs import replace

from podling.client.login import Login, LoginOfFile, StandingLogin, basic, bearer, bearer_in
from podling.client.proxies import of_environment
from podling.client.route import Query, Wire
from podling.client.tls import Pair, Pem, Trust, client_tls, content
from podling.model.time import Clock, SystemClock
from podling.process.tls import Reread

if TYPE_CHECKING:
    from podling.client.exec_plugin import Plugin
    from podling.client.first import First
    from podling.client.https import HttpsTransport
    from podling.client.oidc import Issuer

T = TypeVar("T")

CLUSTER_CONFIG = "client.authentication.k8s.io/exec"
"""The cluster's extension that is passed to the credential plugin."""
PROXIES = ("http", "https", "socks5")
_CLOCK = SystemClock()


class FieldError(ValueError):
    """A field has a value that cannot be used; the message names it."""

    def __init__(self, field: str, why: object) -> None:
        super().__init__(f"{field}: {why}")


def pem(field: str, data: str, file: str, directory: Path) -> Pem:
    """The PEM of the field `NAME-data` or else of the file in `NAME`; b"" when neither is set. Raises
    FieldError."""
    if data and file:
        raise FieldError(field, f"{field}-data is given, too: only one can be")
    if file:
        return directory / file
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except binascii.Error as error:
        raise FieldError(f"{field}-data", error) from error


def http_url(field: str, text: str, schemes: tuple[str, ...]) -> SplitResult:
    """Raises FieldError."""
    try:
        url = urlsplit(text)
        host, _ = url.hostname, url.port
    except ValueError as error:
        raise FieldError(field, f"{text!r} is not a URL: {error}") from error
    if url.scheme not in schemes or not host:
        wanted = " or ".join(f"{scheme}://" for scheme in schemes)
        raise FieldError(field, f"{text!r} is not supported: it must be a URL that begins with {wanted}")
    return url


def header_value(field: str, text: str) -> str:
    """`text`, if it can be the value of an HTTP header. Raises FieldError."""
    if not text.isprintable():
        raise FieldError(field, "it has control characters in it")
    return text


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


class Provider(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A login that is built into clients: `oidc` is left of them."""

    name: str = ""
    config: dict[str, str] = {}


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
    auth_provider: Provider | None = None
    exec: Exec | None = None
    extensions: list[dict[str, Any]] = []


class Context(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""
    extensions: list[dict[str, Any]] = []


def login_of(
    user: User,
    pair: Pair,
    cluster: Cluster,
    trust: Trust,
    file: Path,
    name: str,
    clock: Clock,
) -> Login:
    """How `user` authenticates, who is called `name` in `file`, which keeps tokens that are renewed. Raises
    FieldError, and TlsError for certificates that cannot be used."""
    directory = file.parent
    if user.exec is not None:
        # Not before somebody logs in so: it is a third of what a command imports before its first request.
        from podling.client.exec_plugin import ExecLogin

        others = {
            "auth-provider": user.auth_provider,
            "token": user.token,
            "tokenFile": user.token_file,
            "username": user.username,
            "client-certificate": user.client_certificate,
            "client-certificate-data": user.client_certificate_data,
        }
        for field in (field for field, value in others.items() if value):
            raise FieldError(field, "exec is given, too: only one can be")
        return ExecLogin(_plugin(user.exec, cluster, trust, directory), trust, clock)
    # As with kubectl, what is given outright goes before an auth-provider.
    if user.auth_provider is not None and not (user.token or user.token_file or user.username):
        from podling.client.oidc import OidcLogin, keep_tokens

        issuer, tokens = _issuer(user.auth_provider, directory)
        return OidcLogin(issuer, tokens, client_tls(trust, pair), partial(keep_tokens, file, name), clock)
    return StandingLogin(client_tls(trust, pair), _authorization(user, directory))


def _issuer(provider: Provider, directory: Path) -> tuple[Issuer, dict[str, str]]:
    """With the tokens there are."""
    from podling.client.oidc import ID_TOKEN, REFRESH_TOKEN, Issuer
    from podling.client.oidc import NAME as OIDC

    if provider.name != OIDC:
        why = f'"{provider.name}" is not supported, nor by kubectl any more: use an exec plugin'
        raise FieldError("auth-provider", why)
    config = provider.config
    for field in ("idp-issuer-url", "client-id"):
        if not config.get(field):
            raise FieldError(f"auth-provider.config.{field}", "missing")
    url = config["idp-issuer-url"]
    http_url("auth-provider.config.idp-issuer-url", url, ("https", "http"))
    authority = "idp-certificate-authority"
    trust = Trust(pem(authority, config.get(f"{authority}-data", ""), config.get(authority, ""), directory))
    tokens = {field: config[field] for field in (ID_TOKEN, REFRESH_TOKEN) if field in config}
    return Issuer(url, config["client-id"], config.get("client-secret", ""), trust), tokens


def pair_of(user: User, directory: Path) -> Pair:
    """The user's client certificate and key. Raises FieldError."""
    certificate = pem("client-certificate", user.client_certificate_data, user.client_certificate, directory)
    key = pem("client-key", user.client_key_data, user.client_key, directory)
    if bool(certificate) != bool(key):
        given, missing = ("client-certificate", "client-key")[:: 1 if certificate else -1]
        raise FieldError(missing, f"missing beside {given}")
    return Pair(certificate, key)


def impersonation(user: User) -> Iterator[tuple[str, str]]:
    """The Impersonate- headers of the user. Raises FieldError."""
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


def _plugin(given: Exec, cluster: Cluster, trust: Trust, directory: Path) -> Plugin:
    import shutil

    from podling.client.exec_plugin import IF_AVAILABLE, MODES, VERSIONS, Plugin

    if given.api_version not in VERSIONS:
        wanted = " or ".join(VERSIONS)
        raise FieldError("exec.apiVersion", f'"{given.api_version}" is not supported: it must be {wanted}')
    # v1 has no default for it.
    optional = () if given.api_version == VERSIONS[0] else ("",)
    if given.interactive_mode not in (*MODES, *optional):
        why = f'"{given.interactive_mode}" must be one of Never, IfAvailable, Always'
        raise FieldError("exec.interactiveMode", why)
    for variable in given.env or ():
        if not variable.name:
            raise FieldError("exec.env", "a variable has no name")
    if not given.command:
        raise FieldError("exec.command", "missing")
    # A name without a slash is looked up in PATH.
    command = str(directory / given.command) if "/" in given.command else given.command
    if shutil.which(command) is None:
        hint = f"\n{given.install_hint.strip()}" if given.install_hint else ""
        raise FieldError("exec.command", f"{command} is not a program that can be run{hint}")
    told: dict[str, Any] | None = None
    if given.provide_cluster_info:
        configs = [found for found in cluster.extensions if found.get("name") == CLUSTER_CONFIG]
        fields = {
            "server": cluster.server,
            "tls-server-name": cluster.tls_server_name,
            "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
            "certificate-authority-data": base64.b64encode(content(trust.authority)).decode(),
            "proxy-url": cluster.proxy_url,
            "disable-compression": cluster.disable_compression,
            "config": configs[0].get("extension") if configs else None,
        }
        told = {field: value for field, value in fields.items() if value}
    return Plugin(
        (command, *(given.args or ())),
        {variable.name: variable.value for variable in given.env or ()},
        given.api_version,
        told,
        given.interactive_mode or IF_AVAILABLE,
    )


class KubeconfigError(ValueError):
    """The file cannot be used; the message names the file and the field."""


class Access(msgspec.Struct, frozen=True):
    """One context of a kubeconfig. Certificates and keys are PEM as they were when the file was read;
    requests use `login`, which follows changes."""

    server: str
    certificate_authority: bytes
    client_certificate: bytes
    client_key: bytes
    login: Login
    trust: Trust
    """Whom the context trusts, for another login."""
    trusting: Reread[ssl.SSLContext]
    """The same, without a certificate to show."""
    wire: Wire
    namespace: str = "default"

    def send_first(self, path: str, query: Query) -> First | None:
        """As `client/first.py`."""
        from podling.client import first

        return first.send(self.server, self.login, self.wire, path, query)

    def transport(self, first: First | None = None) -> HttpsTransport:
        """`first`: the request that was sent before, if one was."""
        from podling.client.https import HttpsTransport

        return HttpsTransport(self.server, self.login, self.wire, first=first)


def write_joined(path: Path, name: str, server: str, certificate_authority: bytes, pair: Path) -> None:
    """Write a kubeconfig as `write` does, whose user shows what is in the file `pair`, a client certificate
    and its key in PEM."""
    cluster = {"server": server, "certificate-authority-data": _encoded(certificate_authority)}
    _write(path, name, cluster, {"client-certificate": str(pair), "client-key": str(pair)})


def write(
    path: Path,
    name: str,
    server: str,
    *,
    certificate_authority: bytes,
    client_certificate: bytes,
    client_key: bytes,
) -> None:
    """Write a kubeconfig with one context called `name`, with inline PEM; only its owner may read it."""
    cluster = {"server": server, "certificate-authority-data": _encoded(certificate_authority)}
    user = {"client-certificate-data": _encoded(client_certificate), "client-key-data": _encoded(client_key)}
    _write(path, name, cluster, user)


def _write(path: Path, name: str, cluster: dict[str, str], user: dict[str, str]) -> None:
    # Not before: commands only read them.
    import yaml

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
    """The context named `context`, or the current one; its login follows what the file says later. Raises
    KubeconfigError."""
    return _followed([path], context, clock)


def read_merged(paths: Sequence[Path], context: str = "", *, clock: Clock = _CLOCK) -> Access:
    """As `read`, of several files as kubectl merges them: of what they name alike the first counts, relative
    paths start at the file they stand in, and a file that is not there counts as empty. Raises
    KubeconfigError."""
    there = [path for path in paths if path.exists()]
    if not there:
        raise KubeconfigError(f"{', '.join(map(str, paths))}: no such file")
    return _followed(there, context, clock)


def contexts(paths: Sequence[Path]) -> list[str]:
    """The names of all contexts. Raises KubeconfigError."""
    listed = [_file(path).document.get("contexts") for path in paths if path.exists()]
    entries = (entry for one in listed if isinstance(one, list) for entry in one if isinstance(entry, dict))
    return [str(entry["name"]) for entry in entries if entry.get("name")]


class _File(NamedTuple):
    """One of the files that are read."""

    path: Path
    document: Mapping[str, Any]

    @property
    def directory(self) -> Path:
        """Where its relative paths start."""
        return self.path.parent


def _followed(paths: Sequence[Path], context: str, clock: Clock) -> Access:
    current = Reread(paths, partial(_read, paths, context, clock))
    return replace(current.get(), login=LoginOfFile(lambda: current.get().login))


def _read(paths: Sequence[Path], context: str, clock: Clock) -> Access:
    """Raises KubeconfigError."""
    files = [_file(path) for path in paths]
    try:
        return _access(files, context, clock)
    except FieldError as error:
        raise KubeconfigError(f"{', '.join(map(str, paths))}: {error}") from error


def _file(path: Path) -> _File:
    # A podling that writes a kubeconfig does not read one.
    from podling.client import plain_yaml

    try:
        text = path.read_text()
        document = plain_yaml.read(text)
        if document is None:
            document = _any_yaml(text)
    except (OSError, ValueError) as error:
        raise KubeconfigError(f"{path}: {error}") from error
    if not isinstance(document, dict):
        raise KubeconfigError(f"{path}: not a kubeconfig")
    return _File(path, document)


def _any_yaml(text: str) -> Any:
    """Raises ValueError."""
    import yaml

    try:
        # libyaml's where it is: certificates are long, and a command waits for them.
        return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ValueError(error) from error


def _access(files: Sequence[_File], context: str, clock: Clock) -> Access:
    chosen = context or next(filter(None, (file.document.get("current-context") for file in files)), None)
    if not chosen:
        raise FieldError("current-context", "missing, so that no context is chosen")
    selected, _ = _entry(files, "contexts", chosen, Context)
    cluster, of_cluster = _entry(files, "clusters", selected.cluster, Cluster)
    user, of_user = _entry(files, "users", selected.user, User) if selected.user else (User(), of_cluster)
    with _within("clusters", selected.cluster):
        server = http_url("server", cluster.server, ("https", "http"))
        if server.username is not None:
            raise FieldError("server", "who asks belongs into username and password of the user")
        given = cluster.certificate_authority_data, cluster.certificate_authority
        trust = Trust(
            pem("certificate-authority", *given, of_cluster.directory), cluster.insecure_skip_tls_verify
        )
        if trust.authority and trust.insecure:
            why = "certificate-authority is given, too: only one can be"
            raise FieldError("insecure-skip-tls-verify", why)
        if cluster.proxy_url:
            proxy: SplitResult | None = http_url("proxy-url", cluster.proxy_url, PROXIES)
        else:
            proxy = of_environment(server, os.environ)
        server_name = header_value("tls-server-name", cluster.tls_server_name) or None
        if "https" not in (server.scheme, proxy.scheme if proxy else ""):
            # Nobody is asked for a certificate: to read the machine's authorities takes long.
            trust = trust._replace(insecure=True)
        # Trusted by itself first, so that what cannot be is this entry's fault.
        trusting = client_tls(trust, Pair())
        authority = content(trust.authority)
    with _within("users", selected.user):
        pair = pair_of(user, of_user.directory)
        login = login_of(user, pair, cluster, trust, of_user.path, selected.user, clock)
        headers = tuple(impersonation(user))
        wire = Wire(server_name, proxy, not cluster.disable_compression, headers, trusting)
        certificate, key = content(pair.certificate), content(pair.key)
    return Access(
        cluster.server,
        authority,
        certificate,
        key,
        login,
        trust,
        trusting,
        wire,
        selected.namespace or "default",
    )


def _entry(files: Sequence[_File], section: str, name: str, type_: type[T]) -> tuple[T, _File]:
    """With the file in which it stands."""
    for file in files:
        listed = file.document.get(section) or []
        if not isinstance(listed, list):
            raise FieldError(section, "not a list")
        found = [entry for entry in listed if isinstance(entry, dict) and entry.get("name") == name]
        if len(found) > 1:
            raise FieldError(section, f'two entries are named "{name}"')
        if found:
            with _within(section, name):
                return msgspec.convert(_given(found[0].get(section.removesuffix("s"))), type_), file
    raise FieldError(section, f'no entry is named "{name}"')


def _given(value: object) -> object:
    """The document without null fields, which count as not set."""
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
