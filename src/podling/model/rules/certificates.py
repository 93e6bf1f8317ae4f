"""The PEM of a CertificateSigningRequest, which the API server validates and the signers read alike."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator

from cryptography import x509

from podling.model.types.certificates import (
    CertificateSigningRequestCondition,
    CertificateSigningRequestStatus,
)

APPROVED, DENIED, FAILED = "Approved", "Denied", "Failed"
"""The conditions that end a request's wait; their status is always True."""
REQUEST = "CERTIFICATE REQUEST"
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT_SIGNER = f"{CLIENT_SIGNER}-kubelet"
KUBELET_SERVING_SIGNER = "kubernetes.io/kubelet-serving"
NODES, NODE = "system:nodes", "system:node:"
"""The group of kubelets, and what their names begin with."""
JOINED_NODES, JOINED_NODE = "podling:nodes", "podling:node:"
"""The same of what a machine is beside its kubelet (docs/decisions/108): who looks after its network, and
takes it out of the cluster."""
_BLOCK = re.compile(
    rb"^-----BEGIN (?P<type>[^\n]*?)-----[ \t\r]*\n(?P<headers>(?:[^\n:-]+:[^\n]*\n)*)"
    rb"(?P<base64>[A-Za-z0-9+/=\s]*?)^-----END (?P=type)-----[ \t\r]*$",
    re.MULTILINE,
)


def blocks(pem: bytes) -> Iterator[tuple[str, bytes, bytes]]:
    """The type, the headers and the content of each PEM block. What is around them is skipped, as by Go."""
    for found in _BLOCK.finditer(pem):
        try:
            content = binascii.a2b_base64(b"".join(found["base64"].split()), strict_mode=True)
        except binascii.Error:
            continue
        yield found["type"].decode(errors="replace"), found["headers"], content


def read_request(pem: bytes) -> x509.CertificateSigningRequest:
    """The request in PEM (`spec.request`); its signature is not verified. Raises ValueError."""
    block = next(blocks(pem), None)
    if block is None or block[0] != REQUEST:
        raise ValueError(f"PEM block type must be {REQUEST}")
    return x509.load_der_x509_csr(block[2])


def attributes_of(name: x509.Name, kind: x509.ObjectIdentifier) -> list[str]:
    """The values of a kind of attribute, in order, such as the organizations."""
    return [str(one.value) for one in name.get_attributes_for_oid(kind)]


def conditions_of(
    status: CertificateSigningRequestStatus, type_: str
) -> list[CertificateSigningRequestCondition]:
    return [condition for condition in status.conditions if condition.type == type_]
