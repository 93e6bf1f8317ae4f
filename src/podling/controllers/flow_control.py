"""The default FlowSchemas and PriorityLevelConfigurations, and whether the level of each schema exists.

kube-apiserver does both in itself. The defaults are created where they are missing, and their specs are put
back while their annotation says that the server keeps them up to date.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done
from podling.model.rules.flowcontrol import UPDATED, flow_schemas, priority_levels
from podling.model.time import Clock, rfc3339
from podling.model.types.flowcontrol import FlowSchema, PriorityLevelConfiguration

DANGLING = "Dangling"
MAKER = "api-priority-and-fairness-config-producer-v1"
"""The manager of the fields of what is there from the start."""
MANAGER = "api-priority-and-fairness-config-consumer-v1"
"""Of the status."""


class FlowControl:
    name = "flow-control"

    def __init__(
        self,
        client: Client,
        schemas: Informer[FlowSchema],
        levels: Informer[PriorityLevelConfiguration],
        clock: Clock,
    ) -> None:
        """Keys are kind and name."""
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._clock = client, clock
        self._schemas, self._levels = schemas, levels
        self._made: dict[Key, Any] = {
            (obj.kind, name): obj
            for made in (priority_levels(), flow_schemas())
            for name, obj in made.items()
        }
        for key in self._made:
            self.queue.add(key)
        schemas.subscribe(self._changed)
        levels.subscribe(self._changed)

    async def reconcile(self, key: Key) -> None:
        kind, name = key
        there: Informer[Any] = self._schemas if kind == FlowSchema.KIND else self._levels
        standing, wanted = there.get("", name), self._made.get(key)
        if standing is None:
            if wanted is not None:
                await self._client.create(wanted, manager=MAKER)
            return
        kept = UPDATED.items() <= standing.metadata.annotations.items()
        if wanted is not None and kept and standing.spec != wanted.spec:
            with gone_is_done():
                await self._client.update(replace(standing, spec=wanted.spec))
        elif kind == FlowSchema.KIND:
            await self._tell(standing)

    async def _tell(self, schema: FlowSchema) -> None:
        """Write whether the level of `schema` exists, if it says otherwise."""
        name = schema.spec.priority_level_configuration.name
        exists = self._levels.get("", name) is not None
        condition = {
            "type": DANGLING,
            "status": "False" if exists else "True",
            "reason": "Found" if exists else "NotFound",
            "message": f'This FlowSchema references the PriorityLevelConfiguration object named "{name}" '
            + ("and it exists" if exists else "but there is no such object"),
        }
        standing = next((one for one in schema.status.conditions if one.type == DANGLING), None)
        if standing and condition == {key: getattr(standing, key) for key in condition}:
            return
        if standing and standing.status == condition["status"]:
            condition["lastTransitionTime"] = standing.last_transition_time or ""
        else:
            condition["lastTransitionTime"] = rfc3339(self._clock.now())
        with gone_is_done():
            status = {"conditions": [condition]}
            await self._client.apply_status(FlowSchema, schema.metadata.name, MANAGER, status)

    def _changed(self, old: Any, new: Any) -> None:
        changed = new or old
        self.queue.add((changed.kind, changed.metadata.name))
        if changed.kind == PriorityLevelConfiguration.KIND and (old is None or new is None):
            for schema in self._schemas.items():
                if schema.spec.priority_level_configuration.name == changed.metadata.name:
                    self.queue.add((FlowSchema.KIND, schema.metadata.name))
