"""The ways to seal values with one key, as kube-apiserver has them. Only who has keys imports them."""

from __future__ import annotations

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.padding import PKCS7

from podling.storage.sealing import NOT_OF_THIS_KEY, OneKey, Opened, Sealed, SealedValueError

_NONCE = 12
_BLOCK = 16


class AesGcm(OneKey):
    """A nonce, and the value with its tag. The storage key is authenticated with it: nothing opens as the
    value of another object."""

    def __init__(self, secret: bytes) -> None:
        super().__init__(secret)
        self._cipher = AESGCM(secret)

    def seal(self, value: bytes, key: bytes) -> Sealed:
        nonce = os.urandom(_NONCE)
        return Sealed(nonce + self._cipher.encrypt(nonce, value, key), self._mark)

    def open(self, sealed: bytes, key: bytes) -> Opened:
        try:
            return Opened(self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], key), self._mark)
        except (InvalidTag, ValueError) as error:
            raise SealedValueError(NOT_OF_THIS_KEY) from error


class AesCbc(OneKey):
    """The initialization vector, and the padded value. Nothing is authenticated: that an object comes out
    is all that can be checked."""

    def __init__(self, secret: bytes) -> None:
        super().__init__(secret)
        self._algorithm = algorithms.AES(secret)

    def seal(self, value: bytes, key: bytes) -> Sealed:
        start, padding = os.urandom(_BLOCK), PKCS7(8 * _BLOCK).padder()
        encryptor = Cipher(self._algorithm, modes.CBC(start)).encryptor()
        sealed = encryptor.update(padding.update(value) + padding.finalize()) + encryptor.finalize()
        return Sealed(start + sealed, self._mark)

    def open(self, sealed: bytes, key: bytes) -> Opened:
        padding = PKCS7(8 * _BLOCK).unpadder()
        try:
            decryptor = Cipher(self._algorithm, modes.CBC(sealed[:_BLOCK])).decryptor()
            padded = decryptor.update(sealed[_BLOCK:]) + decryptor.finalize()
            value = padding.update(padded) + padding.finalize()
        except ValueError as error:
            raise SealedValueError(NOT_OF_THIS_KEY) from error
        if not value.startswith(b"{"):
            raise SealedValueError(NOT_OF_THIS_KEY)
        return Opened(value, self._mark)


class SecretBox(OneKey):
    """A nonce, and the value with its tag (XSalsa20 and Poly1305). The storage key is not authenticated."""

    def __init__(self, secret: bytes) -> None:
        # libsodium is for those who name it: `cryptography` has no XSalsa20.
        from nacl.secret import SecretBox as Box

        super().__init__(secret)
        self._box = Box(secret)

    def seal(self, value: bytes, key: bytes) -> Sealed:
        return Sealed(bytes(self._box.encrypt(value)), self._mark)

    def open(self, sealed: bytes, key: bytes) -> Opened:
        from nacl.exceptions import CryptoError

        try:
            return Opened(self._box.decrypt(sealed), self._mark)
        except (CryptoError, ValueError) as error:
            raise SealedValueError(NOT_OF_THIS_KEY) from error
