"""The certificate authority: what it signs is trusted, kept, and renewed when it must be."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import ssl
import stat
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from podling.machine.pki import (
    AFTER_A_FAULT,
    CA_LIFETIME,
    LEAF_LIFETIME,
    LONGEST_SLEEP,
    Authority,
    KeyPair,
    renew_forever,
)
from podling.machine.start import DamagedError, StartError

NOW = datetime.now(UTC)


def serial(pair: KeyPair) -> int:
    return x509.load_pem_x509_certificate(pair.certificate.read_bytes()).serial_number


def test_server_and_client_trust_each_other(tmp_path: Path) -> None:
    authority = Authority(tmp_path, NOW)
    server = authority.server("apiserver", "kube-apiserver", ["localhost", "127.0.0.1"])
    client = authority.client("admin", "kubernetes-admin", ["system:masters"])
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.ca.certificate))
    serving.load_cert_chain(server.certificate, server.key)
    serving.verify_mode = ssl.CERT_REQUIRED
    asking = ssl.create_default_context(cafile=str(authority.ca.certificate))
    asking.load_cert_chain(client.certificate, client.key)
    left, right = socket.socketpair()
    seen: list[object] = []

    def serve() -> None:
        with serving.wrap_socket(right, server_side=True) as connection:
            seen.append(dict(field[0] for field in connection.getpeercert()["subject"]))  # type: ignore[index,misc]
            connection.sendall(b"ok")

    thread = threading.Thread(target=serve)
    thread.start()
    with asking.wrap_socket(left, server_hostname="127.0.0.1") as connection:
        assert connection.recv(2) == b"ok"
    thread.join()
    assert seen == [{"organizationName": "system:masters", "commonName": "kubernetes-admin"}]


def test_everything_is_kept_between_starts(tmp_path: Path) -> None:
    first = Authority(tmp_path, NOW)
    made = first.ca, first.client("admin", "a"), first.server("s", "s", ["x"])
    again = Authority(tmp_path, NOW)
    assert [serial(pair) for pair in made] == [
        serial(pair) for pair in (again.ca, again.client("admin", "a"), again.server("s", "s", ["x"]))
    ]


def test_an_authority_of_ones_own_is_kept(tmp_path: Path) -> None:
    """Decision 082: who puts it there before the first start has one authority, as in Kubernetes."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mine")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 5, NOW, NOW + timedelta(days=900))
    own = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    pem = own.sign(key, SHA256()).public_bytes(Encoding.PEM)
    (tmp_path / "ca.crt").write_bytes(pem)
    (tmp_path / "ca.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    authority = Authority(tmp_path, NOW)
    signed = x509.load_pem_x509_certificate(authority.client("ann", "ann").certificate.read_bytes())
    assert authority.ca.certificate.read_bytes() == pem
    assert signed.issuer == name


def test_a_leaf_is_renewed_when_what_it_says_has_changed(tmp_path: Path) -> None:
    authority = Authority(tmp_path, NOW)
    before = serial(authority.server("s", "s", ["localhost"]))
    assert serial(authority.server("s", "s", ["localhost", "192.0.2.1"])) != before


def test_a_leaf_is_renewed_before_it_ends(tmp_path: Path) -> None:
    before = serial(Authority(tmp_path, NOW).client("admin", "a"))
    assert (
        serial(Authority(tmp_path, NOW + LEAF_LIFETIME - timedelta(days=40)).client("admin", "a")) == before
    )
    assert (
        serial(Authority(tmp_path, NOW + LEAF_LIFETIME - timedelta(days=20)).client("admin", "a")) != before
    )


def test_a_crash_between_key_and_certificate_is_mended(tmp_path: Path) -> None:
    authority = Authority(tmp_path, NOW)
    pair, other = authority.client("admin", "a"), authority.client("other", "b")
    pair.key.write_bytes(other.key.read_bytes())
    renewed = authority.client("admin", "a")
    context = ssl.create_default_context()
    context.load_cert_chain(renewed.certificate, renewed.key)


def test_keys_are_for_their_owner_alone(tmp_path: Path) -> None:
    authority = Authority(tmp_path, NOW)
    for key in (authority.ca.key, authority.client("admin", "a").key, authority.signing_key("sa")):
        assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_the_subject_carries_user_and_groups(tmp_path: Path) -> None:
    pair = Authority(tmp_path, NOW).client("node", "system:node:n1", ["system:nodes"])
    subject = x509.load_pem_x509_certificate(pair.certificate.read_bytes()).subject
    assert [a.value for a in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["system:node:n1"]
    assert [a.value for a in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == ["system:nodes"]


TRUSTED = ("ca.key", "ca.crt", "sa.key", "sa.pub")


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A directory of an authority that has signed something, with another's beside it."""
    for folder in ("pki", "other"):
        authority = Authority(tmp_path / folder, NOW)
        authority.signing_key("sa")
        authority.client("admin", "a")
    return tmp_path / "pki"


def _start(directory: Path, now: datetime = NOW) -> KeyPair:
    authority = Authority(directory, now)
    authority.signing_key("sa")
    return authority.client("admin", "a")


def _content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-70])


def _exchange(path: Path) -> None:
    shutil.copy(path.parents[1] / "other" / path.name, path)


@pytest.mark.parametrize(
    ("name", "damage", "why"),
    [
        ("ca.key", Path.unlink, "ca.key is missing beside {}/ca.crt"),
        ("sa.key", Path.unlink, "sa.key is missing beside {}/sa.pub"),
        *[(name, _cut, f"{name} ") for name in TRUSTED],
        *[(name, lambda path: path.write_bytes(b""), f"{name} ") for name in TRUSTED],
        ("ca.key", _exchange, "ca.crt is not the certificate of {}/ca.key"),
        ("ca.crt", _exchange, "ca.crt is not the certificate of {}/ca.key"),
        ("sa.key", _exchange, "sa.pub is not the public half of {}/sa.key"),
        ("sa.pub", _exchange, "sa.pub is not the public half of {}/sa.key"),
    ],
)
def test_what_others_trust_is_never_replaced(
    name: str, damage: Callable[[Path], None], why: str, made: Path
) -> None:
    damage(made / name)
    before = _content(made)
    with pytest.raises(DamagedError, match=re.escape(why.format(made))) as refusal:
        _start(made)
    assert "podling restore" in str(refusal.value) and "\n" not in str(refusal.value)
    assert _content(made) == before


@pytest.mark.parametrize("name", ["ca.crt", "sa.pub"])
def test_what_follows_from_a_key_is_made_of_it(name: str, made: Path) -> None:
    """A crash of the first start leaves a key alone, and an older podling kept no public half."""
    trusted = ssl.create_default_context(cafile=str(made / "ca.crt")).get_ca_certs(binary_form=True)
    leaf = serial(KeyPair(made / "admin.crt", made / "admin.key"))
    key = (made / "ca.key").read_bytes(), (made / "sa.key").read_bytes()
    (made / name).unlink()
    assert serial(_start(made)) == leaf
    assert ((made / "ca.key").read_bytes(), (made / "sa.key").read_bytes()) == key
    (old,) = map(x509.load_der_x509_certificate, trusted)
    x509.load_pem_x509_certificate((made / "ca.crt").read_bytes()).verify_directly_issued_by(old)


@pytest.mark.parametrize("pair", [("ca.crt", "ca.key"), ("sa.pub", "sa.key")])
def test_both_parts_removed_are_made_anew_with_all_that_rests_on_them(
    pair: tuple[str, str], made: Path
) -> None:
    for name in pair:
        (made / name).unlink()
    leaf = _start(made)
    ca = x509.load_pem_x509_certificate((made / "ca.crt").read_bytes())
    x509.load_pem_x509_certificate(leaf.certificate.read_bytes()).verify_directly_issued_by(ca)


@pytest.mark.parametrize("name", ["admin.crt", "admin.key"])
@pytest.mark.parametrize("damage", [Path.unlink, _cut, _exchange, lambda path: path.write_bytes(b"")])
def test_a_leaf_that_is_damaged_is_made_anew(name: str, damage: Callable[[Path], None], made: Path) -> None:
    damage(made / name)
    leaf = _start(made)
    context = ssl.create_default_context()
    context.load_cert_chain(leaf.certificate, leaf.key)
    ca = x509.load_pem_x509_certificate((made / "ca.crt").read_bytes())
    x509.load_pem_x509_certificate(leaf.certificate.read_bytes()).verify_directly_issued_by(ca)


def test_an_authority_whose_time_is_over_or_has_not_come_says_so(made: Path) -> None:
    with pytest.raises(StartError, match=r"ca\.crt expired on \d{4}-\d\d-\d\d: remove ca\.crt and ca\.key"):
        _start(made, NOW + CA_LIFETIME + timedelta(days=1))
    with pytest.raises(StartError, match=r"ca\.crt is valid from .*: is the clock of this machine right\?"):
        _start(made, NOW - timedelta(days=1))


def test_a_key_that_others_could_read_is_its_owners_again(made: Path) -> None:
    keys = [path for path in made.iterdir() if path.suffix == ".key"]
    assert len(keys) == 3
    for key in keys:
        key.chmod(0o644)
    _start(made)
    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}


