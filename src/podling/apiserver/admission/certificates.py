"""What the API server itself says in a CertificateSigningRequest: who asks, and when something was decided.
And what nobody may ask for.
"""

from __future__ import annotations

from typing import Any, ClassVar

from podling.apiserver.admission.plugin import Attributes, Handles
from podling.apiserver.rules.certificates import subject_groups
from podling.model.time import Clock, rfc3339
from podling.model.types.certificates import CertificateSigningRequest
from podling.model.types.rbac import MASTERS

REQUESTS = "certificatesigningrequests.certificates.k8s.io"
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"


class CertificateRequests:
    """Writes who asks into a new request, and the time into conditions that come without."""

    handles: ClassVar[Handles] = {
        REQUESTS: ("CREATE",),
        f"{REQUESTS}/approval": ("UPDATE",),
        f"{REQUESTS}/status": ("UPDATE",),
    }

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        if old is None:
            user, spec = attributes.user, new.spec
            spec.username, spec.uid, spec.groups = user.name, user.uid, list(user.groups)
            spec.extra = {key: list(values) for key, values in user.extra}
            return
        now = rfc3339(self._clock.now())
        since = {(one.type, one.status): one.last_transition_time for one in old.status.conditions}
        for one in new.status.conditions:
            one.last_update_time = one.last_update_time or now
            one.last_transition_time = one.last_transition_time or since.get((one.type, one.status)) or now


class CertificateSubjectRestriction:
    """Refuses a request whose certificate would let its owner do anything. It is asked about valid
    requests."""

    handles: ClassVar[Handles] = {REQUESTS: ("CREATE",)}

    async def admit(self, attributes: Attributes, new: CertificateSigningRequest, old: Any) -> None:
        """Raises StatusError 403."""
        spec = new.spec
        if spec.signer_name == CLIENT_SIGNER and MASTERS in subject_groups(spec.request):
            raise attributes.forbidden(f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed")
