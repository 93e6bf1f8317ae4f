"""FlowSchemas and PriorityLevelConfigurations, which say whose requests wait when the server has much to do;
`apiserver/fairness` goes by them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from podling.apiserver.kinds.columns import AGE, NAME, NONE, age
from podling.apiserver.kinds.kind import Column, Controlled, Status
from podling.apiserver.rules import metadata
from podling.apiserver.rules.flowcontrol import validate_conditions, validate_level, validate_schema
from podling.model.errors import Cause
from podling.model.scheme import resource_of
from podling.model.types.flowcontrol import FlowSchema, PriorityLevelConfiguration

PRECEDENCE = 1000
SHARES = 30
QUEUES, HAND_SIZE, QUEUE_LENGTH = 64, 8, 50


class _Status(Status):
    """All metadata stays as it is, also what no writer decides."""

    def prepare_update(self, new: Any, old: Any) -> None:
        super().prepare_update(new, old)
        version = new.metadata.resource_version
        new.metadata = msgspec.structs.replace(old.metadata, resource_version=version)


STATUS = _Status(lambda new, old: validate_conditions(new.status.conditions), keeps_metadata=True)


class FlowSchemas(Controlled[FlowSchema]):
    resource = resource_of(FlowSchema)
    subresources = {"status": STATUS}
    columns = (
        NAME,
        Column("PriorityLevel", description="The PriorityLevelConfiguration of its requests."),
        Column("MatchingPrecedence", description="Of several that match, the one with the lowest counts."),
        Column("DistinguisherMethod", description="What tells its flows apart."),
        AGE,
        Column("MissingPL", description="Whether its PriorityLevelConfiguration does not exist."),
    )

    def default(self, obj: FlowSchema) -> None:
        obj.spec.matching_precedence = obj.spec.matching_precedence or PRECEDENCE

    def validate(self, obj: FlowSchema) -> list[Cause]:
        return [*metadata.validate(obj.metadata, namespaced=False), *validate_schema(obj)]

    def row_order(self, obj: FlowSchema) -> Any:
        return obj.spec.matching_precedence, obj.metadata.name

    def row(self, obj: FlowSchema, now: datetime) -> list[Any]:
        spec = obj.spec
        dangling = (one.status for one in obj.status.conditions if one.type == "Dangling")
        return [
            obj.metadata.name,
            spec.priority_level_configuration.name,
            spec.matching_precedence,
            spec.distinguisher_method.type if spec.distinguisher_method else NONE,
            age(obj.metadata.creation_timestamp, now),
            next(dangling, "?"),
        ]


class PriorityLevelConfigurations(Controlled[PriorityLevelConfiguration]):
    resource = resource_of(PriorityLevelConfiguration)
    subresources = {"status": STATUS}
    columns = (
        NAME,
        Column("Type", description="Exempt from waiting, or Limited."),
        Column("NominalConcurrencyShares", description="How many seats it has, beside other levels."),
        Column("Queues", description="How many queues requests wait in."),
        Column("HandSize", description="How many queues a flow is dealt."),
        Column("QueueLengthLimit", description="How many requests wait in a queue."),
        AGE,
    )

    def default(self, obj: PriorityLevelConfiguration) -> None:
        spec = obj.spec
        for part, shares in ((spec.limited, SHARES), (spec.exempt, 0)):
            if part is not None:
                if part.nominal_concurrency_shares is None:
                    part.nominal_concurrency_shares = shares
                part.lendable_percent = part.lendable_percent or 0
        if spec.limited is not None and (queuing := spec.limited.limit_response.queuing) is not None:
            queuing.queues = queuing.queues or QUEUES
            queuing.hand_size = queuing.hand_size or HAND_SIZE
            queuing.queue_length_limit = queuing.queue_length_limit or QUEUE_LENGTH

    def validate(self, obj: PriorityLevelConfiguration) -> list[Cause]:
        return [*metadata.validate(obj.metadata, namespaced=False), *validate_level(obj)]

    def row(self, obj: PriorityLevelConfiguration, now: datetime) -> list[Any]:
        limited = obj.spec.limited
        queuing = limited.limit_response.queuing if limited else None
        return [
            obj.metadata.name,
            obj.spec.type,
            limited.nominal_concurrency_shares if limited else NONE,
            *((queuing.queues, queuing.hand_size, queuing.queue_length_limit) if queuing else (NONE,) * 3),
            age(obj.metadata.creation_timestamp, now),
        ]