def test_a_key_is_its_owners_from_the_first_byte_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: dict[str, int] = {}
    real = os.open

    def watched(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            opened[Path(path).name] = mode
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", watched)
    _start(tmp_path / "pki")
    assert {name: mode for name, mode in opened.items() if ".key" in name} == dict.fromkeys(
        ("ca.key.new", "sa.key.new", "admin.key.new"), 0o600
    )


class Given:
    """A clock that stands until somebody sleeps."""

    def __init__(self) -> None:
        self.time = NOW
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += timedelta(seconds=seconds)


async def test_certificates_are_renewed_when_they_are_due(tmp_path: Path) -> None:
    """A process that nobody starts again: each is made anew a month before it ends, and nothing else is; what
    fails is tried again."""
    clock, faults = Given(), [OSError("the disk is full")]
    renewed: list[tuple[datetime, int, int]] = []
    done = asyncio.Event()

    def certified() -> tuple[Authority, KeyPair]:
        authority = Authority(tmp_path, clock.now())
        return authority, authority.server("s", "s", ["x"])

    def renew() -> datetime:
        if faults:
            raise faults.pop()
        authority, pair = certified()
        renewed.append((clock.now(), serial(pair), serial(authority.ca)))
        if len(renewed) == 2:
            done.set()
        return authority.due

    authority, pair = certified()
    assert authority.due == NOW + timedelta(days=335)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(renew_forever(authority.due, renew, clock, clock.sleep))
        await done.wait()
        running.cancel()
    first, second = renewed[:2]
    assert first[0] == NOW + timedelta(days=335) + AFTER_A_FAULT
    assert second[0] == first[0] + timedelta(days=335)
    assert len({serial(pair), first[1], second[1]}) == 2, "the pair's file holds the newest"
    assert {first[2], second[2]} == {serial(authority.ca)}
    assert max(clock.slept) == LONGEST_SLEEP


def test_what_is_asked_for_first_is_due_first(tmp_path: Path) -> None:
    Authority(tmp_path, NOW).client("old", "old")
    later = NOW + timedelta(days=100)
    authority = Authority(tmp_path, later)
    authority.client("new", "new")
    assert authority.due == later + timedelta(days=335)
    authority.client("old", "old")
    assert authority.due == NOW.replace(microsecond=0) + timedelta(days=335)
