"""Issue 13, authentication: both servers know the same users by the same credentials.

Each runs with the same files. A SelfSubjectReview shows whom a server takes a client for.
"""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml

from peer import control_plane, counted
from peer.agreed import differences, told_at_start
from peer.authentication_configurations import ACCEPTED, REFUSED
from peer.named_differences import AUTHENTICATION
from peer.server import Server
from peer.token_mint import REVIEWED, TOKENS_MADE, TokenMint, running_mint
from podling.apiserver.authn.tokens import ISSUER
from podling.apiserver.rules.authentication import read_configuration
from podling.apiserver.rules.configuration_file import ConfigurationError
from podling.machine.pki import Authority

WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
TOKENS = """\
peer-admin,kubernetes-admin,,system:masters
plain,ann,17
grouped,bob,18,"devs,ops"
one-group,cid,,devs
no-group,dan,19,

twice,eve,20
twice,fay,21
,nobody,22
"quo""ted",gil,23,"a,b",more
known,hal,24,system:authenticated
stranger,ian,25,system:unauthenticated
 blank,jan,26
"""
LOOKS = 300
PROXY = [
    "--requestheader-allowed-names=front,other",
    "--requestheader-username-headers=X-Remote-User,X-Other-User",
    "--requestheader-group-headers=X-Remote-Group,X-Other-Group",
    "--requestheader-uid-headers=X-Remote-Uid",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-",
]
PAIRS = {"front": "proxies", "other": "proxies", "stranger": "proxies", "ann": "clients"}


class Both(NamedTuple):
    kubernetes: Server
    podling: Server
    directory: Path

    def answers(
        self, target: str, body: Any, headers: Any, *, pair: str = "", method: str = "POST"
    ) -> tuple[Any, Any]:
        return (
            answer(self.kubernetes, self.directory, target, body, headers, pair, method),
            answer(self.podling, self.directory, target, body, headers, pair, method),
        )


def answer(
    server: Server, directory: Path, target: str, body: Any, headers: Any, pair: str, method: str
) -> Any:
    tls = ssl.create_default_context(cafile=str(server.ca))
    if pair:
        tls.load_cert_chain(directory / f"{pair}.crt", directory / f"{pair}.key")
    connection = HTTPSConnection(server.host, server.port, timeout=30, context=tls)
    try:
        counted.sent(server.name, method, target)
        connection.putrequest(method, target)
        data = msgspec.json.encode(body) if body is not None else b""
        for name, value in [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(data))),
            *headers,
        ]:
            connection.putheader(name, value)
        connection.endheaders(data)
        said = connection.getresponse()
        read = said.read()
        try:
            told = msgspec.json.decode(read)
        except msgspec.DecodeError:
            return said.status, read.decode(errors="replace")
        status = told.get("status", {})
        return said.status, status if isinstance(status, dict) else told
    finally:
        connection.close()


def both(programs: Path, directory: Path, flags: list[str]) -> Iterator[Both]:
    tokens = directory / "tokens.csv"
    tokens.write_text(TOKENS)
    flags = [*flags, f"--token-auth-file={tokens}"]
    with ExitStack() as running:
        for name in ("kubernetes", "podling"):
            (directory / name).mkdir()
        clients = Authority(directory / "kubernetes" / "pki", datetime.now(UTC))
        (directory / "podling" / "pki").mkdir()
        for file in ("ca.crt", "ca.key"):
            (directory / "podling" / "pki" / file).write_bytes(
                (directory / "kubernetes/pki" / file).read_bytes()
            )
        proxies = Authority(directory / "proxies", datetime.now(UTC))
        for name, authority in PAIRS.items():
            made = {"proxies": proxies, "clients": clients}[authority].client(name, name, ["devs"])
            (directory / f"{name}.crt").write_bytes(made.certificate.read_bytes())
            (directory / f"{name}.key").write_bytes(made.key.read_bytes())
        flags = [*flags, f"--requestheader-client-ca-file={proxies.ca.certificate}", *PROXY]
        kubernetes = control_plane.kubernetes(
            programs, directory / "kubernetes", f"--api-audiences={ISSUER}", *flags
        )
        podling = control_plane.podling(directory / "podling", *flags)
        yield Both(running.enter_context(kubernetes), running.enter_context(podling), directory)


