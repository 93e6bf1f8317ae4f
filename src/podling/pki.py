"""The certificate authority of one podling: made on the first start, kept in the data directory.

Everything that speaks TLS here is signed by it, so a stolen kubeconfig of one podling opens no other. Keys
are EC P-256. Leaves are renewed when they have less than a month left, or when what they say has changed (a
new address).
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFETIME = timedelta(days=3650)
LEAF_LIFETIME = timedelta(days=365)
RENEW_WITHIN = timedelta(days=30)
BACKDATE = timedelta(minutes=5)


class KeyPair(msgspec.Struct, frozen=True):
    """Paths of a PEM certificate and of its PEM private key."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates into `directory`; `ca.crt` there is what clients trust."""

    def __init__(self, directory: Path, now: datetime) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._directory = directory
        self._now = now
        self.ca = KeyPair(directory / "ca.crt", directory / "ca.key")
        if not (self.ca.certificate.exists() and self.ca.key.exists()):
            self._create_ca()
        self._ca_certificate = x509.load_pem_x509_certificate(self.ca.certificate.read_bytes())
        self._ca_key = _load_key(self.ca.key)

    def server(self, name: str, common_name: str, hosts: Sequence[str]) -> KeyPair:
        """A certificate `name`.crt for a server known as every one of `hosts` (DNS names or addresses)."""
        sans = [_general_name(host) for host in hosts]
        return self._leaf(name, common_name, (), sans, ExtendedKeyUsageOID.SERVER_AUTH)

    def client(self, name: str, user: str, groups: Sequence[str] = ()) -> KeyPair:
        """A certificate `name`.crt that authenticates as `user` in `groups`."""
        return self._leaf(name, user, groups, [], ExtendedKeyUsageOID.CLIENT_AUTH)

    def signing_key(self, name: str) -> Path:
        """A private key `name`.key that signs service account tokens."""
        path = self._directory / f"{name}.key"
        if not path.exists():
            _write_key(path, ec.generate_private_key(ec.SECP256R1()))
        return path

    def _create_ca(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "podling-ca")])
        certificate = (
            self._builder(name, name, key, CA_LIFETIME)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(sign_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        # The key first: a certificate without its key would be trusted yet could sign nothing.
        _write_key(self.ca.key, key)
        _write(self.ca.certificate, certificate.public_bytes(serialization.Encoding.PEM), 0o644)

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
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            self._builder(subject, self._ca_certificate.subject, key, LEAF_LIFETIME)
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
        _write(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
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
        certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
        if certificate.not_valid_after_utc - self._now < RENEW_WITHIN or certificate.subject != subject:
            return False
        # A crash between the two writes leaves a key that is not the certificate's.
        if certificate.public_key() != _load_key(pair.key).public_key():
            return False
        try:
            found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return not sans
        return list(found) == sans


def _general_name(host: str) -> x509.GeneralName:
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


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError(f"{path} holds no EC private key")
    return key


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write(path, pem, 0o600)


def _write(path: Path, data: bytes, mode: int) -> None:
    """Replace `path` whole or not at all; the mode holds from the first byte on."""
    partial = path.with_name(path.name + ".new")
    partial.unlink(missing_ok=True)
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
    partial.replace(path)
