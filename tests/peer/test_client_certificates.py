"""Issue 13, authentication by certificate: both servers take each certificate for the same user, or for
nobody's.

Of a certificate whose chain or purpose is wrong podling ends the handshake; Kubernetes answers 401 (decision
070).
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from client_certificates import (
    ANY,
    CLIENT,
    CN,
    GROUP,
    OLD,
    PRINTABLE,
    SERVER,
    UID,
    UNIT,
    Attribute,
    Shape,
    Signer,
    authority,
    read_signer,
    write,
)
from peer.server import Server
from peer.test_authentication import WHO_AM_I, Both, answer, bearer, both
from podling.machine.pki import Authority

ANN = Attribute(CN, "ann")


def user(*attributes: Attribute) -> list[list[Attribute]]:
    return [[one] for one in attributes]


CLIENTS: Mapping[str, Shape] = {
    "plain": Shape(user(ANN)),
    "groups": Shape(user(Attribute(GROUP, "b"), ANN, Attribute(GROUP, "a"), Attribute(GROUP, "b"))),
    "an empty group": Shape(user(ANN, Attribute(GROUP, ""))),
    "units": Shape(user(Attribute(UNIT, "x"), ANN, Attribute(UNIT, "y"))),
    "one relative name": Shape([[Attribute(GROUP, "a"), ANN]]),
    "two names": Shape(user(ANN, Attribute(CN, "bob"))),
    "two names, the last empty": Shape(user(ANN, Attribute(CN, ""))),
    "no name": Shape(user(Attribute(GROUP, "a"))),
    "an empty name": Shape(user(Attribute(CN, ""))),
    "no subject": Shape([]),
    "a blank": Shape(user(Attribute(CN, " "))),
    "other letters": Shape(user(Attribute(CN, 'ä/ü\N{GRINNING FACE}:,=+"\\ z'))),
    "printable": Shape(user(Attribute(CN, "Ann Lee", PRINTABLE))),
    "an old encoding": Shape(user(Attribute(CN, "ann", OLD))),
    "a node": Shape(user(Attribute(GROUP, "system:nodes"), Attribute(CN, "system:node:n"))),
    "masters": Shape(user(Attribute(GROUP, "system:masters"), ANN)),
    "anonymous": Shape(user(Attribute(CN, "system:anonymous"))),
    "authenticated": Shape(user(ANN, Attribute(GROUP, "system:authenticated"))),
    "unauthenticated": Shape(user(ANN, Attribute(GROUP, "system:unauthenticated"))),
    "uid": Shape(user(ANN, Attribute(UID, "u-1"))),
    "an empty uid": Shape(user(ANN, Attribute(UID, ""))),
    "two uids": Shape(user(ANN, Attribute(UID, "u-1"), Attribute(UID, "u-2"))),
    "a printable uid": Shape(user(ANN, Attribute(UID, "u-1", PRINTABLE))),
    "a uid, no name": Shape(user(Attribute(UID, "u-1"))),
    "no purpose": Shape(user(ANN), usages=()),
    "both purposes": Shape(user(ANN), usages=(SERVER, CLIENT)),
    "no usage of its key": Shape(user(ANN), key_usage=""),
    "an intermediate": Shape(user(ANN), way=("below",)),
    "two intermediates": Shape(user(ANN), way=("below", "further")),
}
OUT_OF_TIME: Mapping[str, Shape] = {
    "expired": Shape(user(ANN), days=(-2, -1)),
    "not yet valid": Shape(user(ANN), days=(1, 2)),
    "an intermediate that has expired": Shape(user(ANN), way=("late",)),
    "an intermediate that is not valid yet": Shape(user(ANN), way=("early",)),
}
REFUSED: Mapping[str, Shape] = {
    "of a server": Shape(user(ANN), usages=(SERVER,)),
    "an intermediate that is not sent": Shape(user(ANN), way=("below",), is_bare=True),
    "below what may have none below": Shape(user(ANN), way=("last", "beyond")),
    "unknown authority": Shape(user(ANN), way=("unknown",)),
    "an unknown extension that counts": Shape(user(ANN), critical="1.2.3.4"),
}
NOT_FOR_CLIENTS = {"for every purpose": Shape(user(ANN), usages=(ANY,))}
"""Good for Kubernetes alone: OpenSSL takes only what says that it is for clients, or for nothing at all."""
PROXIES: Mapping[str, Shape] = {
    "front": Shape(user(Attribute(CN, "front"))),
    "through one": Shape(user(Attribute(CN, "front")), way=("below",)),
    "through two": Shape(user(Attribute(CN, "front")), way=("below", "further")),
    "last of two names": Shape(user(Attribute(CN, "x"), Attribute(CN, "front"))),
    "first of two names": Shape(user(Attribute(CN, "front"), Attribute(CN, "x"))),
    "not allowed": Shape(user(Attribute(CN, "fronts"))),
    "not allowed, through one": Shape(user(Attribute(CN, "fronts")), way=("below",)),
    "a group that is allowed": Shape(user(Attribute(GROUP, "front"), Attribute(CN, "x"))),
    "no name": Shape(user(Attribute(GROUP, "front"))),
    "of an authority that is no root": Shape(user(Attribute(CN, "front")), way=("trusted",)),
    "expired": Shape(user(Attribute(CN, "front")), days=(-2, -1)),
    "not yet valid": Shape(user(Attribute(CN, "front")), days=(1, 2)),
}


def signers(root: Signer) -> dict[str, Signer]:
    below, last = authority("below", root), authority("last", root, path_length=0)
    return {
        "below": below,
        "further": authority("further", below),
        "last": last,
        "beyond": authority("beyond", last),
        "unknown": authority("unknown"),
        "late": authority("late", root, days=(-2, -1)),
        "early": authority("early", root, days=(1, 2)),
    }


@pytest.fixture(scope="module")
def servers(kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    directory = tmp_path_factory.mktemp("certificates")
    proxies = Authority(directory / "proxies", datetime.now(UTC)).ca
    trusted = authority("trusted", authority("of others"))
    with proxies.certificate.open("ab") as file:
        file.write(trusted.certificate.public_bytes(Encoding.PEM))
    for one in both(kubernetes_programs, directory, []):
        for pki, shapes in (
            ("kubernetes/pki", {**CLIENTS, **OUT_OF_TIME, **REFUSED, **NOT_FOR_CLIENTS}),
            ("proxies", PROXIES),
        ):
            root = read_signer(directory / pki / "ca.crt", directory / pki / "ca.key")
            known = signers(root) | {"trusted": trusted}
            for name, shape in shapes.items():
                way = [known[step] for step in shape.way]
                is_below = not way or way[0].certificate.issuer == root.certificate.subject
                write(shape, [root, *way] if is_below else way, directory / file_name(pki, name))
        yield one


def file_name(pki: str, name: str) -> str:
    return f"{pki.partition('/')[0]}, {name}"


@pytest.mark.parametrize("name", CLIENTS)
def test_whose_certificate(servers: Both, name: str) -> None:
    theirs, ours = servers.answers(WHO_AM_I, {}, [], pair=file_name("kubernetes", name))
    assert ours == theirs


@pytest.mark.parametrize("name", OUT_OF_TIME)
@pytest.mark.parametrize("beside", ["", "plain"])
def test_whose_certificate_is_out_of_its_time(servers: Both, name: str, beside: str) -> None:
    """Nobody's, and a token beside it counts."""
    said = bearer(beside) if beside else []
    theirs, ours = servers.answers(WHO_AM_I, {}, said, pair=file_name("kubernetes", name))
    assert ours == theirs
    assert ours[0] == (201 if beside else 401)


@pytest.mark.parametrize("name", [*REFUSED, *NOT_FOR_CLIENTS])
def test_whose_certificate_is_not_accepted(servers: Both, name: str) -> None:
    pair = file_name("kubernetes", name)

    def asked(server: Server) -> Any:
        return answer(server, servers.directory, WHO_AM_I, {}, [], pair, "POST")

    assert asked(servers.kubernetes)[0] == (401 if name in REFUSED else 201)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        asked(servers.podling)


@pytest.mark.parametrize("name", PROXIES)
def test_whose_proxy(servers: Both, name: str) -> None:
    headers = [("X-Remote-User", "zoe")]
    theirs, ours = servers.answers(WHO_AM_I, {}, headers, pair=file_name("proxies", name))
    assert ours == theirs


@pytest.mark.parametrize("name", ["no name", "an empty name", "two uids", "an empty uid"])
def test_a_token_counts_beside_a_certificate_of_nobody(servers: Both, name: str) -> None:
    theirs, ours = servers.answers(WHO_AM_I, {}, bearer("plain"), pair=file_name("kubernetes", name))
    assert ours == theirs