@pytest.fixture(scope="module")
def servers(kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    yield from both(kubernetes_programs, tmp_path_factory.mktemp("authentication"), [])


def bearer(token: str) -> list[tuple[str, str]]:
    return [("Authorization", f"Bearer {token}")]


TOKENS_ASKED = [
    *("plain", "grouped", "one-group", "no-group", "twice", 'quo"ted', "known", "stranger"),
    *("blank", " blank", "none", "plain more", "PLAIN", "plain,ann", "\u00e4", "x" * 10_000, "a.b.c", "."),
]


@pytest.mark.parametrize("token", TOKENS_ASKED, ids=lambda token: token[:20])
def test_whose_token(servers: Both, token: str) -> None:
    theirs, ours = servers.answers(WHO_AM_I, {}, bearer(token))
    assert ours == theirs


PROXIED: Mapping[str, tuple[str, list[tuple[str, str]]]] = {
    "a user": ("front", [("X-Remote-User", "zoe")]),
    "of another name": ("other", [("X-Remote-User", "zoe")]),
    "not allowed": ("stranger", [("X-Remote-User", "zoe")]),
    "no user": ("front", []),
    "an empty user": ("front", [("X-Remote-User", ""), ("X-Other-User", "yan")]),
    "two users": ("front", [("X-Remote-User", "zoe"), ("X-Remote-User", "yan")]),
    "the other header": ("front", [("X-Other-User", "yan")]),
    "both headers": ("front", [("X-Other-User", "yan"), ("X-Remote-User", "zoe")]),
    "groups": (
        "front",
        [("X-Remote-User", "z"), ("X-Other-Group", "c"), ("X-Remote-Group", "b"), ("X-Remote-Group", "a")],
    ),
    "an empty group": ("front", [("X-Remote-User", "z"), ("X-Remote-Group", ""), ("X-Remote-Group", "a")]),
    "groups in one": ("front", [("X-Remote-User", "z"), ("X-Remote-Group", "a, b")]),
    "uid": ("front", [("X-Remote-User", "z"), ("X-Remote-Uid", "7")]),
    "extra": (
        "front",
        [("X-Remote-User", "z"), ("X-Remote-Extra-Acme%2Fa", "1"), ("x-remote-extra-acme%2fa", "2")],
    ),
    "broken extra": (
        "front",
        [("X-Remote-User", "z"), ("X-Remote-Extra-A%zz", "1"), ("X-Remote-Extra-", "2")],
    ),
    "masters": ("front", [("X-Remote-User", "z"), ("X-Remote-Group", "system:masters")]),
    "authenticated": ("front", [("X-Remote-User", "z"), ("X-Remote-Group", "system:authenticated")]),
    "unauthenticated": ("front", [("X-Remote-User", "z"), ("X-Remote-Group", "system:unauthenticated")]),
    "anonymous": ("front", [("X-Remote-User", "system:anonymous")]),
    "a client's certificate": ("ann", [("X-Remote-User", "zoe")]),
    "no certificate": ("", [("X-Remote-User", "zoe")]),
    "a token, too": ("front", [("X-Remote-User", "zoe"), *bearer("plain")]),
    "a token, no user": ("front", bearer("plain")),
    "a token, not allowed": ("stranger", bearer("plain")),
    "a wrong token": ("front", bearer("wrong")),
    "a client's with a wrong token": ("ann", bearer("wrong")),
    "impersonation": (
        "front",
        [("X-Remote-User", "z"), ("X-Remote-Group", "system:masters"), ("Impersonate-User", "y")],
    ),
}


@pytest.mark.parametrize("what", PROXIED)
def test_whom_a_proxy_names(servers: Both, what: str) -> None:
    pair, headers = PROXIED[what]
    theirs, ours = servers.answers(WHO_AM_I, {}, headers, pair=pair)
    assert ours == theirs


@pytest.mark.parametrize("token", ["plain", "grouped", "no-group", "none", "a.b.c", "known"])
@pytest.mark.parametrize("audiences", [[], [ISSUER], ["x"], ["x", ISSUER]], ids=str)
def test_token_reviews(servers: Both, token: str, audiences: list[str]) -> None:
    body = {"spec": {"token": token, "audiences": audiences}}
    theirs, ours = servers.answers(REVIEWS, body, bearer("peer-admin"))
    assert ours == theirs


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenMint]:
    with running_mint(tmp_path_factory.mktemp("issuer")) as mint:
        yield mint


@pytest.fixture(scope="module")
def configured(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory, issuer: TokenMint
) -> Iterator[Both]:
    directory = tmp_path_factory.mktemp("configured")
    file = directory / "authentication.yaml"
    file.write_text(yaml.safe_dump(issuer.configuration()))
    for servers in both(kubernetes_programs, directory, [f"--authentication-config={file}"]):
        for server in servers[:2]:
            _until_known(server, issuer)
        yield servers


@pytest.fixture(scope="module")
def flagged(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory, issuer: TokenMint
) -> Iterator[Both]:
    """By flags, and with a webhook."""
    directory = tmp_path_factory.mktemp("flagged")
    authority, webhook = directory / "issuer.crt", directory / "webhook.conf"
    authority.write_text(issuer.authority)
    cluster = {"server": f"{issuer.url}/reviews", "certificate-authority": str(authority)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "w", "cluster": cluster}],
        "users": [{"name": "w", "user": {}}],
        "contexts": [{"name": "w", "context": {"cluster": "w", "user": "w"}}],
        "current-context": "w",
    }
    webhook.write_text(yaml.safe_dump(config))
    flags = {
        "oidc-issuer-url": issuer.url,
        "oidc-client-id": "podling",
        "oidc-ca-file": authority,
        "oidc-groups-claim": "groups",
        "oidc-groups-prefix": "g:",
        "oidc-required-claim": "uid=1",
        "authentication-token-webhook-config-file": webhook,
        "authentication-token-webhook-version": "v1",
        "anonymous-auth": "false",
    }
    written = [f"--{flag}={value}" for flag, value in flags.items()]
    for servers in both(kubernetes_programs, directory, written):
        for server in servers[:2]:
            _until_known(server, issuer)
        yield servers


