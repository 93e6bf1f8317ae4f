"""The condition a pod gets before the system ends it: who did it, and why (DisruptionTarget)."""

from __future__ import annotations

from datetime import datetime

from podling.client.client import Client
from podling.model import json
from podling.model.pod import Pod
from podling.model.pod_status import PodCondition
from podling.model.time import rfc3339

STRATEGIC = "application/strategic-merge-patch+json"


async def disrupt(
    client: Client, pod: Pod, reason: str, message: str, now: datetime, *, phase: str = ""
) -> None:
    """Raises StatusError."""
    condition = PodCondition(
        type="DisruptionTarget",
        observed_generation=pod.metadata.generation,
        status="True",
        last_transition_time=rfc3339(now),
        reason=reason,
        message=message,
    )
    status = {"conditions": [json.to_data(condition)], **({"phase": phase} if phase else {})}
    meta = pod.metadata
    patch = {"metadata": {"uid": meta.uid}, "status": status}
    await client.patch(Pod, meta.name, meta.namespace, patch, subresource="status", patch_type=STRATEGIC)
