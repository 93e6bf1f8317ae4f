"""What the API server shows and whom it believes, given in kube-apiserver's form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from podling.assemble.settle import ServingOptions
from podling.cli.options import serving


@click.command()
@serving
def told(showing: dict[str, Any]) -> None:
    click.echo(repr(ServingOptions(**showing)))


C, K = Path("/dev/null"), Path("k")
"""One that is there, and one that is not looked for yet."""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], ServingOptions()),
        (["--tls-cert-file=/dev/null", "--tls-private-key-file=/dev/null"], ServingOptions(shown=(C, C))),
        (["--client-ca-file=/dev/null"], ServingOptions(client_ca=C)),
        (["--tls-sni-cert-key=/dev/null,k"], ServingOptions(by_name=((C, K, ()),))),
        (
            ["--tls-min-version=VersionTLS13", "--tls-cipher-suites=TLS_AES_128_GCM_SHA256"],
            ServingOptions(oldest="VersionTLS13", suites=("TLS_AES_128_GCM_SHA256",)),
        ),
        (
            ["--tls-sni-cert-key=/dev/null,k:a.example,*.b", "--tls-sni-cert-key=/dev/null,k"],
            ServingOptions(by_name=((C, K, ("a.example", "*.b")), (C, K, ()))),
        ),
    ],
)
def test_what_is_given_is_what_the_server_is_told(given: list[str], expected: ServingOptions) -> None:
    assert CliRunner().invoke(told, given).output == f"{expected!r}\n"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("--tls-cert-file=/dev/null", "--tls-cert-file and --tls-private-key-file go together"),
        ("--tls-sni-cert-key=c", "expected comma separated certificate and key file paths"),
        ("--tls-min-version=VersionTLS14", 'unknown tls version "VersionTLS14"'),
        (
            "--tls-cipher-suites=TLS_AES_128_GCM_SHA256,TLS_NOPE",
            "Cipher suite TLS_NOPE not supported or doesn't exist",
        ),
        ("--tls-sni-cert-key=c,:a", "expected comma separated certificate and key file paths"),
    ],
)
def test_what_cannot_be(given: str, why: str) -> None:
    said = CliRunner().invoke(told, [given])
    assert (said.exit_code, why in said.output) == (2, True)
