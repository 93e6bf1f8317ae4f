"""What is wrong with a certificate request: whatever Go's `crypto/x509` cannot read or does not verify.

Go's words are used where they are few; elsewhere those of the library say it. The library refuses a few odd
encodings that Go reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import SignatureAlgorithmOID

from podling.apiserver.cel.urls import parsed_url
from podling.model.codec.quoting import quoted
from podling.model.rules.certificates import read_request

CURVES = frozenset({"secp224r1", "secp256r1", "secp384r1", "secp521r1"})
SHA2 = frozenset({"sha256", "sha384", "sha512"})
VERIFIED = frozenset(
    {
        SignatureAlgorithmOID.RSA_WITH_SHA1,
        SignatureAlgorithmOID.RSA_WITH_SHA256,
        SignatureAlgorithmOID.RSA_WITH_SHA384,
        SignatureAlgorithmOID.RSA_WITH_SHA512,
        SignatureAlgorithmOID.ECDSA_WITH_SHA1,
        SignatureAlgorithmOID.ECDSA_WITH_SHA256,
        SignatureAlgorithmOID.ECDSA_WITH_SHA384,
        SignatureAlgorithmOID.ECDSA_WITH_SHA512,
        SignatureAlgorithmOID.ED25519,
    }
)
"""The algorithms Go verifies, besides RSA-PSS with a salt as long as its hash."""
SMALLEST_RSA = 1024
UNIMPLEMENTED = "x509: cannot verify signature: algorithm unimplemented"
SEQUENCE, BOOLEAN = 0x30, 0x01
EMAIL, DNS, URI, IP = 0x81, 0x82, 0x86, 0x87
"""The tags of the alternative names that are looked at; the others are passed over."""
TEXTS = {EMAIL: "rfc822Name", DNS: "dNSName", URI: "uniformResourceIdentifier"}
ADDRESSES = frozenset({4, 16})
EXTENSION_REQUEST = x509.ObjectIdentifier("1.2.840.113549.1.9.14")
ALTERNATIVE_NAMES = b"\x55\x1d\x11"
"""The identifier of that extension, 2.5.29.17, encoded."""


def request_fault(pem: bytes) -> str:
    """Empty for a request, in PEM, that Kubernetes takes."""
    try:
        request = read_request(pem)
        return _key_fault(request) or _extension_fault(request) or _signature_fault(request)
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion) as error:
        return str(error)


def _key_fault(request: x509.CertificateSigningRequest) -> str:
    """Also raises ValueError, for a subject that cannot be read."""
    key = request.public_key()
    if isinstance(key, ec.EllipticCurvePublicKey):
        if key.curve.name not in CURVES:
            return "x509: unsupported elliptic curve"
        whole = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        if whole not in request.tbs_certrequest_bytes:
            return "ecdsa: invalid uncompressed public key"
    for attribute in request.subject:
        is_text = attribute._type.name != "NumericString" or set(str(attribute.value)) <= set("0123456789 ")
        if not is_text:
            return "x509: invalid RDNSequence: invalid attribute value: invalid NumericString"
    return ""


def _extension_fault(request: x509.CertificateSigningRequest) -> str:
    seen: set[bytes] = set()
    for attribute in request.attributes:
        if attribute.oid != EXTENSION_REQUEST:
            continue
        if attribute._type != SEQUENCE:
            return "asn1: structure error: tags don't match"
        for _, extension in elements(attribute.value):
            parts = list(elements(extension))
            if len(parts) < 2:
                return "asn1: syntax error: sequence truncated"
            (_, name), *flags, (_, value) = parts
            if any(tag == BOOLEAN and flag not in (b"\x00", b"\xff") for tag, flag in flags):
                return "asn1: syntax error: invalid boolean"
            if name in seen:
                return "x509: certificate request contains duplicate requested extensions"
            seen.add(name)
            if name == ALTERNATIVE_NAMES and (why := _names_fault(value)):
                return why
    return ""


def _names_fault(extension: bytes) -> str:
    """Of the alternative names, as they are encoded."""
    try:
        tag, names = next(elements(extension), (0, b""))
    except ValueError:
        tag, names = 0, b""
    if tag != SEQUENCE:
        return "x509: invalid subject alternative names"
    try:
        return next(filter(None, (_name_fault(*name) for name in elements(names))), "")
    except ValueError:
        return "x509: invalid subject alternative name"


def _name_fault(tag: int, name: bytes) -> str:
    if tag == IP and len(name) not in ADDRESSES:
        return f"x509: cannot parse IP address of length {len(name)}"
    if tag not in TEXTS:
        return ""
    if not name.isascii():
        return f"x509: SAN {TEXTS[tag]} is malformed"
    if tag != URI:
        return ""
    text = name.decode()
    try:
        host = unquote(parsed_url(text).host)
    except ValueError as error:
        return f"x509: cannot parse URI {quoted(text)}: {error}"
    is_domain = all("!" <= letter <= "~" for letter in host) and all(host.split("."))
    if host and not is_domain:
        return f"x509: cannot parse URI {quoted(text)}: invalid domain"
    return ""


def elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """The tag and the content of each element of DER. Raises ValueError for what ends early, and for tags and
    lengths that are written in a longer form than they need."""
    at = 0
    while at < len(der):
        tag, length = der[at], der[at + 1] if at + 1 < len(der) else 0xFF
        at += 2
        if length & 0x80:
            size = der[at : at + (length & 0x7F)]
            at += length & 0x7F
            length = int.from_bytes(size, "big")
            if not 1 <= len(size) <= 4 or length < 0x80 or not size[0]:
                raise ValueError("asn1: structure error: invalid length")
        if tag & 0x1F == 0x1F or at + length > len(der):
            raise ValueError("asn1: syntax error: data truncated")
        yield tag, der[at : at + length]
        at += length


def _signature_fault(request: x509.CertificateSigningRequest) -> str:
    algorithm, key = request.signature_algorithm_oid, request.public_key()
    if algorithm == SignatureAlgorithmOID.RSASSA_PSS:
        parameters, hashed = request.signature_algorithm_parameters, request.signature_hash_algorithm
        if hashed is None or hashed.name not in SHA2 or not isinstance(parameters, padding.PSS):
            return UNIMPLEMENTED
        if parameters._salt_length != hashed.digest_size:
            return UNIMPLEMENTED
    elif algorithm not in VERIFIED:
        return UNIMPLEMENTED
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < SMALLEST_RSA:
        link = "https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size"
        return f"crypto/rsa: {key.key_size}-bit keys are insecure (see {link})"
    if request.is_signature_valid:
        return ""
    if isinstance(key, rsa.RSAPublicKey):
        return "crypto/rsa: verification error"
    kind = "ECDSA" if isinstance(key, ec.EllipticCurvePublicKey) else "Ed25519"
    return f"x509: {kind} verification failure"
