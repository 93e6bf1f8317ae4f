"""What the API server itself says in a CertificateSigningRequest: who asks, and when something was decided.
What nobody may ask for, and who may decide for which signer.
"""

from __future__ import annotations

from typing import Any, ClassVar

from podling.apiserver.admission.plugin import ANY, Attributes, Handles, May
from podling.apiserver.authz.authorizers import Decision, settled
from podling.apiserver.request.request import RequestInfo
from podling.apiserver.rules.certificates import subject_groups
from podling.model.rules.certificates import CLIENT_SIGNER
from podling.model.time import Clock, rfc3339
from podling.model.types.certificates import CertificateSigningRequest
from podling.model.types.rbac import MASTERS

REQUESTS = "certificatesigningrequests.certificates.k8s.io"


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


class CertificateApproval:
    """Refuses the decision of who may not `approve` for the request's signer."""

    handles: ClassVar[Handles] = {f"{REQUESTS}/approval": ("UPDATE",)}

    def __init__(self, may: May) -> None:
        self._may = may

    async def admit(self, attributes: Attributes, new: Any, old: CertificateSigningRequest) -> None:
        """Raises StatusError 403."""
        await settled(lambda: check_signer(self._may, attributes, "approve", old.spec.signer_name))


class CertificateSigning:
    """Refuses a certificate and a condition of who may not `sign` for the request's signer."""

    handles: ClassVar[Handles] = {f"{REQUESTS}/status": ("UPDATE",)}

    def __init__(self, may: May) -> None:
        self._may = may

    async def admit(
        self, attributes: Attributes, new: CertificateSigningRequest, old: CertificateSigningRequest
    ) -> None:
        """Raises StatusError 403."""
        if new.status != old.status:
            await settled(lambda: check_signer(self._may, attributes, "sign", old.spec.signer_name))


def check_signer(may: May, attributes: Attributes, verb: str, signer: str) -> None:
    """The right to `verb` is for the signer by name, or for all of its domain. Raises StatusError 403;
    Unanswered."""
    for name in (signer, f"{signer.partition('/')[0]}/*"):
        info = RequestInfo(verb, "", True, attributes.resource.group, ANY, resource="signers", name=name)
        if may(attributes.user, info).decision is Decision.ALLOW:
            return
    raise attributes.forbidden(f'user not permitted to {verb} requests with signerName "{signer}"')


class CertificateSubjectRestriction:
    """Refuses a request whose certificate would let its owner do anything. It is asked about valid
    requests."""

    handles: ClassVar[Handles] = {REQUESTS: ("CREATE",)}

    async def admit(self, attributes: Attributes, new: CertificateSigningRequest, old: Any) -> None:
        """Raises StatusError 403."""
        spec = new.spec
        if spec.signer_name == CLIENT_SIGNER and MASTERS in subject_groups(spec.request):
            raise attributes.forbidden(f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed")
