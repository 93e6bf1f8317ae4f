"""What the FlowSchemas and PriorityLevelConfigurations say, compiled: schemas in order, and the seats of each
level. Pure.

The mandatory objects stand in for those that are not stored yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil
from typing import NamedTuple

from podling.apiserver.fairness.queues import Queuing, SeatLimits
from podling.model.rules.flowcontrol import CATCH_ALL, EXEMPT, flow_schemas, priority_levels
from podling.model.types.flowcontrol import FlowSchema, PriorityLevelConfiguration

MANDATORY = (EXEMPT, CATCH_ALL)


class Configured(NamedTuple):
    """One level. `limits` is None for the exempt one."""

    uid: str
    limits: SeatLimits | None


def with_mandatory(
    schemas: Iterable[FlowSchema], levels: Iterable[PriorityLevelConfiguration]
) -> tuple[list[FlowSchema], list[PriorityLevelConfiguration]]:
    all_schemas = {name: flow_schemas()[name] for name in MANDATORY}
    all_levels = {name: priority_levels()[name] for name in MANDATORY}
    all_schemas.update((one.metadata.name, one) for one in schemas)
    all_levels.update((one.metadata.name, one) for one in levels)
    return list(all_schemas.values()), list(all_levels.values())


def seats_of(levels: Iterable[PriorityLevelConfiguration], total: int) -> Mapping[str, Configured]:
    """By name. Shares are divided as in Kubernetes, each rounded up."""
    levels = list(levels)
    shares = sum(map(_shares, levels)) or 1
    found = {}
    for one in levels:
        meta, limited = one.metadata, one.spec.limited
        if limited is None:
            found[meta.name] = Configured(meta.uid, None)
            continue
        nominal = ceil(total * _shares(one) / shares)
        lower = nominal - _part(nominal, limited.lendable_percent or 0)
        percent = limited.borrowing_limit_percent
        upper = nominal + (total if percent is None else _part(nominal, percent))
        queuing = limited.limit_response.queuing
        limits = SeatLimits(
            nominal,
            lower,
            upper,
            Queuing(queuing.queues, queuing.hand_size, queuing.queue_length_limit) if queuing else None,
        )
        found[meta.name] = Configured(meta.uid, limits)
    return found


def _shares(level: PriorityLevelConfiguration) -> int:
    part = level.spec.limited or level.spec.exempt
    return (part.nominal_concurrency_shares or 0) if part else 0


def _part(seats: int, percent: int) -> int:
    """Rounded half up, as Go does."""
    return (2 * seats * percent + 100) // 200
