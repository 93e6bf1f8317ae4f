"""Bootstrap tokens: what the Secret `bootstrap-token-abcdef` of kube-system says of the token
`abcdef.0123456789abcdef`, and how the token proves what the ConfigMap `cluster-info` of kube-public says of
the cluster to a machine that knows nothing else of it yet.

A signature is a detached JWS (RFC 7515, HS256) of the kubeconfig in `cluster-info`, in its key
`jws-kubeconfig-TOKENID`. The hash of an authority is that of its public key (SubjectPublicKeyInfo), as
kubeadm has it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
import string
from collections.abc import Mapping, Sequence
from datetime import datetime

from podling.model.time import parse_time, rfc3339, settled
from podling.model.types.core import Secret
from podling.model.types.meta import ObjectMeta

NAMESPACE = "kube-system"
SECRET_TYPE = "bootstrap.kubernetes.io/token"
PREFIX = "bootstrap-token-"
BOOTSTRAPPERS = "system:bootstrappers"
"""The group of all who have a bootstrap token."""
NODE_GROUP = f"{BOOTSTRAPPERS}:kubeadm:default-node-token"
"""The group that kubeadm gives the tokens of nodes besides."""
USAGES = ("authentication", "signing")
INFO_NAMESPACE, INFO = "kube-public", "cluster-info"
KUBECONFIG, SIGNATURE = "kubeconfig", "jws-kubeconfig-"
TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_LETTERS = string.ascii_lowercase + string.digits


def told(secret: Secret) -> Mapping[str, str]:
    return {key: value.decode(errors="replace") for key, value in secret.data.items()}


def expiration(said: Mapping[str, str]) -> datetime | None:
    """None if the token is good for ever. Raises ValueError for a time that cannot be read."""
    until = said.get("expiration", "")
    return parse_time(settled(until, "date-time")) if until else None


def has_expired(said: Mapping[str, str], now: datetime) -> bool:
    """A time that cannot be read has passed."""
    try:
        until = expiration(said)
    except ValueError:
        return True
    return until is not None and until <= now


def new_token() -> str:
    return ".".join("".join(secrets.choice(_LETTERS) for _ in range(count)) for count in (6, 16))


def secret_of(
    token: str, until: datetime | None, description: str = "", groups: Sequence[str] = (NODE_GROUP,)
) -> Secret:
    """The Secret of a token, by default of one that joins nodes, as `kubeadm token create` makes it; None is
    for ever. Raises ValueError for what is no token."""
    parts = TOKEN.fullmatch(token)
    if parts is None:
        raise ValueError(f'"{token}" is no bootstrap token: one is like abcdef.0123456789abcdef')
    name, key = parts.groups()
    said = {
        "token-id": name,
        "token-secret": key,
        "description": description,
        "expiration": rfc3339(until) if until else "",
        **{f"usage-bootstrap-{usage}": "true" for usage in USAGES},
        "auth-extra-groups": ",".join(groups),
    }
    return Secret(
        metadata=ObjectMeta(name=PREFIX + name, namespace=NAMESPACE),
        type=SECRET_TYPE,
        data={key: value.encode() for key, value in said.items() if value},
    )


def signature(content: str, token: str, secret: str) -> str:
    """A JWS without its content: `header..signature`."""
    header = _base64(json.dumps({"alg": "HS256", "kid": token}, separators=(",", ":")).encode())
    signed = f"{header}.{_base64(content.encode())}".encode()
    return f"{header}..{_base64(hmac.digest(secret.encode(), signed, hashlib.sha256))}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def key_hashes(bundle: bytes) -> list[str]:
    """`sha256:…` of each authority in PEM. Raises ValueError."""
    # Commands for any cluster do without the library, but for this.
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    found = x509.load_pem_x509_certificates(bundle)
    keys = (one.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for one in found)
    return [f"sha256:{hashlib.sha256(key).hexdigest()}" for key in keys]
