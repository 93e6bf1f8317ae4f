"""R-SYS-8: the kinds of resource.k8s.io are defaulted, validated, changed and shown as by Kubernetes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from peer.mutations import GONE, changed, created, updated
from peer.named_differences import unnamed
from peer.sequence import MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server

GROUP = "/apis/resource.k8s.io/v1"
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
LONG = "x" * 300
UID = "11111111-2222-3333-4444-555555555555"
TEXTS = (GONE, "", "No_Name", "a.b", "a-b", "-", "a" * 64, LONG)


def made(kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": "base"}, **fields}


def each(path: str, *values: Any) -> list[tuple[str, Any]]:
    return [(path, value) for value in values]


def cel(*expressions: str) -> list[Any]:
    return [{"cel": {"expression": one}} for one in expressions]


def opaque(driver: Any = "d.example.test", parameters: Any = GONE, **more: Any) -> dict[str, Any]:
    said = {"a": 1} if parameters is GONE else parameters
    return {"opaque": {"driver": driver, "parameters": said}, **more}


def exactly(**fields: Any) -> dict[str, Any]:
    return {"deviceClassName": "c", **fields}


def request(name: str = "r", **fields: Any) -> dict[str, Any]:
    return {"name": name, "exactly": exactly(**fields)}


def terms(*keys: str) -> dict[str, Any]:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "Exists"}]} for key in keys]}


SELECTORS: list[Any] = [
    [],
    [{}],
    [{"cel": None}],
    [{"cel": {}}] * 33,
    cel("true", 'device.driver == "d.example.test"'),
    cel(*["true"] * 32),
    cel(*["true"] * 33),
    cel("x" * 10_241),
]
PARAMETERS: list[Any] = [None, {}, [], "x", 1, True, {"a": {"b": [1, None, "ü"]}}]
CONFIGS: list[Any] = [
    [],
    [{}],
    [{"opaque": {}}],
    *([opaque(driver)] for driver in ("", "No_Name", "Upper.Case", "a" * 64, LONG, "a.b/c")),
    *([opaque(parameters=value)] for value in PARAMETERS),
    [opaque(parameters={"a": "x" * 10_230})],
    [opaque(parameters={"a": "x" * 10_240})],
    [opaque()] * 32,
    [opaque()] * 33,
]
TOLERATIONS: list[Any] = [
    [],
    [{}],
    [{"operator": "Exists"}],
    [{"operator": "Exists", "value": "v"}],
    [{"operator": "Equal"}],
    [{"operator": "Odd"}],
    [{"key": "-", "operator": "Exists"}],
    [{"key": "a/b", "operator": "Equal", "value": "v"}],
    [{"key": "a", "value": "v"}],
    [{"key": "a", "value": "-"}],
    *([{"key": "a", "operator": "Exists", "effect": one}] for one in ("NoSchedule", "NoExecute", "None")),
    *([{"key": "a", "operator": "Exists", "effect": one}] for one in ("PreferNoSchedule", "")),
    *([{"operator": "Exists", "tolerationSeconds": one}] for one in (0, -1, 5, "x")),
    [{"operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}],
    [{"operator": "Exists"}] * 16,
    [{"operator": "Exists"}] * 17,
]
CAPACITIES: list[Any] = [
    {},
    {"requests": {}},
    {"requests": {"memory": "1Gi"}},
    {"requests": {"d.example.test/memory": "1"}},
    {"requests": {"Bad-Key": "1"}},
    {"requests": {"a/b/c": "1"}},
    {"requests": {"memory": "-1"}},
    {"requests": {"memory": "x"}},
    {"requests": {"memory": ""}},
    {"requests": {f"k{number}": "1" for number in range(33)}},
]
COUNTS: list[tuple[Any, Any]] = [
    ("All", GONE),
    ("All", 0),
    ("All", 1),
    ("ExactCount", GONE),
    ("ExactCount", 0),
    ("ExactCount", -1),
    ("ExactCount", 3),
    ("", 2),
    ("Odd", GONE),
    ("Odd", 4),
    (GONE, -2),
    (GONE, 4_294_967_296),
]
CLASS_NAMES = (GONE, "", "No_Name", "a.b", "a" * 64, LONG)


def counted(mode: Any, count: Any) -> dict[str, Any]:
    given = {"allocationMode": mode, "count": count}
    return {name: value for name, value in given.items() if value is not GONE}


def request_changes(at: str) -> list[tuple[str, Any]]:
    """Of a request or of one of several."""
    return [
        *each(f"{at}.deviceClassName", *CLASS_NAMES),
        *each(f"{at}.selectors", *SELECTORS),
        *each(f"{at}.tolerations", *TOLERATIONS),
        *each(f"{at}.capacity", *CAPACITIES),
        *each(f"{at}.adminAccess", None, False, True, "x"),
    ]


def claim_changes(at: str) -> list[tuple[str, Any]]:
    """Of the spec at `at`."""
    devices = f"{at}.devices"
    several = {"name": "r", "firstAvailable": [{"name": "s", **exactly()}]}
    many = [{"name": f"s{number}", **exactly()} for number in range(9)]
    odd_reference = each(f"{devices}.constraints.0.requests", ["x"], ["r", "r"], ["r/s"], ["r/s/t"], ["No_"])
    return [
        (devices, GONE),
        (devices, {}),
        (f"{devices}.requests", [request(f"r{number}") for number in range(32)]),
        (f"{devices}.requests", [request(f"r{number}") for number in range(33)]),
        (f"{devices}.requests", [request(), request()]),
        (f"{devices}.requests", [request(), request(), {}]),
        *each(f"{devices}.requests.0.name", *TEXTS),
        (f"{devices}.requests", [{"name": "r"}]),
        (f"{devices}.requests", [{"name": "r", "exactly": {}}]),
        (f"{devices}.requests", [{"name": "r", "firstAvailable": []}]),
        (f"{devices}.requests", [{**several, "exactly": exactly()}]),
        (f"{devices}.requests", [several]),
        (f"{devices}.requests", [{"name": "r", "firstAvailable": [{}]}]),
        (f"{devices}.requests", [{"name": "r", "firstAvailable": [{"name": "s", **exactly()}] * 2}]),
        (f"{devices}.requests", [{"name": "r", "firstAvailable": many[:8]}]),
        (f"{devices}.requests", [{"name": "r", "firstAvailable": many}]),
        *request_changes(f"{devices}.requests.0.exactly"),
        *((f"{devices}.requests", [request(**counted(*one))]) for one in COUNTS),
        *(
            (path, [{"name": "r", "firstAvailable": [{"name": "s", **exactly(**fields)}]}])
            for path, fields in [
                (f"{devices}.requests", fields)
                for fields in (
                    *({"deviceClassName": name} for name in ("", "No_Name", LONG)),
                    *({"selectors": value} for value in SELECTORS),
                    *({"tolerations": value} for value in TOLERATIONS),
                    *({"capacity": value} for value in CAPACITIES),
                    *(counted(*one) for one in COUNTS),
                    {"adminAccess": True},
                )
            ]
        ),
        *(
            (f"{devices}.requests", [{"name": "r", "firstAvailable": [{"name": name, **exactly()}]}])
            for name in TEXTS
            if name is not GONE
        ),
        (f"{devices}.constraints", []),
        (f"{devices}.constraints", [{}]),
        *(
            (f"{devices}.constraints", [{"matchAttribute": name}])
            for name in ("", "a", "a/b", "a.b/c", "-/b", "a/-", "a/b/c", "/b", "a/", f"{LONG}/a", f"a/{LONG}")
        ),
        *((f"{devices}.constraints", [{"distinctAttribute": name}]) for name in ("", "a", "a.b/c", "a/-")),
        (f"{devices}.constraints", [{"matchAttribute": "a/b", "distinctAttribute": "a/b"}]),
        (f"{devices}.constraints", [{"matchAttribute": "a/b"}] * 32),
        (f"{devices}.constraints", [{"matchAttribute": "a/b"}] * 33),
        *(
            (f"{devices}.constraints", [{"matchAttribute": "a/b", "requests": value}])
            for _, value in odd_reference
        ),
        (f"{devices}.constraints", [{"matchAttribute": "a/b", "requests": ["r"] * 33}]),
        (
            devices,
            {"requests": [several], "constraints": [{"matchAttribute": "a/b", "requests": ["r", "r/s"]}]},
        ),
        (devices, {"requests": [several], "config": [opaque(requests=["r/s", "r/t"])]}),
        *each(f"{devices}.config", *CONFIGS),
        *((f"{devices}.config", [opaque(requests=value)]) for _, value in odd_reference),
        (f"{devices}.config", [opaque(requests=["r"] * 33)]),
    ]


def slices(**fields: Any) -> dict[str, Any]:
    """The spec of a slice with one device."""
    return {
        "driver": "d.example.test",
        "pool": {"name": "p", "resourceSliceCount": 1},
        "nodeName": "n",
        "devices": [{"name": "d"}],
        **fields,
    }


def device(**fields: Any) -> list[Any]:
    return [{"name": "d", **fields}]


def placed(**fields: Any) -> dict[str, Any]:
    """A spec that says otherwise where its devices are."""
    spec = slices(**fields)
    del spec["nodeName"]
    return spec


def policy(value: str = "10", **fields: Any) -> list[Any]:
    return device(
        allowMultipleAllocations=True, capacity={"memory": {"value": value, "requestPolicy": fields}}
    )


def counters(*names: str) -> dict[str, Any]:
    return {name: {"value": "1"} for name in names}


VALUES: list[Any] = [{"int": 1}, {"bool": False}, {"string": "x"}, {"version": "1.2.3"}]
BAD_VALUES: list[Any] = [{}, {"int": 1, "bool": True}, {"string": ""}, {"string": "x" * 65}]
LISTS: list[Any] = [{"ints": [1]}, {"strings": ["x"], "int": 1}, {"bools": []}]
ATTRIBUTES: list[Any] = [
    {},
    *({"a": value} for value in VALUES),
    *({"a": value} for value in BAD_VALUES),
    *({"a": {"version": text}} for text in ("", "1", "1.2", "01.2.3", "1.2.3-a.b+c", "1.2.3-01", "v1.2.3")),
    {"a": {"version": f"1.2.3-{'a' * 64}"}},
    *({"a": value} for value in LISTS),
    {"a": {"int": "x"}},
    *({name: {"int": 1}} for name in ("", "a-b", "a/b", "/b", "a/", "a/b/c", "No_Name", "No_Name/a", "1a")),
    *({name: {"int": 1}} for name in ("a" * 32, "a" * 33, f"{'a' * 63}/b", f"{'a' * 64}/b", f"{LONG}/b")),
    {f"a{number}": {"int": 1} for number in range(32)},
    {f"a{number}": {"int": 1} for number in range(33)},
]
DEVICE_CAPACITIES: list[Any] = [
    {},
    {"memory": {}},
    {"memory": {"value": "1Gi"}},
    {"memory": {"value": "-1"}},
    {"memory": {"value": "x"}},
    {"a-b": {"value": "1"}},
    {"a/b/c": {"value": "1"}},
    {"memory": {"value": "1", "requestPolicy": {}}},
    {f"a{number}": {"value": "1"} for number in range(33)},
]
POLICIES: list[Any] = [
    policy(),
    policy(default="1"),
    policy(default="11"),
    policy(validValues=["1", "2"]),
    policy(default="1", validValues=["1", "2"]),
    policy(default="3", validValues=["1", "2"]),
    policy(default="1", validValues=["2", "1"]),
    policy(default="1", validValues=["1", "1"]),
    policy(default="1", validValues=["1", "11"]),
    policy(default="1", validValues=[str(number) for number in range(1, 11)]),
    policy(default="1", validValues=[str(number) for number in range(1, 12)]),
    policy(default="1", validValues=["1"], validRange={"min": "1"}),
    policy(validRange={"min": "1"}),
    policy(default="1", validRange={}),
    policy(default="1", validRange={"min": "1"}),
    policy(default="1", validRange={"min": "2"}),
    policy(default="1", validRange={"min": "11"}),
    policy(default="4", validRange={"min": "1", "max": "3"}),
    policy(default="1", validRange={"min": "3", "max": "2"}),
    policy(default="1", validRange={"min": "1", "max": "11"}),
    policy(default="1", validRange={"min": "1", "max": "9", "step": "2"}),
    policy(default="2", validRange={"min": "1", "max": "8", "step": "2"}),
    policy(default="1", validRange={"min": "1", "step": "10"}),
    policy("1Gi", default="1Mi", validRange={"min": "1Mi", "step": "1Mi", "max": "1Gi"}),
    policy("10", default="1500m", validRange={"min": "1", "step": "1"}),
    policy("10", default="1", validRange={"min": "1", "step": "-1"}),
    policy("1e30", default="1", validRange={"min": "1", "step": "18446744073709551617"}),
    policy(default="1", validValues=["1", "1500m", "2"]),
]
TAINTS: list[Any] = [
    [],
    [{}],
    [{"key": "a", "effect": "NoSchedule"}],
    [{"key": "a", "effect": "NoExecute", "value": "v", "timeAdded": "2026-01-02T03:04:05Z"}],
    [{"key": "a", "effect": "None"}],
    [{"key": "a", "effect": "Odd"}],
    [{"key": "a"}],
    [{"key": "-", "effect": "NoSchedule", "value": "-"}],
    [{"key": "", "effect": "NoSchedule"}],
    [{"key": "a", "effect": "NoSchedule"}] * 2,
    [{"key": f"a{number}", "effect": "NoSchedule"} for number in range(16)],
    [{"key": f"a{number}", "effect": "NoSchedule"} for number in range(17)],
    [{"key": "a", "effect": "NoSchedule", "timeAdded": "x"}],
]
CONSUMED: list[Any] = [
    [],
    [{}],
    [{"counterSet": "s"}],
    [{"counterSet": "s", "counters": {}}],
    [{"counterSet": "s", "counters": counters("a")}],
    [{"counterSet": "No_Name", "counters": counters("a")}],
    [{"counterSet": "", "counters": counters("a")}],
    [{"counterSet": "s", "counters": counters("No_Name")}],
    [{"counterSet": "s", "counters": {"a": {}}}],
    [{"counterSet": "s", "counters": {"a": {"value": "-1"}}}],
    [{"counterSet": "s", "counters": counters(*(f"a{number}" for number in range(32)))}],
    [{"counterSet": "s", "counters": counters(*(f"a{number}" for number in range(33)))}],
    [{"counterSet": "s", "counters": counters("a")}] * 2,
    [{"counterSet": f"s{number}", "counters": counters("a")} for number in range(2)],
    [{"counterSet": f"s{number}", "counters": counters("a")} for number in range(3)],
]
SHARED: list[Any] = [
    [],
    [{}],
    [{"name": "s"}],
    [{"name": "s", "counters": counters("a")}],
    [{"name": "s", "counters": counters("No_Name")}],
    *([{"name": name, "counters": counters("a")}] for name in TEXTS if name is not GONE),
    [{"name": "s", "counters": counters(*(f"a{number}" for number in range(32)))}],
    [{"name": "s", "counters": counters(*(f"a{number}" for number in range(33)))}],
    [{"name": "s", "counters": counters("a")}] * 2,
    [{"name": f"s{number}", "counters": counters("a")} for number in range(8)],
    [{"name": f"s{number}", "counters": counters("a")} for number in range(9)],
]
BINDINGS: list[Any] = [
    {"bindsToNode": True},
    {"bindsToNode": False},
    {"bindingConditions": ["a"]},
    {"bindingFailureConditions": ["a"]},
    {"bindingConditions": ["a"], "bindingFailureConditions": ["b"]},
    {"bindingConditions": ["a"], "bindingFailureConditions": ["a"]},
    {"bindingConditions": ["a", "a"], "bindingFailureConditions": ["b", "b"]},
    {"bindingConditions": ["-"], "bindingFailureConditions": [""]},
    {"bindingConditions": list("abcd"), "bindingFailureConditions": list("efgh")},
    {"bindingConditions": list("abcde"), "bindingFailureConditions": list("fghij")},
]
PLACES: list[Any] = [
    placed(),
    placed(allNodes=True),
    placed(allNodes=False),
    slices(allNodes=True),
    slices(nodeSelector=terms("a"), allNodes=True, perDeviceNodeSelection=True),
    *(slices(nodeName=name) for name in TEXTS if name is not GONE),
    placed(nodeSelector={}),
    placed(nodeSelector=terms("a")),
    placed(nodeSelector=terms("-")),
    placed(nodeSelector=terms("a", "b")),
    placed(nodeSelector={"nodeSelectorTerms": [{}]}),
    placed(perDeviceNodeSelection=False),
    placed(perDeviceNodeSelection=True),
    *(
        placed(perDeviceNodeSelection=True, devices=device(**fields))
        for fields in (
            {"nodeName": "n"},
            {"nodeName": ""},
            {"nodeName": "No_Name"},
            {"allNodes": True},
            {"allNodes": False},
            {"nodeSelector": terms("a")},
            {"nodeSelector": terms("a", "b")},
            {"nodeSelector": terms()},
            {"nodeName": "n", "allNodes": True, "nodeSelector": terms("-")},
        )
    ),
    slices(devices=device(nodeName="n")),
    slices(devices=device(allNodes=True)),
    slices(devices=device(nodeSelector=terms("a"))),
]
MAPPINGS: list[Any] = [{}, {"cpu": {}}, {"x": {"capacityKey": "a"}}]
META: list[tuple[str, Any]] = [
    ("metadata.name", "No_Name"),
    ("metadata.name", "two--dashes"),
    ("metadata.name", "a" * 64),
    ("metadata.name", LONG),
    ("metadata.labels", {"a": "-"}),
    ("metadata.namespace", "other"),
    ("metadata.generation", 7),
    ("unknown", 1),
]
CLAIM = {"devices": {"requests": [request()]}}
KINDS: dict[str, tuple[dict[str, Any], Sequence[tuple[str, Any]], Sequence[tuple[str, Any]]]] = {
    "deviceclasses": (
        made("DeviceClass", spec={"selectors": cel("true"), "config": [opaque()]}),
        [
            ("spec", GONE),
            ("spec", {}),
            *each("spec.selectors", *SELECTORS),
            *each("spec.config", *CONFIGS),
            *each(
                "spec.extendedResourceName",
                *("a.b/c", "", "c", "cpu", "kubernetes.io/c", "a.b/c/d", "requests.a/b", "a.b/-", LONG),
                *(f"{'a' * 253}/c", None, "hugepages-2Mi", "A.B/c"),
            ),
        ],
        [
            ("spec.selectors", cel("false")),
            ("spec.selectors", [{}]),
            ("spec.selectors", None),
            ("spec.config", [opaque(parameters=[])]),
            ("spec.config", None),
            ("spec.extendedResourceName", "a.b/c"),
            ("spec.extendedResourceName", "c"),
            ("spec.extendedResourceName", None),
        ],
    ),
    "resourceclaims": (
        made("ResourceClaim", spec=CLAIM),
        [
            ("spec", GONE),
            ("spec", {}),
            ("status", {"allocation": {}}),
            *claim_changes("spec"),
        ],
        [
            ("spec.devices.requests", [request("other")]),
            ("spec.devices.constraints", [{}]),
            ("spec.devices.config", [opaque()]),
            ("spec", None),
            ("status", {"reservedFor": [{"resource": "pods", "name": "p", "uid": UID}]}),
        ],
    ),
    "resourceclaimtemplates": (
        made("ResourceClaimTemplate", spec={"metadata": {"labels": {"a": "b"}}, "spec": CLAIM}),
        [
            ("spec", GONE),
            ("spec", {}),
            ("spec.spec", {}),
            ("spec.metadata", GONE),
            ("spec.metadata", {"name": "x"}),
            ("spec.metadata", {"labels": {"-": "b"}}),
            ("spec.metadata", {"annotations": {"-": "b"}}),
            ("spec.metadata", {"finalizers": ["x"]}),
            ("spec.metadata", {"ownerReferences": [{}]}),
            *claim_changes("spec.spec"),
        ],
        [
            ("spec.spec.devices.requests", [request("other")]),
            ("spec.spec", None),
            ("spec.metadata", {"labels": {"a": "c"}}),
            ("spec.metadata", None),
        ],
    ),
    "resourceslices": (
        made("ResourceSlice", spec=slices()),
        [
            ("spec", GONE),
            ("spec", {}),
            *each("spec.driver", *TEXTS, "Upper.Case"),
            *each("spec.pool.name", *TEXTS, "a/b", "a//b", "/", "a/B", f"{'a' * 253}", "a" * 254),
            *each("spec.pool.generation", 0, 1, -1, "x"),
            *each("spec.pool.resourceSliceCount", GONE, 0, -1, 128, "x"),
            *each("spec", *PLACES),
            *each("spec.devices", [], None, GONE),
            *each("spec.devices.0.name", *TEXTS),
            ("spec.devices", [{"name": "d"}, {"name": "d"}]),
            ("spec.devices", [{"name": f"d{number}"} for number in range(128)]),
            ("spec.devices", [{"name": f"d{number}"} for number in range(129)]),
            ("spec.devices", [{"name": f"d{number}", "taints": TAINTS[2]} for number in range(65)]),
            ("spec.devices", [{"name": f"d{n}", "consumesCounters": CONSUMED[4]} for n in range(65)]),
            *each("spec.devices.0.attributes", *ATTRIBUTES),
            *each("spec.devices.0.capacity", *DEVICE_CAPACITIES),
            ("spec.devices", device(attributes=ATTRIBUTES[-2], capacity={"memory": {"value": "1"}})),
            ("spec.devices", device(allowMultipleAllocations=True, capacity=DEVICE_CAPACITIES[2])),
            ("spec.devices", device(allowMultipleAllocations=False, capacity=DEVICE_CAPACITIES[7])),
            *each("spec.devices", *POLICIES),
            *each("spec.devices.0.taints", *TAINTS),
            *each("spec.devices.0.consumesCounters", *CONSUMED),
            *(("spec.devices", device(**one)) for one in BINDINGS),
            *(
                ("spec.devices", device(nodeAllocatableResourceMappings=one))
                for one in MAPPINGS
            ),
            *(("spec", {**slices(sharedCounters=one), "devices": GONE}) for one in SHARED),
            ("spec.sharedCounters", SHARED[3]),
        ],
        [
            ("spec.driver", "other"),
            ("spec.driver", ""),
            ("spec.pool.name", "other"),
            ("spec.pool.generation", 2),
            ("spec.pool.generation", -1),
            ("spec.nodeName", "other"),
            ("spec.nodeName", None),
            ("spec.devices", [{"name": "e"}]),
            ("spec.devices", device(taints=TAINTS[2])),
            ("spec.devices", device(taints=TAINTS[3])),
            ("spec.devices", device(taints=TAINTS[5])),
            ("spec.devices", device(capacity=DEVICE_CAPACITIES[7])),
            ("spec.devices", None),
            ("spec", {"devices": None, "sharedCounters": SHARED[3]}),
        ],
    ),
}  # fmt: skip
UPDATES: list[tuple[str, Any]] = [
    ("metadata.labels", {"x": "y"}),
    ("metadata.finalizers", ["example.test/nothing"]),
    ("metadata.finalizers", None),
    ("metadata.generation", 9),
    ("unknown", 1),
]


def without_gone(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_gone(one) for key, one in value.items() if one is not GONE}
    return value


def target_of(plural: str) -> str:
    return f"{GROUP}/namespaces/{{ns}}/{plural}" if "claim" in plural else f"{GROUP}/{plural}"


def sequences() -> list[Compared]:
    found = []
    for plural, (base, changes, updates) in KINDS.items():
        target = target_of(plural)
        place = f"{target}/base"
        told = [(path, without_gone(value)) for path, value in changes]
        found += [
            Compared(f"{plural}: created", created(target, base, [*told, *META])),
            Compared(f"{plural}: updated", updated(target, base, [*updates, *UPDATES])),
            Compared(f"{plural}: put", [
                Ask("PUT", place, base),
                Ask("POST", target, base),
                Ask("POST", target, base),
                Ask("GET", place, headers=TABLE),
                Ask("GET", f"{target}?fieldSelector=metadata.name%3Dbase", headers=TABLE),
                Ask("GET", f"{target}?fieldSelector=metadata.name%3Dbase,spec.nodeName%3Dn"),
                Ask("GET", f"{target}?fieldSelector=metadata.name%3Dbase,spec.driver%3Dd.example.test"),
                Ask("GET", f"{target}?fieldSelector=metadata.name%3Dbase,spec.driver%3Dx"),
                Ask("GET", f"{target}?fieldSelector=spec.x%3D0"),
                Ask("PUT", place, base),
                Ask("PUT", place, {**base, "metadata": {"name": "base", "resourceVersion": "1"}}),
                Ask("GET", f"{place}/status"),
                Ask("DELETE", place, {"propagationPolicy": "Foreground", "dryRun": ["All"]}),
                Ask("DELETE", place),
                Ask("GET", place),
            ]),
        ]  # fmt: skip
    return found


EXPRESSIONS = (
    "",
    "1+1",
    "foo",
    "device",
    "device.driver",
    "device.driver == 1",
    "device.attributes",
    'device.attributes["a"].b',
    'device.attributes["a"].b > 1',
    'device.capacity["a"].b',
    'device.capacity["a"].b.isGreaterThan(quantity("1"))',
    'device.capacity["a"].b > 1',
    "device.foo",
    'semver("1.2.3") == device.attributes["a"].v',
    'device.attributes["a"].v.isGreaterThan(semver("1.2.3"))',
    "device.allowMultipleAllocations",
    'device.allowMultipleAllocations == "x"',
    '"a" in device.attributes',
    "device.attributes.all(x, x == 1)",
    "object",
    "request",
    "authorizer",
    "has(device.attributes)",
    "has(device.x)",
    "true",
    '"x"',
    '[1,"a"]',
    'device.driver.matches("[")',
    'cel.bind(x, device.driver, x == "a")',
    'device.attributes["a"].b in ["x"]',
    'isSemver("1")',
    'quantity("x").isGreaterThan(quantity("1"))',
    "null",
    "{}",
    "[true]",
    "true &&",
    "device.driver[0]",
    "dyn(1)",
    "device.attributes.orValue({})",
    'device.attributes[?"a"].b',
    'device.?attributes["a"].b.orValue(true)',
    'semver("x") == semver("1.0.0")',
    'semver("1.0", true) == semver("1.0.0")',
    'device.attributes["a"].b.startsWith("x")',
    "sets.contains([1],[1])",
    'ip("1.2.3.4").family() == 4',
    'url("x").getHost() == "a"',
    'format.named("x").hasValue()',
    'device.attributes["a"].includes("x")',
    'device.attributes["a"].b.includes("x")',
)
"""None is among them that Kubernetes takes to cost too much, which podling does not count."""
USER = {"resource": "pods", "name": "p", "uid": UID}
TRUE = {
    "type": "Ready",
    "status": "True",
    "reason": "r",
    "message": "",
    "lastTransitionTime": "2026-01-02T03:04:05Z",
}


def allocated(**fields: Any) -> dict[str, Any]:
    return {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "e", **fields}]}}


def told(**fields: Any) -> dict[str, Any]:
    """A status in which a driver says something of the device that is allocated."""
    device = {"driver": "d", "pool": "p", "device": "e", "shareID": UID, **fields}
    return {"allocation": allocated(shareID=UID), "devices": [device]}


ALLOCATED_CONFIGS: list[Any] = [
    [{}],
    [opaque(source="FromClaim", requests=["r"])],
    [opaque(source="Odd", requests=["x", "r", "r"])],
    [opaque(source="FromClass", driver="", parameters=[])],
    [opaque(source="FromClass")] * 64,
    [opaque(source="FromClass")] * 65,
]
CONDITIONS: list[Any] = [
    [{}],
    [TRUE],
    [TRUE, TRUE],
    [{**TRUE, "type": "-", "status": "Odd", "reason": "-", "observedGeneration": -1}],
    [{**TRUE, "message": "m" * 32_769, "reason": "r" * 1025}],
    [{**TRUE, "type": f"c{number}"} for number in range(9)],
]
DATA: list[Any] = [{}, {"a": 1}, [], "x", None, {"a": "x" * 10_240}]
STATUSES: list[dict[str, Any]] = [
    {},
    {"reservedFor": [USER]},
    {"reservedFor": [{}]},
    {"reservedFor": [USER, USER]},
    {"devices": [{"driver": "d", "pool": "p", "device": "e"}]},
    {"devices": [{}]},
    {"allocation": {}},
    {"allocation": allocated()},
    {"allocation": allocated(request="x", driver="", pool="", device="No_")},
    {"allocation": allocated(request="r/s", driver="Upper.Case", pool="a//b", device="")},
    *(
        {"allocation": allocated(shareID=text)}
        for text in (
            *("", "x", "1" * 32, "g" * 32, "1" * 36, f"urn:uuid:{UID}", f"urn:Xuid:{UID}", f"({UID})"),
            *(f"{{{UID}}}", UID.replace("-", "_"), UID.replace("1", "g"), UID.replace("1", "A"), UID),
        )
    ),
    {"allocation": allocated(adminAccess=False)},
    {"allocation": allocated(adminAccess=True)},
    {"allocation": allocated(adminAccess=True, request="x", driver="", pool="", device="No_")},
    {"allocation": allocated(adminAccess=True), "reservedFor": [{}]},
    {"allocation": allocated(consumedCapacity={"No_-": "1"})},
    *({"allocation": allocated(tolerations=one)} for one in TOLERATIONS[:13]),
    *({"allocation": allocated(**one)} for one in BINDINGS[2:]),
    {"allocation": {**allocated(), "nodeSelector": {}}},
    {"allocation": {**allocated(), "nodeSelector": terms("a", "-")}},
    {"allocation": {**allocated(), "allocationTimestamp": "2026-01-02T03:04:05Z"}},
    *({"allocation": {"devices": {"config": one}}} for one in ALLOCATED_CONFIGS),
    {"allocation": {"devices": {"results": allocated()["devices"]["results"] * 33}}},
    {
        "allocation": allocated(),
        "reservedFor": [{**USER, "uid": f"{number}"} for number in range(256)],
    },
    {
        "allocation": allocated(),
        "reservedFor": [{**USER, "uid": f"{number}"} for number in range(257)],
    },
    told(),
    told(shareID=None),
    told(shareID="x"),
    {**told(), "devices": told()["devices"] * 2},
    *(told(conditions=one) for one in CONDITIONS),
    *(told(data=one) for one in DATA),
    told(networkData={}),
    told(networkData={"interfaceName": "x" * 257, "hardwareAddress": "x" * 129}),
    *(
        told(networkData={"ips": one})
        for one in (
            *([], ["10.0.0.1/24"] * 2, ["10.0.0.1/24"] * 17),
            *([address] for address in ("10.0.0.1", "10.0.0.1/24", "10.0.0.0/24", "fd00::1/64", "x", "")),
            *([address] for address in ("FD00::1/64", "010.0.0.1/24", "::ffff:10.0.0.1/112", "10.0.0.1/33")),
            *([address] for address in ("10.0.0.1/024", "fe80::1%eth0/64", "fd00:0::1/64")),
        )
    ),
]
CLAIMS = target_of("resourceclaims")
PATCHED = {"Content_Type": MERGE_PATCH}


def of_status() -> list[Compared]:
    claim = KINDS["resourceclaims"][0]
    place = f"{CLAIMS}/base"
    dry = [Ask("PATCH", f"{place}/status?dryRun=All", {"status": one}, PATCHED) for one in STATUSES]
    lived: list[dict[str, Any]] = [
        told(),
        {"reservedFor": [USER]},
        {"allocation": allocated(device="f")},
        {"allocation": {"nodeSelector": terms("a")}},
        {"devices": told(data={"a": 1})["devices"]},
        {"reservedFor": None, "allocation": None},
        {"allocation": allocated(adminAccess=True)},
    ]
    labelled = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    steps = [
        step
        for one in lived
        for step in (
            Ask("PATCH", f"{place}/status", {"status": one}, PATCHED),
            Ask("GET", f"{CLAIMS}?limit=1", headers=TABLE),
        )
    ]
    return [
        Compared("selectors: compiled", [
            *created(target_of("deviceclasses"), KINDS["deviceclasses"][0], [
                ("spec.selectors", cel(text, "true")) for text in EXPRESSIONS
            ]),
            *created(CLAIMS, claim, [
                ("spec.devices.requests.0.exactly.selectors", cel("true", text)) for text in ("foo", "1 +")
            ]),
            *created(CLAIMS, claim, [
                ("spec.devices.requests", [{"name": "r", "firstAvailable": [
                    {"name": "s", **exactly(selectors=cel("foo"))}
                ]}])
            ]),
            *updated(target_of("deviceclasses"), KINDS["deviceclasses"][0], [
                ("spec.selectors", cel("bar")), ("spec.selectors", cel("true", "device.driver")),
            ]),
        ]),
        Compared("status: written", [Ask("POST", CLAIMS, claim), *dry]),
        Compared("status: lived", [
            Ask("POST", CLAIMS, claim),
            Ask("PATCH", f"{place}/status", {"metadata": {"labels": {"a": "b"}}, "spec": None}, PATCHED),
            *steps,
            Ask("PATCH", "/api/v1/namespaces/{ns}", labelled, PATCHED),
            Ask("PATCH", f"{place}/status", {"status": lived[-1]}, PATCHED),
            Ask("POST", CLAIMS, changed(claim, "spec.devices.requests.0.exactly.adminAccess", True)),
            Ask("PATCH", place, {"metadata": {"finalizers": ["example.test/nothing"]}}, PATCHED),
            Ask("PATCH", f"{place}/status", {"status": {"reservedFor": [USER]}}, PATCHED),
            Ask("DELETE", place),
            Ask("GET", f"{CLAIMS}?limit=1", headers=TABLE),
            Ask("PATCH", f"{place}/status", {"status": {"reservedFor": [{**USER, "uid": "2"}]}}, PATCHED),
            Ask("PATCH", f"{place}/status", {"status": {"reservedFor": None}}, PATCHED),
            Ask("PATCH", place, {"metadata": {"finalizers": None}}, PATCHED),
        ]),
    ]  # fmt: skip


@pytest.mark.parametrize("sequence", [*sequences(), *of_status()], ids=lambda sequence: sequence.name)
def test_devices(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = sequence.name.replace(": ", "-")
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
