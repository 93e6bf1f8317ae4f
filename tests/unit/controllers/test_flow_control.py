"""R-SYS-1: the default FlowSchemas and PriorityLevelConfigurations are there, and stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podling.controllers.flow_control import FlowControl
from podling.model.rules.flowcontrol import CATCH_ALL, EXEMPT, flow_schemas, priority_levels
from podling.model.types.flowcontrol import FlowSchema, PriorityLevelConfiguration

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster


def test_every_schema_has_its_level() -> None:
    named = {schema.spec.priority_level_configuration.name for schema in flow_schemas().values()}
    assert named == set(priority_levels())


def test_the_mandatory_ones_are_first_and_last() -> None:
    order = sorted(flow_schemas(), key=lambda name: flow_schemas()[name].spec.matching_precedence)
    assert (order[0], order[-1]) == (EXEMPT, CATCH_ALL)


async def test_they_are_made_changed_back_and_told_of(cluster: Cluster) -> None:
    client, informers = cluster.client, cluster.informers
    schemas, levels = informers.of(FlowSchema), informers.of(PriorityLevelConfiguration)
    await cluster.run(FlowControl(client, schemas, levels, cluster.clock))
    assert {schema.metadata.name for schema in schemas.items()} == set(flow_schemas())
    assert {level.metadata.name for level in levels.items()} == set(priority_levels())
    probes = await client.get(FlowSchema, "probes")
    assert [(one.type, one.status, one.reason) for one in probes.status.conditions] == [
        ("Dangling", "False", "Found")
    ]
    assert "api-priority-and-fairness-config-consumer-v1" in {
        entry.manager for entry in probes.metadata.managed_fields
    }
    await client.patch(FlowSchema, "probes", "", {"spec": {"matchingPrecedence": 7, "rules": None}})
    await client.delete(PriorityLevelConfiguration, "system")
    await cluster.settle()
    assert (await client.get(FlowSchema, "probes")).spec == flow_schemas()["probes"].spec
    assert (await client.get(PriorityLevelConfiguration, "system")).spec == priority_levels()["system"].spec
    other = {"metadata": {"annotations": None}, "spec": {"priorityLevelConfiguration": {"name": "no"}}}
    await client.patch(FlowSchema, "probes", "", other)
    await cluster.settle()
    (dangling,) = (await client.get(FlowSchema, "probes")).status.conditions
    assert (dangling.status, dangling.reason) == ("True", "NotFound")
    assert dangling.message.endswith('named "no" but there is no such object')
