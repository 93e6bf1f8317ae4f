"""The TLS contexts of clients and servers."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from podling.machine.pki import Authority
from podling.process.tls import SUITES, Offer, connecting_context, listening_context, offer


def test_no_authority_is_read_to_believe_anybody() -> None:
    context = connecting_context(verify=False)
    assert context.verify_mode is ssl.CERT_NONE
    assert not context.check_hostname
    assert context.cert_store_stats()["x509"] == 0


@pytest.mark.parametrize(
    ("oldest", "suites", "expected"),
    [
        ("", (), Offer()),
        ("VersionTLS10", (), Offer()),
        ("VersionTLS13", (), Offer(ssl.TLSVersion.TLSv1_3)),
        ("", ("TLS_AES_128_GCM_SHA256",), Offer(ssl.TLSVersion.TLSv1_3)),
        (
            "VersionTLS12",
            ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_RSA_WITH_AES_128_CBC_SHA"),
            Offer(ciphers="ECDHE-ECDSA-AES256-GCM-SHA384:AES128-SHA"),
        ),
    ],
)
def test_what_is_spoken(oldest: str, suites: tuple[str, ...], expected: Offer) -> None:
    assert offer(oldest, suites) == expected


@pytest.mark.parametrize("suite", SUITES)
def test_each_suite_is_one_of_openssl(suite: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(offer(suites=[suite]).ciphers)
    assert [one["name"] for one in context.get_ciphers() if one["protocol"] != "TLSv1.3"]


def test_a_server_speaks_what_it_is_told(tmp_path: Path) -> None:
    authority = Authority(tmp_path, datetime.now(UTC))
    pair = authority.server("server", "server", ["127.0.0.1"])
    told = offer("VersionTLS12", ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"])
    shown = pair.certificate, pair.key, (authority.ca.certificate,)
    context = listening_context(*shown, tickets=1, offer=told)
    older = [one["name"] for one in context.get_ciphers() if one["protocol"] != "TLSv1.3"]
    assert older == ["ECDHE-ECDSA-AES256-GCM-SHA384"]
    newest = listening_context(*shown, tickets=1, offer=offer("VersionTLS13"))
    assert newest.minimum_version is ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize("authorities", [b"", b" \n", b"no certificate"])
def test_authorities_that_are_none_are_refused(authorities: bytes) -> None:
    """Else such a client would believe whom the machine believes."""
    with pytest.raises(OSError):
        connecting_context(authorities)


def test_aiohttp_reads_no_authorities_and_others_do(tmp_path: Path) -> None:
    """A connection with aiohttp's own context, which nothing here makes, would believe nobody."""
    Authority(tmp_path, datetime.now(UTC))
    code = (
        "import ssl; from podling.process.tls import import_aiohttp; import_aiohttp(); "
        "from aiohttp import connector; own = connector._SSL_CONTEXT_VERIFIED; "
        "print(own.cert_store_stats()['x509'], own.verify_mode is ssl.CERT_REQUIRED, "
        "ssl.create_default_context().cert_store_stats()['x509'])"
    )
    trusted = {**os.environ, "SSL_CERT_FILE": str(tmp_path / "ca.crt"), "SSL_CERT_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=trusted
    )
    assert done.stdout == "0 True 1\n"
