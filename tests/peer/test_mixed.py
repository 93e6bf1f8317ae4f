"""R-SYS-8: objects of every kind are created, replaced, patched, applied, shown and deleted at random, by two
managers, with several fields changed at once: what no table has thought of together is answered alike."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import chain
from random import Random
from typing import Any

import pytest

from peer.every_kind import Sample, samples
from peer.fields import Changed, variations
from peer.named_differences import EMPTY_BUNDLE, OWN_FIELDS, SETTLED, UNREADABLE, unnamed
from peer.sequence import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, differences, shown
from peer.server import Server

STORIES = 3
"""Of each kind."""
STEPS = 12
GROUP = "v=v1;g=meta.k8s.io"
SHOWN = (
    "application/json", "application/yaml", f"application/json;as=Table;{GROUP}",
    f"application/json;as=PartialObjectMetadata;{GROUP}",
)  # fmt: skip
LISTED = (*SHOWN[:3], f"application/json;as=PartialObjectMetadataList;{GROUP}")
OPTIONS = ("dryRun=All", "fieldValidation=Strict", "fieldValidation=Ignore", "pretty=true", "")
MANAGERS = ("fieldManager=one", "fieldManager=two")
SELECTED = ("labelSelector=tier%3Dtwo", "labelSelector=none", "limit=1", "")
ENDS = ("dryRun=All", "gracePeriodSeconds=0", "propagationPolicy=Orphan", "propagationPolicy=Foreground", "")
APART = ("metadata.managedFields", "spec.clusterIP", "secrets", "kind", "apiVersion")
"""Beginnings of paths that other tests compare, that make an object which nobody can be said to manage, or
that are known to differ where somebody says what only the server knows."""
BY_THEMSELVES = ("Namespace", "ComponentStatus", *SETTLED.what)
"""Kinds of which a server writes something itself, or lets others write only when it is done."""
COUNTED = ("ClusterRole", "ClusterRoleBinding", "Event", "ConfigMap", "Lease", "Role", "RoleBinding")
"""Kinds of which a server has other objects, too."""
TIME = "timeAdded"
"""Of which Kubernetes compares fractions that nobody is shown."""
EMPTY: tuple[Any, ...] = ([], {}, [None], {"a": None})


def stories() -> Iterator[Compared]:
    for sample in samples():
        if sample.resource.kind not in BY_THEMSELVES:
            for number in range(STORIES):
                name = f"{sample.name}-{number}"
                yield Compared(name, list(_story(sample, Random(name))), apart=True)


def _story(sample: Sample, by: Random) -> Iterator[Ask]:
    left_out = (*OWN_FIELDS.what, *UNREADABLE.what, *APART)
    changes = [
        (path, value, changed)
        for path, value, changed in variations(sample.resource.type, sample.body())
        if not path.startswith(left_out)
        and not path.endswith((*EMPTY_BUNDLE.what, TIME))
        and value not in EMPTY
    ]
    yield Ask("POST", f"{sample.items}?{by.choice(MANAGERS)}", sample.body())
    for _ in range(STEPS):
        yield by.choice(STEPS_OF)(sample, by, changes)
    for letter in "xy":
        item, nothing = sample.item(letter), {"metadata": {"finalizers": None}}
        yield Ask("GET", item)
        yield Ask("PATCH", item, nothing, {"Content_Type": MERGE_PATCH})
        yield Ask("DELETE", f"{item}?gracePeriodSeconds=0&propagationPolicy=Background")


def _body(sample: Sample, by: Random, changes: list[Changed], letter: str) -> dict[str, Any]:
    """The object with up to three of the changes."""
    body = sample.body(letter)
    identity = body["metadata"]
    for path, _, changed in by.sample(changes, by.randrange(4)):
        name = path.partition(".")[0].partition("[")[0]
        if name not in changed:
            body.pop(name, None)
        elif name == "metadata" and isinstance(changed[name], dict):
            body[name] = {**changed[name], **identity}
        else:
            body[name] = copy.deepcopy(changed[name])
    return body


def _target(sample: Sample, by: Random, *options: str) -> tuple[str, str]:
    """The letter of an object, and where it, or its status, is written."""
    letter, part = by.choice("xxxy"), by.choice(("", "", "", "/status"))
    given = "&".join(filter(None, (by.choice(OPTIONS), by.choice(MANAGERS), *options)))
    return letter, f"{sample.item(letter)}{part}?{given}"


def _created(sample: Sample, by: Random, changes: list[Changed]) -> Ask:
    letter, target = _target(sample, by)
    options = target.partition("?")[2]
    return Ask("POST", f"{sample.items}?{options}", _body(sample, by, changes, letter), _shown(by))


def _replaced(sample: Sample, by: Random, changes: list[Changed]) -> Ask:
    letter, target = _target(sample, by)
    return Ask("PUT", target, _body(sample, by, changes, letter), _shown(by))


def _applied(sample: Sample, by: Random, changes: list[Changed]) -> Ask:
    # Of several conflicts Kubernetes tells in any order.
    letter, target = _target(sample, by, "force=true")
    return Ask("PATCH", target, _body(sample, by, changes, letter), {**_shown(by), "Content_Type": APPLY})


def _patched(sample: Sample, by: Random, changes: list[Changed]) -> Ask:
    letter, target = _target(sample, by)
    base, body = sample.body(letter), _body(sample, by, changes, letter)
    different = {name: value for name, value in body.items() if value != base.get(name)}
    sort = by.choice((MERGE_PATCH, STRATEGIC_PATCH, JSON_PATCH))
    operations = [{"op": "add", "path": f"/{name}", "value": value} for name, value in different.items()]
    return Ask("PATCH", target, operations if sort == JSON_PATCH else different, {"Content_Type": sort})


def _seen(sample: Sample, by: Random, changes: list[Changed]) -> Ask:
    return Ask("GET", sample.item(by.choice("xy")), None, _shown(by))


def _listed(sample: Sample, by: Random, changes: list[Changed]) -> Ask:
    if sample.resource.kind in COUNTED or not sample.resource.namespaced:
        return _seen(sample, by, changes)
    return Ask("GET", f"{sample.items}?{by.choice(SELECTED)}", None, {"Accept": by.choice(LISTED)})


def _deleted(sample: Sample, by: Random, changes: list[Changed]) -> Ask:
    return Ask("DELETE", f"{sample.item(by.choice('xy'))}?{by.choice(ENDS)}", None, _shown(by))


def _shown(by: Random) -> dict[str, str]:
    return {"Accept": by.choice(SHOWN)}


STEPS_OF = tuple(
    chain.from_iterable(
        [step] * often
        for step, often in (
            (_created, 3),
            (_replaced, 4),
            (_applied, 4),
            (_patched, 4),
            (_seen, 1),
            (_listed, 2),
            (_deleted, 1),
        )
    )
)


@pytest.mark.parametrize("story", [*stories()], ids=lambda story: story.name)
def test_mixed(story: Compared, kubernetes: Server, podling: Server) -> None:
    found = unnamed(differences(story, "mixed", kubernetes, podling))
    assert not found, f"\n{shown(story, found)}"
