"""certificates.k8s.io/v1: CertificateSigningRequest."""

from typing import Annotated, ClassVar

from podling.model.codec.fields import Int32, Part, Time, always, keyed, null
from podling.model.types.meta import KubeObject


class CertificateSigningRequestSpec(Part):
    request: bytes = always(bytes)
    signer_name: str = always(str)
    expiration_seconds: Int32 | None = None
    usages: list[str] = []
    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class CertificateSigningRequestCondition(Part):
    type: str = always(str)
    status: str = always(str)
    reason: str = ""
    message: str = ""
    last_update_time: Time | None = null()
    last_transition_time: Time | None = null()


class CertificateSigningRequestStatus(Part):
    conditions: Annotated[list[CertificateSigningRequestCondition], keyed("type")] = []
    certificate: bytes = b""


class CertificateSigningRequest(KubeObject):
    KIND: ClassVar[str] = "CertificateSigningRequest"
    API_VERSION: ClassVar[str] = "certificates.k8s.io/v1"

    spec: CertificateSigningRequestSpec = always(CertificateSigningRequestSpec)
    status: CertificateSigningRequestStatus = always(CertificateSigningRequestStatus)
