"""The certificate authority: what it signs is trusted, kept, and renewed when it must be."""

from __future__ import annotations

import socket
import ssl
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import NameOID

from podling.pki import LEAF_LIFETIME, Authority, KeyPair

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
            seen.append(dict(field[0] for field in connection.getpeercert()["subject"]))  # type: ignore[index,union-attr,misc]
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
