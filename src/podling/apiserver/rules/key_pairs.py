"""Whether a certificate and a private key in PEM belong together, in the words of Go's tls package."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519
from cryptography.hazmat.primitives.serialization import load_der_private_key

from podling.model.rules.certificates import blocks

CERTIFICATE, PRIVATE_KEY = "CERTIFICATE", "PRIVATE KEY"

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def pair_fault(certificate: bytes, key: bytes) -> str:
    """Empty if there is none."""
    found = [(kind, content) for kind, _, content in blocks(certificate)]
    content = next((content for kind, content in found if kind == CERTIFICATE), None)
    if content is None:
        return f"tls: {_no_certificate([kind for kind, _ in found])}"
    skipped = []
    for kind, _, of_key in blocks(key):
        if kind == PRIVATE_KEY or kind.endswith(f" {PRIVATE_KEY}"):
            return _fault(content, of_key)
        skipped.append(kind)
    return f"tls: {_no_key(skipped)}"


def _no_certificate(skipped: Sequence[str]) -> str:
    if not skipped:
        return "failed to find any PEM data in certificate input"
    if len(skipped) == 1 and skipped[0].endswith(PRIVATE_KEY):
        return (
            "failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched"
        )
    return (
        f'failed to find "{CERTIFICATE}" PEM block in certificate input after skipping PEM blocks of the '
        f"following types: [{' '.join(skipped)}]"
    )


def _no_key(skipped: Sequence[str]) -> str:
    if not skipped:
        return "failed to find any PEM data in key input"
    if list(skipped) == [CERTIFICATE]:
        return "found a certificate rather than a key in the PEM for the private key"
    return (
        f'failed to find PEM block with type ending in "{PRIVATE_KEY}" in key input after skipping PEM '
        f"blocks of the following types: [{' '.join(skipped)}]"
    )


def _fault(certificate: bytes, key: bytes) -> str:
    try:
        public = x509.load_der_x509_certificate(certificate).public_key()
    except (ValueError, UnsupportedAlgorithm):
        return "x509: malformed certificate"
    try:
        # A number that is no prime is not looked for: it takes long.
        private = load_der_private_key(key, None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "tls: failed to parse private key"
    if isinstance(private, x25519.X25519PrivateKey):
        return "tls: found unknown private key type in PKCS#8 wrapping"
    if not isinstance(private, PrivateKey):
        return "tls: failed to parse private key"
    if not isinstance(public, PublicKey):
        return "tls: unknown public key algorithm"
    own = private.public_key()
    if type(own) is not type(public):
        return "tls: private key type does not match public key type"
    return "" if own == public else "tls: private key does not match public key"
