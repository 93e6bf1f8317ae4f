"""TLS as the kubelet's server speaks it, with a certificate that may be renewed while it does."""

from __future__ import annotations

import ssl
from functools import partial
from pathlib import Path

from podling.client.reread import Reread


def server_tls(certificate: Path, key: Path, client_ca: Path) -> ssl.SSLContext:
    """Clients may present a certificate; one of another authority ends the handshake, none is answered
    401. Files that were replaced are used from the next handshake on. Raises OSError or ValueError when they
    cannot be; names them.
    """
    current = Reread([certificate, key, client_ca], partial(_context, certificate, key, client_ca))
    listening = current.get()

    def choose(connection: ssl.SSLObject, name: str | None, first: ssl.SSLContext) -> None:
        connection.context = current.get()

    # Called in each handshake, also for clients that name no server.
    listening.sni_callback = choose
    return listening


def _context(certificate: Path, key: Path, client_ca: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_verify_locations(client_ca)
    except OSError as error:
        raise OSError(f"{client_ca}: {error}") from error
    try:
        context.load_cert_chain(certificate, key, password=_no_passphrase)
    except OSError as error:
        raise OSError(f"{certificate} with {key}: {error}") from error
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    # No API server comes back with a ticket, and those OpenSSL makes unasked cost as much as the handshake.
    context.num_tickets = 0
    return context


def _no_passphrase() -> str:
    """Without this, OpenSSL asks the terminal."""
    raise ValueError("the key of the kubelet's certificate is encrypted")
