"""A client's TLS: whom it trusts and which certificate it shows, inline or in files that may be replaced.

Errors name the fields of a kubeconfig, where all of this is configured.
"""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from podling.process.tls import Reread, connecting_context

Pem = bytes | Path
"""Inline bytes, or a file."""


class TlsError(OSError):
    """A certificate or authority cannot be used; the message names the field."""


class Trust(NamedTuple):
    """Whom to trust: the machine's authorities when `authority` is empty; `insecure` does not verify the
    server."""

    authority: Pem = b""
    insecure: bool = False


class Pair(NamedTuple):
    """A client certificate with its key; none when both are empty."""

    certificate: Pem = b""
    key: Pem = b""


def client_tls(trust: Trust, pair: Pair) -> Reread[ssl.SSLContext]:
    """A TLS context that is made anew when one of its files was replaced, so that new connections are made.
    Raises TlsError."""
    files = [pem for pem in (trust.authority, *pair) if isinstance(pem, Path)]
    return Reread(files, partial(_context, trust, pair))


def content(pem: Pem) -> bytes:
    """The bytes of inline PEM or of its file. Raises OSError."""
    return pem.read_bytes() if isinstance(pem, Path) else pem


def _context(trust: Trust, pair: Pair) -> ssl.SSLContext:
    try:
        authorities = content(trust.authority) if trust.authority else None
        context = connecting_context(authorities, verify=not trust.insecure)
    except OSError as error:
        raise TlsError(f"certificate-authority: {error}") from error
    if not pair.certificate:
        return context

    def refuse_passphrase() -> str:
        raise TlsError("the key is encrypted, and there is no field for its passphrase")

    try:
        certificate, key = content(pair.certificate), content(pair.key)
        # Kubernetes' kubelet has both in one file.
        with _file(certificate if certificate == key else certificate + b"\n" + key) as name:
            # Without a callback, OpenSSL asks for the passphrase on the terminal.
            context.load_cert_chain(name, password=refuse_passphrase)
    except OSError as error:
        raise TlsError(f"client-certificate with client-key: {error}") from error
    return context


@contextmanager
def _file(pem: bytes) -> Iterator[str]:
    """The name of a file with it, since the ssl module loads a client certificate from files only: in memory
    where the system has such, so that no key comes to the disk."""
    if sys.platform == "linux":
        with open(os.memfd_create("client"), "wb") as file:
            file.write(pem)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        file.write(pem)
        file.flush()
        yield file.name
