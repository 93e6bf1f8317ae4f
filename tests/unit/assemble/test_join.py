"""What a machine that joins believes, and what it says of clocks that differ."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from podling.assemble.discovery import authority_in
from podling.assemble.join import check_time
from podling.assemble.node_certificates import client_certificate, node_of
from podling.controllers.bootstrap_tokens import cluster_info
from podling.machine.pki import Authority
from podling.machine.start import StartError
from podling.model.rules.bootstrap_tokens import key_hashes, signature
from podling.model.types.core import ConfigMap

NOW = datetime(2026, 1, 2, tzinfo=UTC)
TOKEN = "abcdef.0123456789abcdef"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"), NOW)


def published(content: str, token: str = TOKEN) -> ConfigMap:
    name, secret = token.split(".")
    signed = {f"jws-kubeconfig-{name}": signature(content, name, secret)}
    return ConfigMap(data={"kubeconfig": content, **signed})


def info_of(authority: Authority) -> str:
    return cluster_info("https://192.0.2.1:6443", authority.ca.certificate.read_text())


def test_the_authority_is_what_token_and_hash_say(authority: Authority) -> None:
    pem = authority.ca.certificate.read_bytes()
    assert authority_in(published(info_of(authority)), TOKEN, key_hashes(pem)) == pem


@pytest.mark.parametrize(
    ("changes", "token", "why"),
    [
        ({}, "short", "is no bootstrap token"),
        ({}, "ghijkl.0123456789abcdef", 'knows no token "ghijkl", or its time is over'),
        ({}, "abcdef.0123456789abcdeX", "is no bootstrap token"),
        ({}, "abcdef.fedcba9876543210", "with another secret"),
        ({"kubeconfig": "clusters: []"}, TOKEN, "with another secret"),
    ],
)
def test_what_the_token_has_not_signed_is_not_believed(
    authority: Authority, changes: Mapping[str, str], token: str, why: str
) -> None:
    info = published(info_of(authority))
    info.data = {**info.data, **changes}
    with pytest.raises(StartError, match=why):
        authority_in(info, token, key_hashes(authority.ca.certificate.read_bytes()))


@pytest.mark.parametrize("content", ["", "[", "clusters: []", "clusters: [{cluster: {server: 7}}]"])
def test_what_is_signed_and_no_cluster_is_said_to_be_so(content: str) -> None:
    with pytest.raises(StartError):
        authority_in(published(content), TOKEN, [f"sha256:{'0' * 64}"])


@pytest.mark.parametrize(
    ("later", "why"),
    [
        (timedelta(minutes=-6), "the clocks of this machine and of the cluster differ"),
        (timedelta(days=366), "join again, with a token; or is the clock of this machine ahead"),
        (timedelta(days=1), ""),
    ],
)
def test_a_clock_that_is_wrong_is_said_in_a_sentence(
    authority: Authority, later: timedelta, why: str
) -> None:
    issued = authority.client("n", "system:node:n", ["system:nodes"])
    directory = authority.ca.certificate.parent
    wanted = client_certificate(directory, "n")
    wanted.file.write_bytes(issued.certificate.read_bytes() + issued.key.read_bytes())
    assert node_of(directory) == "n"
    if not why:
        check_time(wanted, NOW + later)
        return
    with pytest.raises(StartError, match=why) as raised:
        check_time(wanted, NOW + later)
    assert "\n" not in str(raised.value)


def test_a_node_whose_certificate_is_lost_joins_again(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="is lost: join again, with a token"):
        check_time(client_certificate(tmp_path, "n"), NOW)
    assert node_of(tmp_path) == ""
