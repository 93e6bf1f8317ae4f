"""TLS of a server that knows its clients by certificate: the API server's and the kubelet's."""

from __future__ import annotations

import ssl
from functools import partial
from pathlib import Path


def listening_context(certificate: Path, key: Path, client_ca: Path, *, tickets: int) -> ssl.SSLContext:
    """Clients may present a certificate of `client_ca`; one of another authority ends the handshake.

    `tickets` of a session are sent after each handshake: OpenSSL's second one costs as much as the handshake.
    Raises OSError or ValueError for a file that cannot be used, and names it.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_verify_locations(client_ca)
    except OSError as error:
        raise OSError(f"{client_ca}: {error}") from error
    try:
        # Without a password, OpenSSL asks the terminal.
        context.load_cert_chain(certificate, key, password=partial(_refuse_passphrase, key))
    except OSError as error:
        raise OSError(f"{certificate} with {key}: {error}") from error
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    context.num_tickets = tickets
    return context


def _refuse_passphrase(key: Path) -> str:
    raise ValueError(f"the key {key} is encrypted")
