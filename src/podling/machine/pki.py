"""The certificate authority of one podling: made on the first start, kept in the data directory.

It signs every certificate here, so a stolen kubeconfig of one podling opens no other. Keys are EC P-256.

Others trust the authority's key and the key that signs tokens, and neither can be made again: when one is
missing or damaged, the start is refused. What follows from a key (its certificate, its public half) is made
from it. Leaf certificates are made again when less than a month of their time is left, when their content has
changed (a new address), and when they are missing, damaged, or of another authority: at a start, and when
they are due (`renew_forever`).
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podling.machine.start import DamagedError, StartError
from podling.model.time import Clock

CA_LIFETIME = timedelta(days=3650)
LEAF_LIFETIME = timedelta(days=365)
RENEW_WITHIN = timedelta(days=30)
BACKDATE = timedelta(minutes=5)
AFTER_A_FAULT = timedelta(minutes=10)
LONGEST_SLEEP = 3600.0
"""Seconds."""

log = logging.getLogger(__name__)

Sleep = Callable[[float], Awaitable[object]]


class KeyPair(msgspec.Struct, frozen=True):
    """Paths of a PEM certificate and of its PEM private key."""

    certificate: Path
    key: Path

    @property
    def files(self) -> tuple[Path, Path]:
        return self.certificate, self.key


class Term(NamedTuple):
    """How long a certificate is valid, and how much of that is left when it is made again."""

    lifetime: timedelta = LEAF_LIFETIME
    left: timedelta = RENEW_WITHIN


USUAL = Term()


class Authority:
    """Signs certificates and writes them into `directory`; clients trust `ca.crt` there. `due`: when the
    first of those it was asked for is to be asked for again."""

    def __init__(self, directory: Path, now: datetime, term: Term = USUAL) -> None:
        """Raises DamagedError; StartError when the authority's certificate has expired or is not valid
        yet."""
        self._term = term
        self.due = now + term.lifetime
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._directory = directory
        self._now = now
        self.ca = KeyPair(directory / "ca.crt", directory / "ca.key")
        self._ca_key = _signer(self.ca.key, self.ca.certificate)
        if not self.ca.certificate.exists():
            self._certify_ca()
        self._ca_certificate = self._load_ca()

    def server(self, name: str, common_name: str, hosts: Sequence[str]) -> KeyPair:
        """The certificate `name`.crt of a server at each of `hosts` (DNS names or addresses)."""
        sans = [general_name(host) for host in hosts]
        return self._leaf(name, common_name, (), sans, ExtendedKeyUsageOID.SERVER_AUTH)

    def client(self, name: str, user: str, groups: Sequence[str] = ()) -> KeyPair:
        """The certificate `name`.crt that authenticates as `user` in `groups`."""
        return self._leaf(name, user, groups, [], ExtendedKeyUsageOID.CLIENT_AUTH)

    def beside(self, name: str) -> Authority:
        """Another authority, in the directory `name` of this one. Raises DamagedError, StartError."""
        return Authority(self._directory / name, self._now, self._term)

    def signing_key(self, name: str) -> Path:
        """The private key `name`.key that signs service account tokens, and its public half `name`.pub.
        Raises DamagedError."""
        path, public = self._directory / f"{name}.key", self._directory / f"{name}.pub"
        pem = (
            _signer(path, public)
            .public_key()
            .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
        if not public.exists():
            write_whole(public, pem, 0o644, durable=True)
        elif public.read_bytes() != pem:
            raise _damaged(public, f"is not the public half of {path}", path)
        return path

    def _certify_ca(self) -> None:
        key = self._ca_key
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "podling-ca")])
        certificate = (
            self._builder(name, name, key, CA_LIFETIME)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(sign_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        write_whole(
            self.ca.certificate, certificate.public_bytes(serialization.Encoding.PEM), 0o644, durable=True
        )

    def _load_ca(self) -> x509.Certificate:
        path, key = self.ca.certificate, self.ca.key
        try:
            certificate = x509.load_pem_x509_certificate(path.read_bytes())
        except ValueError as error:
            raise _damaged(path, "holds no certificate", key) from error
        if certificate.public_key() != self._ca_key.public_key():
            raise _damaged(path, f"is not the certificate of {key}", key)
        if self._now > certificate.not_valid_after_utc:
            why = f"{path} expired on {certificate.not_valid_after_utc:%Y-%m-%d}"
            raise StartError(f"{why}: {_anew(path, key)}")
        if self._now < certificate.not_valid_before_utc:
            why = f"{path} is valid from {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC on"
            raise StartError(f"{why}: is the clock of this machine right?")
        return certificate

    def _leaf(
        self,
        name: str,
        common_name: str,
        organizations: Sequence[str],
        sans: list[x509.GeneralName],
        usage: x509.ObjectIdentifier,
    ) -> KeyPair:
        pair = KeyPair(self._directory / f"{name}.crt", self._directory / f"{name}.key")
        subject = x509.Name(
            [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations]
            + [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
        )
        if self._still_good(pair, subject, sans):
            return pair
        self._due(self._now + self._term.lifetime)
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            self._builder(subject, self._ca_certificate.subject, key, self._term.lifetime)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(sign_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._ca_key.public_key()), critical=False
            )
        )
        if sans:
            builder = builder.add_extension(x509.SubjectAlternativeName(sans), critical=False)
        certificate = builder.sign(self._ca_key, hashes.SHA256())
        _write_key(pair.key, key)
        write_whole(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
        return pair

    def _builder(
        self, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, lifetime: timedelta
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - BACKDATE)
            .not_valid_after(self._now + lifetime)
        )

    def _still_good(self, pair: KeyPair, subject: x509.Name, sans: list[x509.GeneralName]) -> bool:
        if not (pair.certificate.exists() and pair.key.exists()):
            return False
        try:
            certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
            key = _load_key(pair.key)
            certificate.verify_directly_issued_by(self._ca_certificate)
        except (ValueError, InvalidSignature) as error:
            log.warning("%s is made anew: %s", pair.certificate, error or "it is of another authority")
            return False
        end = certificate.not_valid_after_utc
        if end - self._now <= self._term.left or certificate.subject != subject:
            return False
        # A crash between the two writes leaves a key that is not the certificate's.
        if certificate.public_key() != key.public_key():
            return False
        try:
            found = list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
        except x509.ExtensionNotFound:
            found = []
        if found == sans:
            self._due(end)
        return found == sans

    def _due(self, end: datetime) -> None:
        """One ends then."""
        self.due = min(self.due, end - self._term.left)


def names_of(pem: bytes) -> list[str]:
    """The DNS names that a certificate is for. Raises ValueError."""
    extensions = x509.load_pem_x509_certificate(pem).extensions
    try:
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return names.get_values_for_type(x509.DNSName)


async def renew_forever(
    due: datetime, renew: Callable[[], datetime], clock: Clock, sleep: Sleep = asyncio.sleep
) -> None:
    """Call `renew` in a thread when it is due, which asks an authority for all certificates again and returns
    when that is due once more; what fails is tried again later."""
    while True:
        await until(due, clock, sleep)
        try:
            due = await asyncio.to_thread(renew)
            log.info("certificates have been renewed; the next time is %s", due)
        except (OSError, ValueError, StartError) as error:
            log.error("certificates cannot be renewed: %s", error)
            due = clock.now() + AFTER_A_FAULT


async def until(moment: datetime, clock: Clock, sleep: Sleep = asyncio.sleep) -> None:
    while (left := (moment - clock.now()).total_seconds()) > 0:
        # A machine that was suspended may have missed the time.
        await sleep(min(left, LONGEST_SLEEP))


def general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=not sign_certificates,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _signer(path: Path, public: Path) -> ec.EllipticCurvePrivateKey:
    """The private key of the public key that others trust. Raises DamagedError."""
    if path.exists():
        try:
            return _load_key(path)
        except ValueError as error:
            raise _damaged(path, "holds no EC private key", public) from error
    if public.exists():
        raise _damaged(path, f"is missing beside {public}", public)
    # Before its public part: that without a key would be trusted, yet could sign nothing.
    key = ec.generate_private_key(ec.SECP256R1())
    _write_key(path, key, durable=True)
    return key


def _damaged(path: Path, what: str, other: Path) -> DamagedError:
    return DamagedError(f"{path} {what}: go back to a backup with `podling restore`; or {_anew(path, other)}")


def _anew(path: Path, other: Path) -> str:
    return f"remove {path.name} and {other.name} for new ones: what the old ones signed is worth nothing then"


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Raises ValueError."""
    if path.stat().st_mode & 0o077:
        log.warning("%s could be read by others; that is for its owner alone from now on", path)
        path.chmod(0o600)
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError(f"{path} holds no EC private key")
    return key


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey, *, durable: bool = False) -> None:
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_whole(path, pem, 0o600, durable=durable)


def write_whole(path: Path, data: bytes, mode: int, *, durable: bool = False) -> None:
    """Replace `path` whole or not at all; the file has its mode from the first byte on. `durable` is for
    content that could not be made again after a power failure."""
    partial = path.with_name(path.name + ".new")
    partial.unlink(missing_ok=True)
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    partial.replace(path)
    if durable:
        directory = os.open(path.parent, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)
