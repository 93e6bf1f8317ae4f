"""The TLS contexts of this process: of servers that know their clients by certificate, and of clients."""

from __future__ import annotations

import ssl
from pathlib import Path


def listening_context(certificate: Path, key: Path, client_ca: Path, *, tickets: int) -> ssl.SSLContext:
    """Clients may present a certificate of `client_ca`; one of another authority ends the handshake.

    `tickets` of a session are sent after each handshake: OpenSSL's second one costs as much as the handshake.
    Raises OSError or ValueError for a file that cannot be used, and names it.
    """

    def refuse_passphrase() -> str:
        raise ValueError(f"the key {key} is encrypted")

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_verify_locations(client_ca)
    except OSError as error:
        raise OSError(f"{client_ca}: {error}") from error
    try:
        # Without a password, OpenSSL asks the terminal.
        context.load_cert_chain(certificate, key, password=refuse_passphrase)
    except OSError as error:
        raise OSError(f"{certificate} with {key}: {error}") from error
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    context.num_tickets = tickets
    return context


def connecting_context(authorities: bytes | None = None, *, verify: bool = True) -> ssl.SSLContext:
    """A client that trusts these authorities (PEM), those of the machine if None, or any server if not
    `verify`. Raises OSError for authorities that cannot be used."""
    if not verify:
        # Not a default context: to load the machine's authorities takes 30 ms.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    if authorities is not None and not authorities.strip():
        # Such a context would trust whom the machine trusts.
        raise OSError("it is empty")
    context = ssl.create_default_context(cadata=authorities and authorities.decode("ascii", errors="ignore"))
    # As in Go: what the file holds is trusted, root or not, and certificates need not have every extension.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
