"""The key that service account tokens are signed with, and the JSON Web Tokens it makes and recognises.

ES256: a signature takes microseconds and a key is made in no time, where RSA takes a thousand times as long.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from jwt import PyJWS
from jwt.exceptions import PyJWTError

ALGORITHM = "ES256"
COORDINATE_BYTES = 32

_jws = PyJWS(algorithms=[ALGORITHM])


class SigningKey:
    """A private key on the curve P-256."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._private = key
        self._public = key.public_key()
        self.id = _text(
            hashlib.sha256(
                self._public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
            ).digest()
        )

    @classmethod
    def of_pem(cls, pem: bytes) -> SigningKey:
        """Raises ValueError for anything but a key on the curve P-256."""
        key = load_pem_private_key(pem, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
            raise ValueError("service account tokens are signed with a key on the curve P-256")
        return cls(key)

    @classmethod
    def made(cls) -> SigningKey:
        """A new one, for a server whose tokens need not outlive it."""
        return cls(ec.generate_private_key(ec.SECP256R1()))

    def sign(self, payload: bytes) -> str:
        return _jws.encode(payload, self._private, algorithm=ALGORITHM, headers={"kid": self.id})

    def verified(self, token: str) -> bytes | None:
        """What `token` says; None when this key has not signed it."""
        try:
            payload: bytes = _jws.decode(token, self._public, algorithms=[ALGORITHM])
        except (PyJWTError, ValueError):
            return None
        return payload

    def jwk(self) -> dict[str, Any]:
        """The public half, as RFC 7517 has it."""
        point = self._public.public_numbers()
        return {
            "use": "sig",
            "kty": "EC",
            "kid": self.id,
            "crv": "P-256",
            "alg": ALGORITHM,
            "x": _text(point.x.to_bytes(COORDINATE_BYTES, "big")),
            "y": _text(point.y.to_bytes(COORDINATE_BYTES, "big")),
        }


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
