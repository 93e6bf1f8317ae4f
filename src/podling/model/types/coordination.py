"""coordination.k8s.io/v1: Lease. Its times are MicroTime (`2026-01-02T03:04:05.000006Z`)."""

from typing import ClassVar

from podling.model.codec.fields import Int32, MicroTime, Part, always
from podling.model.types.meta import KubeObject


class LeaseSpec(Part):
    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    acquire_time: MicroTime = ""
    renew_time: MicroTime = ""
    lease_transitions: Int32 | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(KubeObject):
    KIND: ClassVar[str] = "Lease"
    API_VERSION: ClassVar[str] = "coordination.k8s.io/v1"

    spec: LeaseSpec = always(LeaseSpec)
