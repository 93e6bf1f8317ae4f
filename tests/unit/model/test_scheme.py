"""The resources podling knows."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import pytest

from podling.model.codec import json
from podling.model.scheme import RESOURCES, Resource, by_kind, resource_of
from podling.model.types.coordination import Lease
from podling.model.types.core import Event, EventsEvent
from podling.model.types.meta import KubeObject, PartialObjectMetadata
from podling.model.types.pod import Pod
from podling.model.types.service import Service


def test_lookups_agree() -> None:
    for resource in RESOURCES:
        assert resource_of(resource.type) is resource
        assert by_kind(resource.api_version, resource.kind) is resource


def test_a_path_is_one_resource() -> None:
    assert len({(one.group, one.version, one.plural) for one in RESOURCES}) == len(RESOURCES)


def test_unknown_ones_are_none() -> None:
    assert by_kind("v2", "Pod") is None


def test_names_and_groups() -> None:
    pods, leases = resource_of(Pod), resource_of(Lease)
    assert (pods.api_version, pods.plural, pods.singular, pods.short_names) == ("v1", "pods", "pod", ("po",))
    assert pods.namespaced
    assert pods.categories == ("all",)
    assert (leases.group, leases.api_version) == ("coordination.k8s.io", "coordination.k8s.io/v1")
    assert leases.qualified == "leases.coordination.k8s.io"


def test_a_type_that_has_less_of_an_object_is_of_its_resource() -> None:
    class Named(KubeObject):
        KIND: ClassVar[str] = "Service"
        API_VERSION: ClassVar[str] = "v1"

    assert resource_of(Named) is resource_of(Service)
    with pytest.raises(KeyError):
        resource_of(PartialObjectMetadata)


def test_both_forms_of_event_are_resources() -> None:
    assert resource_of(Event).group == ""
    assert resource_of(EventsEvent).group == "events.k8s.io"


@pytest.mark.parametrize("resource", RESOURCES, ids=[r.qualified for r in RESOURCES])
def test_every_empty_object_round_trips_and_begins_alike(resource: Resource) -> None:
    data = json.encode(resource.type())
    start = f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}","metadata":{{}}'
    assert data.startswith(start.encode())
    assert json.encode(json.decode(data, resource.type)) == data
    assert msgspec.json.decode(data)["metadata"] == {}
