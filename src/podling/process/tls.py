"""The TLS contexts of this process: of servers that know their clients by certificate, and of clients; and
what is made of files again when they were replaced.

`Reread` looks at its files at each use, which takes microseconds, so nothing has to watch or poll.
"""

from __future__ import annotations

import ssl
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

OUT_OF_TIME_TOO = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME of OpenSSL, for which `ssl` has no name."""

VERSIONS = {
    # Older ones are not spoken, whoever allows them.
    "VersionTLS10": ssl.TLSVersion.TLSv1_2,
    "VersionTLS11": ssl.TLSVersion.TLSv1_2,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
"""As `--tls-min-version` has them."""
NEWEST_SUITES = frozenset(
    {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
)
"""Of TLS 1.3: always offered."""
SUITES = {
    f"TLS_{exchange}_WITH_{go}": prefix + openssl
    for exchange, prefix in {"ECDHE_ECDSA": "ECDHE-ECDSA-", "ECDHE_RSA": "ECDHE-RSA-", "RSA": ""}.items()
    for go, openssl in {
        "AES_128_CBC_SHA": "AES128-SHA",
        "AES_128_CBC_SHA256": "AES128-SHA256",
        "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
        "AES_256_CBC_SHA": "AES256-SHA",
        "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
        "CHACHA20_POLY1305": "CHACHA20-POLY1305",
        "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    }.items()
    if prefix or not go.startswith("CHACHA")
}
"""By the names of `--tls-cipher-suites`; RC4 and 3DES, which Kubernetes takes, OpenSSL has not."""

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
                # Not before: a command's first request does not wait for it.
                import logging

                names = ", ".join(str(file) for file in self._files)
                logging.getLogger(__name__).warning(
                    "what has replaced %s cannot be used, the old stays in use: %s", names, error
                )
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


class Named(NamedTuple):
    """What a server shows to who calls it by one of `names`, such as `a.example` or `*.example`."""

    names: Collection[str]
    context: Reread[ssl.SSLContext]


def followed_context(
    files: Sequence[Path], make: Callable[[], ssl.SSLContext], others: Sequence[Named] = ()
) -> ssl.SSLContext:
    """The context of a server that `make` makes of `files`, for who calls it by none of the names of the
    `others`. Files that were replaced are used from the next handshake on. Raises OSError or ValueError when
    they cannot be; names them."""
    current = Reread(files, make)
    listening = current.get()
    by_name = {name.lower(): other.context for other in reversed(others) for name in other.names}

    def choose(connection: ssl.SSLObject, name: str | None, first: ssl.SSLContext) -> None:
        called = (name or "").lower().rstrip(".")
        wild = f"*.{called.partition('.')[2]}"
        connection.context = (by_name.get(called) or by_name.get(wild) or current).get()

    # Called in each handshake, also for clients that name no server.
    listening.sni_callback = choose
    return listening


class Offer(NamedTuple):
    """What a server speaks: TLS from `oldest` on, and of TLS 1.2 the cipher suites `ciphers`, in OpenSSL's
    form; its defaults where neither is said."""

    oldest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    ciphers: str = ""


USUAL_OFFER = Offer()


def offer(oldest: str = "", suites: Sequence[str] = ()) -> Offer:
    """What is told in Kubernetes' words. Raises ValueError in them."""
    if oldest and oldest not in VERSIONS:
        raise ValueError(f'unknown tls version "{oldest}"')
    for suite in suites:
        if suite not in SUITES and suite not in NEWEST_SUITES:
            raise ValueError(f"Cipher suite {suite} not supported or doesn't exist")
    ciphers = ":".join(SUITES[suite] for suite in suites if suite in SUITES)
    if suites and not ciphers:
        return Offer(ssl.TLSVersion.TLSv1_3)
    return Offer(VERSIONS.get(oldest, USUAL_OFFER.oldest), ciphers)


def listening_context(
    certificate: Path, key: Path, client_cas: Sequence[Path], *, tickets: int, offer: Offer = USUAL_OFFER
) -> ssl.SSLContext:
    """Clients may present a certificate of `client_cas`; one of others, or not for clients, ends the
    handshake. Whether it is of the time is to be asked of each request, with `lifetime`.

    `tickets` of a session are sent after each handshake: OpenSSL's second one costs as much as the handshake.
    Raises OSError or ValueError for a file that cannot be used, and names it.
    """

    def refuse_passphrase() -> str:
        raise ValueError(f"the key {key} is encrypted")

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    for client_ca in client_cas:
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
    _trust_as_go_does(context)
    # The complement of a flag that `ssl` knows would take this one away again.
    context.verify_flags |= OUT_OF_TIME_TOO
    context.minimum_version = offer.oldest
    if offer.ciphers:
        context.set_ciphers(offer.ciphers)
    context.set_alpn_protocols(["http/1.1"])
    context.num_tickets = tickets
    return context


class Lifetime(NamedTuple):
    """From when to when something is valid, both included."""

    begins: datetime
    ends: datetime

    def has(self, moment: datetime) -> bool:
        return self.begins <= moment <= self.ends


ALWAYS = Lifetime(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


def verified_chain(connection: ssl.SSLObject) -> tuple[bytes, ...]:
    """The certificate that the other end has shown, then who signed it, up to an authority that is trusted;
    it alone where the session was resumed. DER; none if it has shown none."""
    shown = connection.getpeercert(binary_form=True)
    if shown is None:
        return ()
    if sys.version_info >= (3, 13):
        return (shown, *connection.get_verified_chain()[1:])
    # Older ones have it, too, where it is not public; the form is DER.
    chain = connection._sslobj.get_verified_chain() or ()  # type: ignore[attr-defined]
    return (shown, *(one.public_bytes(2) for one in chain[1:]))


def lifetime(chain: Sequence[bytes]) -> Lifetime:
    """When all certificates of a chain are valid. Raises ValueError for what is no certificate."""
    from cryptography.x509 import load_der_x509_certificate

    certificates = [load_der_x509_certificate(one) for one in chain]
    return Lifetime(
        max(one.not_valid_before_utc for one in certificates),
        min(one.not_valid_after_utc for one in certificates),
    )


def import_aiohttp() -> None:
    """Import aiohttp without the machine's authorities, which it reads twice (60 ms) for
    contexts that nothing here uses: each caller hands it a context of its own, and those trust nobody."""
    here, load = threading.get_ident(), ssl.SSLContext.set_default_verify_paths

    def skip(context: ssl.SSLContext) -> None:
        if threading.get_ident() != here:
            load(context)

    ssl.SSLContext.set_default_verify_paths = skip  # type: ignore[assignment, method-assign]
    try:
        import aiohttp  # noqa: F401
    finally:
        # It is inherited.
        del ssl.SSLContext.set_default_verify_paths


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
    _trust_as_go_does(context)
    return context


def _trust_as_go_does(context: ssl.SSLContext) -> None:
    """What a file of authorities holds is trusted, root or not, and certificates need not have every
    extension."""
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
