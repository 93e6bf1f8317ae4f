"""The health paths of a part that runs alone, over HTTPS on this machine, as scheduler and controller manager
of Kubernetes have them. There is nothing else to ask for: all other paths are refused.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import parse_qs, unquote, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from podling.machine.start import StartError
from podling.model.codec import json
from podling.model.errors import GenericError
from podling.process.health import named, outcome
from podling.process.small_http import NOT_FOUND, TEXT, Answer, listening, serving

HOST = "127.0.0.1"
LIFETIME = timedelta(days=365)
UNCACHED = ("Cache-Control: no-cache, private",)

Fault = Callable[[], str]
"""What is wrong; empty if nothing is."""
Checks = Mapping[str, Mapping[str, Fault]]
"""The checks of each path, by name."""


def answer(method: str, target: str, checks: Checks) -> Answer:
    url = urlsplit(target)
    path = unquote(url.path)
    name = path.removeprefix("/")
    if name in checks:
        query = parse_qs(url.query, keep_blank_values=True)
        faults = {check: fault() for check, fault in checks[name].items()}
        excluded = named(query.get("exclude", ()))
        status, text = outcome(name, faults, verbose="verbose" in query, excluded=excluded)
        return Answer(status, TEXT, text.encode(), UNCACHED)
    if name in ("healthz", "livez", "readyz"):
        return NOT_FOUND._replace(headers=UNCACHED)
    why = f'forbidden: User "system:anonymous" cannot {method.lower()} path "{path}"'
    said = json.encode(GenericError(403, "Forbidden", why).status()) + b"\n"
    return Answer(403, "application/json", said, UNCACHED)


@asynccontextmanager
async def answering(part: str, port: int, checks: Checks, now: datetime) -> AsyncIterator[None]:
    """Serve the checks of `part` on `port` while the block runs; 0 is for not at all. Raises StartError."""
    if not port:
        yield
        return
    try:
        listener = listening(HOST, port)
    except OSError as error:
        raise StartError(f"{part} cannot listen on {HOST}, port {port}: {error}") from error
    async with serving(partial(answer, checks=checks), listener, _context(part, now)):
        yield


def _context(part: str, now: datetime) -> ssl.SSLContext:
    """Of a certificate made for this run, which asks for no trust, as Kubernetes' is without a file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, part)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + LIFETIME)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # The ssl module loads a certificate from files only.
    with tempfile.NamedTemporaryFile() as pem:
        pem.write(certificate.public_bytes(serialization.Encoding.PEM) + private)
        pem.flush()
        context.load_cert_chain(pem.name)
    return context
