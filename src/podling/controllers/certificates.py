"""Certificates of kubelets: the requests of nodes are approved, what is approved is signed, and requests that
are over are removed. Kubernetes calls these controllers csrapproving, csrsigning and csrcleaner.
"""

from __future__ import annotations

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.certificates_rules import (
    CertificateAuthority,
    fault,
    is_over,
    is_to_sign,
    issue,
    permissions,
)
from podling.controllers.controller import Key, gone_is_done, own_key
from podling.model.errors import StatusError, internal
from podling.model.rules.certificates import APPROVED, DENIED, FAILED, conditions_of
from podling.model.scheme import resource_of
from podling.model.time import Clock, rfc3339
from podling.model.types.authorization import (
    ResourceAttributes,
    SubjectAccessReview,
    SubjectAccessReviewSpec,
)
from podling.model.types.certificates import (
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
    CertificateSigningRequestStatus,
)

APPROVALS = {
    "selfnodeclient": "Auto approving self kubelet client certificate after SubjectAccessReview.",
    "nodeclient": "Auto approving kubelet client certificate after SubjectAccessReview.",
}
ALL: Key = ("", "")
"""The one key of the cleaner."""
CLEAN_EVERY = 3600.0
"""Seconds."""

Requests = Informer[CertificateSigningRequest]


class CertificateApprover:
    """Approves what a node asks for itself, and what somebody asks who may ask for nodes."""

    name = "csrapproving"

    def __init__(self, client: Client, requests: Requests) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._requests = client, requests
        requests.subscribe(own_key(self.queue))

    async def reconcile(self, key: Key) -> None:
        """Raises StatusError 403 if who asks may not, so that it is tried again later: it may be allowed."""
        request = self._requests.get(*key)
        if request is None or request.status.certificate:
            return
        if any(conditions_of(request.status, decision) for decision in (APPROVED, DENIED)):
            return
        tried = permissions(request)
        for subresource in tried:
            if await self._may(request, subresource):
                await approve(self._client, request, APPROVALS[subresource])
                return
        if tried:
            listed = f"[{' '.join(tried)}]"
            why = f'recognized csr "{key[1]}" as {listed} but subject access review was not approved'
            raise StatusError(403, "Forbidden", why)

    async def _may(self, request: CertificateSigningRequest, subresource: str) -> bool:
        """Whether who asks may create the subresource."""
        spec, resource = request.spec, resource_of(CertificateSigningRequest)
        asked = ResourceAttributes(
            verb="create",
            group=resource.group,
            version="*",
            resource=resource.plural,
            subresource=subresource,
        )
        review = SubjectAccessReview(
            spec=SubjectAccessReviewSpec(
                user=spec.username,
                uid=spec.uid,
                groups=spec.groups,
                extra=spec.extra,
                resource_attributes=asked,
            )
        )
        return (await self._client.create(review)).status.allowed


class CertificateSigner:
    """Signs what was approved, or says why not."""

    name = "csrsigning"

    def __init__(
        self, client: Client, requests: Requests, authority: CertificateAuthority, clock: Clock
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._requests = client, requests
        self._authority, self._clock = authority, clock
        requests.subscribe(own_key(self.queue))

    async def reconcile(self, key: Key) -> None:
        """Raises StatusError 500 for what cannot be signed now."""
        request = self._requests.get(*key)
        if request is None or not is_to_sign(request):
            return
        now = self._clock.now()
        try:
            why = fault(request)
            issued = b"" if why else issue(request, self._authority, now)
        except ValueError as error:
            raise internal(f"error auto signing csr: {error}") from error
        if why:
            condition = CertificateSigningRequestCondition(
                type=FAILED,
                status="True",
                reason="SignerValidationFailure",
                message=why,
                last_update_time=rfc3339(now),
            )
            await _add(self._client, request, condition, "status")
            return
        with gone_is_done():
            status = replace(request.status, certificate=issued)
            await self._client.update(replace(request, status=status), subresource="status")


async def approve(client: Client, request: CertificateSigningRequest, message: str) -> None:
    """Without an administrator."""
    condition = CertificateSigningRequestCondition(
        type=APPROVED, status="True", reason="AutoApproved", message=message
    )
    await _add(client, request, condition, "approval")


async def _add(
    client: Client,
    request: CertificateSigningRequest,
    condition: CertificateSigningRequestCondition,
    subresource: str,
) -> None:
    status = CertificateSigningRequestStatus(conditions=[*request.status.conditions, condition])
    with gone_is_done():
        await client.update(replace(request, status=status), subresource=subresource)


class CertificateCleaner:
    """Removes requests that are over, once an hour."""

    name = "csrcleaner"

    def __init__(self, client: Client, requests: Requests, clock: Clock) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._requests, self._clock = client, requests, clock
        self.queue.add(ALL)

    async def reconcile(self, key: Key) -> None:
        now = self._clock.now()
        for request in tuple(self._requests.items()):
            if is_over(request, now):
                with gone_is_done():
                    meta = request.metadata
                    await self._client.delete(CertificateSigningRequest, meta.name, uid=meta.uid)
        self.queue.add_after(ALL, CLEAN_EVERY)