OF_ONE_ISSUER = ["plain", "no uid", "groups", "elliptic", "RS512", "second audience", "none", "ruled"]


@pytest.mark.parametrize("what", OF_ONE_ISSUER)
def test_whose_token_of_the_one_issuer(flagged: Both, issuer: TokenMint, what: str) -> None:
    theirs, ours = flagged.answers(WHO_AM_I, {}, bearer(TOKENS_MADE[what](issuer)))
    assert ours == theirs


@pytest.mark.parametrize("token", [*REVIEWED, "w-none", "plain"])
def test_whose_token_another_server_knows(flagged: Both, token: str) -> None:
    theirs, ours = flagged.answers(WHO_AM_I, {}, bearer(token))
    assert ours == theirs


@pytest.mark.parametrize("path", ["/livez", "/version", "/api"])
def test_no_strangers(flagged: Both, path: str) -> None:
    theirs, ours = flagged.answers(path, None, [], method="GET")
    assert ours == theirs
    assert ours[0] == 401


def _until_known(server: Server, issuer: TokenMint) -> None:
    """Kubernetes fetches the keys some time after it is ready."""
    token = issuer.token(uid="1")
    for _ in range(LOOKS):
        if server.ask("POST", WHO_AM_I, {}, Authorization=f"Bearer {token}").code == 201:
            return
        threading.Event().wait(0.2)
    raise RuntimeError(f"{server.name} does not know the keys")


@pytest.mark.parametrize("what", TOKENS_MADE)
def test_whose_json_web_token(configured: Both, issuer: TokenMint, what: str) -> None:
    token = TOKENS_MADE[what](issuer)
    theirs, ours = configured.answers(WHO_AM_I, {}, bearer(token))
    assert ours == theirs


@pytest.mark.parametrize(
    "path", ["/livez", "/livez/", "/livez/ping", "/healthz", "/version", "/livez?x=y", "/%6civez"]
)
def test_where_strangers_are_let_in(configured: Both, path: str) -> None:
    theirs, ours = configured.answers(path, None, [], method="GET")
    assert ours[0] == theirs[0]
    if theirs[0] == 401:
        assert ours == theirs


@pytest.mark.parametrize("audiences", [[], [ISSUER], ["podling"]], ids=str)
@pytest.mark.parametrize("what", ["plain", "expired"])
def test_token_reviews_of_json_web_tokens(
    configured: Both, issuer: TokenMint, what: str, audiences: list[str]
) -> None:
    body = {"spec": {"token": TOKENS_MADE[what](issuer), "audiences": audiences}}
    theirs, ours = configured.answers(REVIEWS, body, bearer("peer-admin"))
    # Why a token is not good is told in other words.
    theirs[1].pop("error", None), ours[1].pop("error", None)
    assert ours == theirs


def _told_by_podling(name: str) -> str:
    try:
        read_configuration(msgspec.json.encode(REFUSED[name]), {ISSUER})
    except ConfigurationError as error:
        return str(error)
    return ""


LOADED = re.compile('failed to load authentication configuration from file "[^"]*": ')
OTHERWISE = dict(AUTHENTICATION.what)


def test_what_no_server_is_started_with(kubernetes_programs: Path, tmp_path: Path) -> None:
    Authority(tmp_path, datetime.now(UTC)).client("service-accounts", "service-accounts")

    def ask(name: str) -> str:
        file = tmp_path / f"{name}.yaml"
        file.write_text(yaml.safe_dump(REFUSED[name]))
        issuer = {"service_account_issuer": ISSUER}
        said = told_at_start(kubernetes_programs, tmp_path, authentication_config=file, **issuer)
        if said.startswith("<"):
            whole = "\n".join(line.removeprefix("\t") for line in said[2:].rstrip().splitlines()[:-1])
        else:
            whole = msgspec.json.decode(said.splitlines()[0], type=str)
        if name in OTHERWISE:
            return str(OTHERWISE[name])
        return LOADED.sub("", whole).partition(" in scheme ")[0].rstrip("\n")

    ours = {name: _told_by_podling(name) for name in REFUSED}
    ours |= {name: said for name, said in OTHERWISE.items() if said in ours[name]}
    assert not differences("authentication", kubernetes_programs, REFUSED, ours, ask)


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_a_server_is_started_with(name: str) -> None:
    read_configuration(msgspec.json.encode(ACCEPTED[name]), {ISSUER})
