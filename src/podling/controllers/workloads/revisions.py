"""ControllerRevisions: the templates that a StatefulSet or a DaemonSet had, with rising numbers.

Their data is a strategic merge patch that puts the template back, which is what `kubectl rollout undo` sends.
A template that is had again gets the highest number anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from podling.client.client import Client
from podling.controllers.controller import gone_is_done
from podling.controllers.workloads.rollout import template_hash
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.types.apps import ControllerRevision, DaemonSet, StatefulSet
from podling.model.types.meta import ObjectMeta, controller_reference
from podling.model.types.pod import Pod, PodTemplateSpec

POD_HASH = "controller-revision-hash"
"""The label of a pod that says of which revision it is; DaemonSets' revisions have it, too."""
LONGEST_PREFIX = 223
"""Of a revision's name: as much of its owner's as there is room for."""


def data_of(template: PodTemplateSpec) -> dict[str, Any]:
    return {"spec": {"template": {**json.to_data(template), "$patch": "replace"}}}


def template_of(revision: ControllerRevision) -> PodTemplateSpec | None:
    """None when its data, which anybody may have written, is no template."""
    try:
        return json.from_data(revision.data["spec"]["template"], PodTemplateSpec)
    except (StatusError, LookupError, TypeError):
        return None


def in_order(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """Oldest first."""
    return sorted(
        revisions, key=lambda one: (one.revision, one.metadata.creation_timestamp, one.metadata.name)
    )


def those_of(template: PodTemplateSpec, revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    return [one for one in revisions if template_of(one) == template]


def hash_of(pod: Pod) -> str:
    return pod.metadata.labels.get(POD_HASH, "")


def revision_of(
    owner: StatefulSet | DaemonSet, label: str, number: int, collisions: int | None
) -> ControllerRevision:
    """The revision of its template now, with its hash as a label."""
    meta, template = owner.metadata, owner.spec.template
    hashed = template_hash(template, collisions)
    return ControllerRevision(
        metadata=ObjectMeta(
            name=f"{meta.name[:LONGEST_PREFIX]}-{hashed}",
            namespace=meta.namespace,
            labels={**template.metadata.labels, label: hashed},
            annotations=meta.annotations,
            owner_references=[controller_reference(owner)],
        ),
        data=data_of(template),
        revision=number,
    )


class Revisions:
    """The writer of revisions. Every method raises StatusError."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def create(self, wanted: ControllerRevision) -> ControllerRevision | None:
        """The one of this name if it has the same template; None when it has another."""
        try:
            return await self._client.create(wanted)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
        meta = wanted.metadata
        standing = await self._client.get(ControllerRevision, meta.name, meta.namespace)
        return standing if template_of(standing) == template_of(wanted) else None

    async def renumber(self, revision: ControllerRevision, number: int) -> ControllerRevision:
        if revision.revision == number:
            return revision
        return await self._client.update(replace(revision, revision=number))

    async def delete(self, revision: ControllerRevision) -> None:
        meta = revision.metadata
        with gone_is_done():
            await self._client.delete(ControllerRevision, meta.name, meta.namespace)
