"""What is said of certificates that lead to no etcd, by a real one that asks its clients for theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from peer.control_plane import HOST, etcd_server
from podling.assemble.etcd import open_etcd
from podling.assemble.etcd_certificates import fault_of
from podling.assemble.settle import EtcdOptions
from podling.machine.pki import Authority
from podling.machine.start import StartError
from ports import free_port


class Secured(NamedTuple):
    """An etcd, who signs for it, and somebody else."""

    url: str
    authority: Authority
    other: Authority

    def options(self, *, signed_by: Authority | None = None, **changed: Path | None) -> EtcdOptions:
        pair = (signed_by or self.authority).client("podling", "podling")
        files = {"ca": self.authority.ca.certificate, "certificate": pair.certificate, "key": pair.key}
        return EtcdOptions((self.url,), **(files | changed))

    def at(self, *urls: str) -> EtcdOptions:
        given = self.options()
        return EtcdOptions(urls, given.ca, given.certificate, given.key)


@pytest.fixture(scope="module")
def secured(kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory, now = tmp_path_factory.mktemp("secured"), datetime.now(UTC)
    authority, other = (Authority(directory / name, now) for name in ("own", "other"))
    shown = authority.server("etcd", "etcd", [HOST])
    tls = {
        "cert-file": shown.certificate,
        "key-file": shown.key,
        "client-cert-auth": "true",
        "trusted-ca-file": authority.ca.certificate,
    }
    with etcd_server(kubernetes_programs / "etcd", directory, durable=False, tls=tls) as url:
        found = Secured(url, authority, other)

        async def wait_for() -> None:
            await (await open_etcd(found.options())).close()

        asyncio.run(wait_for())
        yield found


FAULTS: dict[str, tuple[Callable[[Secured], EtcdOptions], str]] = {
    "all is well": (lambda one: one.options(), ""),
    "nobody answers": (lambda one: one.at(f"https://{HOST}:{free_port()}"), ""),
    "one of two answers": (lambda one: one.at(f"https://{HOST}:{free_port()}", one.url), ""),
    "another authority": (
        lambda one: one.options(ca=one.other.ca.certificate),
        "--etcd-cafile does not vouch for the certificate of {url}: unable to get local issuer certificate",
    ),
    "a key for an authority": (
        lambda one: one.options(ca=one.options().key),
        "--etcd-cafile: {key} holds no certificate that can be read",
    ),
    "no certificate": (
        lambda one: one.options(certificate=None, key=None),
        "--etcd-servers: {url} asks for a certificate: give --etcd-certfile and --etcd-keyfile",
    ),
    "a certificate of another authority": (
        lambda one: one.options(signed_by=one.other),
        "--etcd-certfile: {url} refuses the certificate (TLSV1_ALERT_UNKNOWN_CA)",
    ),
    "the key of another certificate": (
        lambda one: one.options(key=one.authority.ca.certificate),
        "--etcd-certfile and --etcd-keyfile: {certificate} and {ca} are no certificate and its key, in PEM",
    ),
    "without TLS": (
        lambda one: one.at(one.url.replace("https", "http")),
        "--etcd-servers: {plain} speaks TLS: write https://",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
async def test_what_is_wrong_is_said_by_its_option(secured: Secured, case: str) -> None:
    options, fault = FAULTS[case]
    given = secured.options()
    places = {"ca": given.ca, "certificate": given.certificate, "key": given.key}
    said = fault.format(url=secured.url, plain=secured.url.replace("https", "http"), **places)
    assert await fault_of(options(secured)) == said


async def test_a_store_is_not_tried_for_long(secured: Secured) -> None:
    with pytest.raises(StartError, match="refuses the certificate"):
        await open_etcd(secured.options(signed_by=secured.other))


async def test_without_tls_nothing_is_wrong(kubernetes_programs: Path, tmp_path: Path) -> None:
    with etcd_server(kubernetes_programs / "etcd", tmp_path, durable=False) as url:
        await (await open_etcd(EtcdOptions((url,)))).close()
        assert await fault_of(EtcdOptions((url,))) == ""
