"""Client certificates of every shape, signed by whoever is to sign them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CN, GROUP, UNIT = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME
UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
CLIENT, SERVER, ANY = (
    ExtendedKeyUsageOID.CLIENT_AUTH,
    ExtendedKeyUsageOID.SERVER_AUTH,
    ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,
)
DAY = timedelta(days=1)
TEXT, PRINTABLE, OLD = _ASN1Type.UTF8String, _ASN1Type.PrintableString, _ASN1Type.T61String


class Attribute(msgspec.Struct, frozen=True):
    oid: x509.ObjectIdentifier
    value: str
    type: _ASN1Type = TEXT

    def built(self) -> x509.NameAttribute[str]:
        with warnings.catch_warnings(action="ignore"):
            return x509.NameAttribute(self.oid, self.value, self.type, _validate=False)


class Shape(msgspec.Struct, frozen=True):
    """`subject`: relative names, of one or more attributes each. `days`: from when to when it is valid,
    counted from now. `way`: names of the intermediate authorities between the root and it, which are sent
    along unless `is_bare`."""

    subject: Sequence[Sequence[Attribute]]
    usages: Sequence[x509.ObjectIdentifier] = (CLIENT,)
    days: tuple[int, int] = (-1, 1)
    way: Sequence[str] = ()
    is_bare: bool = False
    key_usage: str = "digital_signature"
    critical: str = ""


class Signer(msgspec.Struct, frozen=True):
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def read_signer(certificate: Path, key: Path) -> Signer:
    private = serialization.load_pem_private_key(key.read_bytes(), None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    return Signer(x509.load_pem_x509_certificate(certificate.read_bytes()), private)


def authority(
    name: str,
    signer: Signer | None = None,
    *,
    path_length: int | None = None,
    days: tuple[int, int] = (-1, 1),
) -> Signer:
    """Its own root without `signer`. `days` are as in `Shape`."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(CN, name)])
    above = signer or Signer(None, key)  # type: ignore[arg-type]
    issuer = signer.certificate.subject if signer else subject
    builder = _builder(subject, issuer, key, days, above.key)
    basic = x509.BasicConstraints(ca=True, path_length=path_length)
    return Signer(
        builder.add_extension(basic, critical=True)
        .add_extension(_key_usage("key_cert_sign"), critical=True)
        .sign(above.key, hashes.SHA256()),
        key,
    )


def write(shape: Shape, signers: Sequence[Signer], file: Path) -> None:
    """`file`.crt and .key of a certificate that the last of `signers`, from the root down, has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    last = signers[-1]
    subject = x509.Name(
        [x509.RelativeDistinguishedName([one.built() for one in names]) for names in shape.subject]
    )
    builder = _builder(subject, last.certificate.subject, key, shape.days, last.key)
    if shape.usages:
        builder = builder.add_extension(x509.ExtendedKeyUsage(shape.usages), critical=False)
    if shape.key_usage:
        builder = builder.add_extension(_key_usage(shape.key_usage), critical=True)
    if shape.critical:
        unknown = x509.UnrecognizedExtension(x509.ObjectIdentifier(shape.critical), b"\x05\x00")
        builder = builder.add_extension(unknown, critical=True)
    sent = [builder.sign(last.key, hashes.SHA256())]
    if not shape.is_bare:
        sent += [
            one.certificate for one in reversed(signers) if one.certificate.issuer != one.certificate.subject
        ]
    pem = serialization.Encoding.PEM
    file.with_suffix(".crt").write_bytes(b"".join(one.public_bytes(pem) for one in sent))
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    file.with_suffix(".key").write_bytes(key.private_bytes(pem, form, plain))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    days: tuple[int, int],
    signer: ec.EllipticCurvePrivateKey,
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder(subject_name=subject, issuer_name=issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + days[0] * DAY)
        .not_valid_after(now + days[1] * DAY)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )


def _key_usage(allowed: str) -> x509.KeyUsage:
    names = (
        *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
        *("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
    )
    return x509.KeyUsage(**{name: name == allowed for name in names})
