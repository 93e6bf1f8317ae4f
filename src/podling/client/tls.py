"""A client's TLS: whom it trusts and which certificate it shows, inline or in files that may be replaced.

Errors name the fields of a kubeconfig, where all of this is configured. `Reread` makes a value again when its
files were replaced. It looks at the files at each use, which takes microseconds, so nothing has to watch or
poll.
"""

from __future__ import annotations

import logging
import ssl
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from podling.process.tls import connecting_context

T = TypeVar("T")

log = logging.getLogger(__name__)

Pem = bytes | Path
"""Inline bytes, or a file."""

_Stamp = tuple[int, int, int] | None


class Reread(Generic[T]):
    """The result of `make`, which reads `files` and raises OSError or ValueError. The first error is raised
    to the caller; after a later one the previous value stays in use: certificate and key are two files, and
    do not fit together between the two writes."""

    def __init__(self, files: Sequence[Path], make: Callable[[], T]) -> None:
        self._files = files
        self._make = make
        self._stamps = self._look()
        self._made = make()

    def get(self) -> T:
        stamps = self._look()
        if stamps != self._stamps:
            # What is written from here on changes the stamps once more.
            self._stamps = stamps
            try:
                self._made = self._make()
            except (OSError, ValueError) as error:
                names = ", ".join(str(file) for file in self._files)
                log.warning("what has replaced %s cannot be used, the old stays in use: %s", names, error)
        return self._made

    def _look(self) -> list[_Stamp]:
        stamps: list[_Stamp] = []
        for file in self._files:
            try:
                found = file.stat()
            except OSError:
                stamps.append(None)
            else:
                stamps.append((found.st_mtime_ns, found.st_ino, found.st_size))
        return stamps


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
        # The ssl module loads a client certificate from files only.
        with tempfile.NamedTemporaryFile() as pem:
            pem.write(certificate + b"\n" + key)
            pem.flush()
            # Without a callback, OpenSSL asks for the passphrase on the terminal.
            context.load_cert_chain(pem.name, password=refuse_passphrase)
    except OSError as error:
        raise TlsError(f"client-certificate with client-key: {error}") from error
    return context
