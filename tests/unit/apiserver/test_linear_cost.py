"""Whatever is sent, what it costs grows no faster than it is long: each parser and verb at n and 4n."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import Raw

from podling.apiserver.apply.apply import merge, prune
from podling.apiserver.apply.configuration import configured_fields
from podling.apiserver.apply.managed_fields import (
    Changes,
    Writer,
    difference,
    encode,
    intersection,
    parse,
    paths,
    starting_point,
    union,
    updated,
)
from podling.apiserver.apply.schema import changes_of_new, schema_of
from podling.apiserver.cel.checker import Expression
from podling.apiserver.cel.compilation import Compilation
from podling.apiserver.cel.formats import is_of_format
from podling.apiserver.cel.patterns import pattern_fault
from podling.apiserver.cel.urls import parsed_url
from podling.apiserver.cel.words import faults_in, told
from podling.apiserver.finish import finish
from podling.apiserver.kinds.custom_resources import CustomResourceDefinitions
from podling.apiserver.patch.json_patch import as_sent, json_patch
from podling.apiserver.patch.parse import parse_patch, patch_faults
from podling.apiserver.protobuf.wire import decode as decode_protobuf
from podling.apiserver.protobuf.wire import encode_bytes
from podling.apiserver.request.negotiation import body_format, negotiate
from podling.apiserver.request.request import parse_query, request_info
from podling.apiserver.rules.addresses import (
    cidr_faults_exact,
    ip_faults,
    validate_cidr,
    validate_interface_address,
)
from podling.apiserver.rules.admission_registration import (
    validate_binding,
    validate_policy,
    validate_webhooks,
)
from podling.apiserver.rules.autoscaling_v1 import METRICS, to_v1, to_v2
from podling.apiserver.rules.certificate_requests import elements, request_fault
from podling.apiserver.rules.certificates import validate_request
from podling.apiserver.rules.custom_resources.selectable import field_path_fault
from podling.apiserver.rules.devices.claim_status import validate_claim_status
from podling.apiserver.rules.devices.parts import validate_pool, validate_qualified
from podling.apiserver.rules.devices.slices import VERSION, validate_slice
from podling.apiserver.rules.flowcontrol import validate_schema
from podling.apiserver.rules.jobs import validate_exit_codes
from podling.apiserver.rules.service.ranges import validate_ranges
from podling.apiserver.rules.storage import validate_storage_class
from podling.apiserver.rules.volume.claims import validate_claim_spec, validate_claim_update
from podling.apiserver.rules.volume.persistent import validate_volume_spec, validate_volume_update
from podling.apiserver.rules.workloads import validate_share
from podling.apiserver.verbs.list import decode_continue
from podling.apiserver.verbs.scope import program
from podling.apiserver.verbs.yaml_body import read_yaml
from podling.model import names
from podling.model.codec.json import decode_sent, from_data
from podling.model.codec.strict import field_faults
from podling.model.errors import Cause, StatusError, invalid
from podling.model.quantity import Quantity
from podling.model.rules.indexes import (
    indexes_below,
    overlap,
    parse_indexes,
    total,
)
from podling.model.rules.schedule import schedule_fault
from podling.model.selectors import parse_field_selector, parse_label_selector
from podling.model.time import settled
from podling.model.types.admissionregistration import (
    AuditAnnotation,
    MatchResources,
    MutatingAdmissionPolicyBindingSpec,
    MutatingWebhook,
    NamedRuleWithOperations,
    RuleWithOperations,
    ValidatingAdmissionPolicySpec,
    WebhookClientConfig,
    WebhookServiceReference,
)
from podling.model.types.apiextensions import CustomResourceDefinition, JSONSchemaProps
from podling.model.types.autoscaling import HorizontalPodAutoscalerV1
from podling.model.types.batch import PodFailurePolicyOnExitCodesRequirement
from podling.model.types.certificates import CertificateSigningRequestSpec
from podling.model.types.flowcontrol import (
    FlowSchema,
    FlowSchemaSpec,
    FlowSubject,
    NonResourcePolicyRule,
    PolicyRulesWithSubjects,
    ResourcePolicyRule,
)
from podling.model.types.meta import ManagedFieldsEntry
from podling.model.types.networking import ServiceCIDRSpec
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.resource import (
    AllocatedDeviceStatus,
    Device,
    ResourceClaimObject,
    ResourceClaimStatus,
    ResourceSliceSpec,
)
from podling.model.types.storage import StorageClass, TopologySelectorTerm

if TYPE_CHECKING:
    from unit.conftest import Linear

Run = Callable[[Any], object]


def refused(run: Run) -> Run:
    """A refusal must not cost more than an answer."""

    def tried(value: Any) -> None:
        with suppress(StatusError, ValueError):
            run(value)

    return tried


def pod(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": containers, **spec},
    }


def encoded(data: Any) -> bytes:
    return json.dumps(data).encode()


def patched(kind: str, of: Callable[[int], tuple[Any, Any]]) -> tuple[Callable[[int], Any], Run]:
    """A patch of n things on an object of n things."""

    def run(pair: tuple[Any, bytes]) -> None:
        document, body = pair
        patch = parse_patch(f"application/{kind}+json", body, Pod)
        patch.apply(document)
        patch_faults(f"application/{kind}+json", body, patch.data)

    def make(n: int) -> tuple[Any, bytes]:
        document, patch = of(n)
        return document, encoded(patch)

    return make, refused(run)


def defined(schema: dict[str, Any]) -> CustomResourceDefinition:
    root = {"type": "object", "properties": {"a": schema}}
    version = {"name": "v1", "storage": True, "schema": {"openAPIV3Schema": root}}
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "example.test", "scope": "Cluster", "names": names, "versions": [version]}
    return from_data({"metadata": {"name": "widgets.example.test"}, "spec": spec}, CustomResourceDefinition)


def settled_definition(obj: CustomResourceDefinition) -> CustomResourceDefinition:
    CUSTOM_RESOURCES.default(obj)
    return obj


def deep(n: int, inner: Any) -> Any:
    """Its names are as long as `n` wants, its depth is that which JSON may have."""
    for _ in range(100):
        inner = {"type": "object", "properties": {"x" * (n // 100): inner}}
    return inner


def deep_value(n: int) -> Any:
    value: Any = {key: {} for key in keys(n // 20)}
    for _ in range(100):
        value = {"x" * (n // 100): value}
    return {"a": value}


def keys(n: int) -> list[str]:
    return [f"k{i}" for i in range(n)]


CUSTOM_RESOURCES = CustomResourceDefinitions()
TEXT = {"type": "string"}
KEPT = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCHEMAS: dict[str, tuple[int, Callable[[int], dict[str, Any]]]] = {
    "wide": (500, lambda n: {"type": "object", "properties": dict.fromkeys(keys(n), TEXT)}),
    "wide and wrong": (500, lambda n: {"type": "object", "properties": {key: {} for key in keys(n)}}),
    "deep": (20_000, lambda n: deep(n, {"type": "object", "properties": {key: {} for key in keys(n // 20)}})),
    "deep and good": (
        10_000,
        lambda n: deep(n, {"type": "object", "properties": dict.fromkeys(keys(n // 20), TEXT)}),
    ),
    "default, deep": (
        20_000,
        lambda n: {**KEPT, "default": deep_value(n), "properties": {"a": deep(n, KEPT)}},
    ),
    "conditions": (500, lambda n: {**TEXT, "allOf": [{"maxLength": 1, "properties": {"a": {}}}] * n}),
    "values": (5_000, lambda n: {**TEXT, "enum": [1.0] * n, "default": "x"}),
    "default": (
        1_000,
        lambda n: {
            "type": "array",
            "items": {**TEXT, "anyOf": [{"minLength": 9}] * (n // 10)},
            "default": ["a"] * n,
        },
    ),
    "default, long": (
        10_000,
        lambda n: {**TEXT, "default": "a" * n, "anyOf": [{"minLength": 1 << 40}] * (n // 20)},
    ),
    "default, unknown": (2_000, lambda n: {"type": "object", "default": labels(n)}),
    "map keys": (
        1_000,
        lambda n: {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": keys(n),
            "items": {"type": "object", "properties": dict.fromkeys(keys(n // 2), TEXT)},
        },
    ),
    "rules": (
        2_000,
        lambda n: {**TEXT, "x-kubernetes-validations": [{"rule": " " * 9, "fieldPath": ".a"}] * n},
    ),
}


def persistent_volume(n: int) -> PersistentVolume:
    terms = [{"matchExpressions": [{"key": "k", "operator": "Exists"}] * 2} for _ in range(n)]
    spec = {"accessModes": ["Odd"] * n, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    capacity = {f"r{i}": "-1" for i in range(n)}
    return from_data(
        {"spec": {**spec, "capacity": capacity, "rbd": {"monitors": ["m"] * n}}}, PersistentVolume
    )


def claim(n: int) -> PersistentVolumeClaim:
    modes, requests = ["Odd"] * n, {f"r{i}": "1" for i in range(n)}
    spec = {"accessModes": modes, "resources": {"requests": requests}}
    return from_data({"spec": spec}, PersistentVolumeClaim)


def labels(n: int) -> dict[str, str]:
    return {f"k{i}": "v" for i in range(n)}


def variables(n: int, value: str = "v") -> list[dict[str, str]]:
    return [{"name": f"V{i}", "value": value} for i in range(n)]


def with_env(env: list[Any]) -> dict[str, Any]:
    return pod(containers=[{"name": "c", "env": env}])


def moves(n: int) -> tuple[Any, Any]:
    document = {"metadata": {"labels": labels(4 * n)}}
    path = "/metadata/labels/k"
    return document, [{"op": "move", "from": f"{path}{i}", "path": f"{path}{i}x"} for i in range(n)]


def deep_path(n: int) -> tuple[Any, Any]:
    document: Any = {}
    for _ in range(400):
        document = {"a": document}
    return document, [{"op": "add", "path": "/a" * 400 + "/b" * n, "value": 1}] * 4


def overwritten(n: int) -> tuple[Any, Any]:
    return with_env(variables(n)), with_env(variables(2 * n, "w"))


def ordered(n: int) -> tuple[Any, Any]:
    order = [{"name": f"V{i}"} for i in reversed(range(n))]
    container = {"name": "c", "env": variables(n), "$setElementOrder/env": order}
    return with_env(variables(n)), {"spec": {"containers": [container]}}


def repeating(n: int, op: str, path: str, again: str) -> bytes:
    """A JSON patch of a long value with a key that it gives twice, and of operations on it."""
    value = f'{{"b":{{"a":[{",".join(["1"] * 100 * n)}],"a":1}}}}'
    first = f'{{"op":"{op}","path":"{path}","value":{value}}}'
    return f"[{','.join([first, *[again] * n])}]".encode()


def protobuf_pod(n: int) -> bytes:
    container = encode_bytes(1, b"c") + b"".join(
        encode_bytes(7, encode_bytes(1, b"A%d" % i)) for i in range(n)
    )
    raw = encode_bytes(2, encode_bytes(2, container))
    identity = encode_bytes(1, b"v1") + encode_bytes(2, b"Pod")
    return b"k8s\0" + encode_bytes(1, identity) + encode_bytes(2, raw)


def field_set(n: int) -> dict[str, Any]:
    return {"f:metadata": {"f:labels": {f"f:k{i}": {} for i in range(n)}}}


def algebra(n: int) -> Any:
    return field_set(n), field_set(2 * n)


def combined(pair: Any) -> None:
    ours, theirs = pair
    union(ours, theirs)
    difference(ours, theirs)
    intersection(ours, theirs)
    list(paths(ours))


def asked_of_many(text: str) -> None:
    matches = parse_label_selector(text).matches
    for i in range(200):
        matches({f"k{i}": "v"})


def fields_of_many(text: str) -> None:
    wanted = parse_field_selector(text)
    for i in range(200):
        wanted.matches(lambda _, name=f"n{i}": name)  # type: ignore[misc]


def applied(pair: tuple[Any, Any]) -> None:
    live, configuration = pair
    schema = schema_of(Pod)
    fields = configured_fields(schema, configuration, "p")
    merged = merge(schema, live, configuration)
    prune(schema, merged, fields, {})
    changes_of_new(Pod, merged)


def unremembered(check: Any) -> Run:
    """Without what it keeps of earlier questions."""
    inner: Run = getattr(check, "__wrapped__", check)
    return inner


def managers(n: int) -> list[ManagedFieldsEntry]:
    return [
        ManagedFieldsEntry(
            manager=f"m{i}",
            operation="Update",
            api_version="v1",
            fields_type="FieldsV1",
            fields_v1=Raw(encode({"f:metadata": {"f:labels": {f"f:k{i}": {}}}})),
        )
        for i in range(n)
    ]


def tracked(entries: list[ManagedFieldsEntry]) -> None:
    start = starting_point(list(reversed(entries)), entries)
    updated(start, Changes({"f:spec": {}}, {}), Writer("m", "v1"), datetime(2026, 1, 2, tzinfo=UTC))


def warned(texts: list[str]) -> None:
    class Context:
        audit_id, warnings, query, wanted = "a", texts, dict[str, Any](), None
        flow_headers = dict[str, str]()

    class Answer:
        headers, body = dict[str, str](), None

    finish(Context(), Answer())  # type: ignore[arg-type]


def faults_of_any(body: bytes) -> None:
    field_faults(body, dict[str, Any])


def read(body: bytes) -> None:
    decode_sent(body, Pod)
    field_faults(body, Pod)


merging = patched("merge-patch", lambda n: (pod(), {"metadata": {"labels": labels(n)}}))
strategic = patched("strategic-merge-patch", overwritten)
removing = patched(
    "json-patch",
    lambda n: (
        {"a": list(range(n))},
        [{"op": "remove", "path": "/a/0"}] * (n // 4),
    ),
)
moving, walking, ordering = (
    patched("json-patch", moves),
    patched("json-patch", deep_path),
    patched("strategic-merge-patch", ordered),
)

OLDER_METRIC = '{"TYPE":"Pods","pods":{"MetricName":"m"}}'
TABLE: dict[str, tuple[int, Callable[[int], Any], Run]] = {
    "quantity": (200_000, lambda n: "1" * n, refused(Quantity)),
    "quantity with a fraction": (200_000, lambda n: f"0.{'1' * n}", refused(Quantity)),
    "quantity of zeros": (200_000, lambda n: f"{'0' * n}1", refused(Quantity)),
    "quantity, its exponent": (200_000, lambda n: f"1e{'1' * n}", refused(Quantity)),
    "no quantity": (100_000, lambda n: f"{'1' * n}x", refused(Quantity)),
    "no quantity, a fraction": (100_000, lambda n: f"1.{'1' * n}.", refused(Quantity)),
    "no quantity, its suffix": (100_000, lambda n: f"1{'E' * n}1x", refused(Quantity)),
    "field selector": (5_000, lambda n: ",".join(f"metadata.name!=a{i}" for i in range(n)), fields_of_many),
    "field selector, one value": (100_000, lambda n: f"metadata.name={'a' * n}", parse_field_selector),
    "field selector, escapes": (20_000, lambda n: "a=" + r"\," * n, parse_field_selector),
    "no field selector": (100_000, lambda n: "a" * n, refused(parse_field_selector)),
    "label selector": (2_000, lambda n: ",".join(f"a!=v{i}" for i in range(n)), asked_of_many),
    "label selector, many keys": (2_000, lambda n: ",".join(f"!a{i}" for i in range(n)), asked_of_many),
    "label selector, a set": (
        5_000,
        lambda n: f"a in ({','.join(f'v{i}' for i in range(n))})",
        asked_of_many,
    ),
    "label selector of blanks": (100_000, lambda n: f"a{' ' * n}", refused(parse_label_selector)),
    "no label selector": (100_000, lambda n: "=" * n, refused(parse_label_selector)),
    "merge patch": (10_000, *merging),
    "strategic merge patch": (2_000, *strategic),
    "strategic merge patch, an order": (4_000, *ordering),
    "JSON patch of moves": (2_400, *moving),
    "JSON patch of a list": (8_000, *removing),
    "JSON patch, a long path": (50_000, *walking),
    "JSON": (10_000, lambda n: encoded(with_env(variables(n))), read),
    "JSON with unknown fields": (
        10_000,
        lambda n: encoded({**pod(), **{f"x{i}": 1 for i in range(n)}}),
        read,
    ),
    "JSON below a long key": (
        10_000,
        lambda n: encoded({"x" * n: {f"k{i}": 1 for i in range(n)}, "y": 1}),
        faults_of_any,
    ),
    "JSON with one key again and again": (
        10_000,
        lambda n: b"{%b}" % b",".join([b'"b":1'] * n),
        faults_of_any,
    ),
    "YAML": (1_000, lambda n: b"a:\n" + b"".join(b"- b: %d\n" % i for i in range(n)), read_yaml),
    "YAML, a long value": (50_000, lambda n: b"a: " + b"b " * n, read_yaml),
    "protobuf": (2_500, protobuf_pod, lambda body: decode_protobuf(body, Pod)),
    "Accept": (5_000, lambda n: ",".join(["text/html;q=0.5"] * n), refused(unremembered(negotiate))),
    "Accept, each better": (
        5_000,
        lambda n: ",".join(f"a/b;q=0.{i:06}" for i in range(n)),
        refused(unremembered(negotiate)),
    ),
    "JSON patch as sent, copies": (
        250,
        lambda n: repeating(n, "add", "/x", '{"op":"copy","from":"/x/b/a","path":"/y"}'),
        lambda body: json_patch({}, as_sent(body)),
    ),
    "JSON patch as sent, tests": (
        250,
        lambda n: repeating(n, "replace", "", '{"op":"test","path":"","value":{"b":{"a":1}}}'),
        lambda body: json_patch({}, as_sent(body)),
    ),
    "Accept, parameters": (20_000, lambda n: f"text/html{';a=b' * n}", refused(unremembered(negotiate))),
    "Content-Type": (20_000, lambda n: f"application/json{';a=b' * n}", body_format),
    "User-Agent": (100_000, lambda n: "a" * n, program),
    "query": (2_000, lambda n: "&".join(f"a{i}=b" for i in range(n)), parse_query),
    "path": (100_000, lambda n: f"/api/v1/pods{'/a' * n}", lambda path: request_info("GET", path, {})),
    "continue token": (
        100_000,
        lambda n: base64.b64encode(b"{" + b"a/" * n).decode(),
        refused(decode_continue),
    ),
    "managed fields": (5_000, lambda n: encode(field_set(n)), parse),
    "sets of fields": (5_000, algebra, combined),
    "managers": (500, managers, tracked),
    "apply": (1_000, overwritten, applied),
    "time": (100_000, lambda n: f"2026-01-02T03:04:05.{'0' * n}Z", lambda text: settled(text, "date-time")),
    "no time": (100_000, lambda n: "2" * n, refused(lambda text: settled(text, "date-time"))),
    "address": (50_000, lambda n: "0" * n, ip_faults),
    "address of zeros": (50_000, lambda n: f"{'0' * n}1.0.0.1", ip_faults),
    "subnet": (50_000, lambda n: f"10.0.0.0/{'0' * n}8", lambda text: list(validate_cidr(text, ""))),
    "subnet, its one spelling": (50_000, lambda n: f"fd00:{':0' * n}/64", cidr_faults_exact),
    "ranges": (
        20_000,
        lambda n: ServiceCIDRSpec(cidrs=["10.0.0.0/8"] * n),
        lambda spec: list(validate_ranges(spec, "spec")),
    ),
    "label key": (100_000, lambda n: f"{'a' * n}/{'b' * n}-", names.label_key),
    # Larger ones measure the memory: their parts do not fit into a processor's cache.
    "domain": (30_000, lambda n: f"{'a.' * n}!", names.dns1123_subdomain),
    "domain of dashes": (30_000, lambda n: f"{'a-' * n}", names.dns1123_subdomain),
    "port name": (100_000, lambda n: "-" * n, names.port_name),
    "header name": (100_000, lambda n: f"{'a' * n} ", names.http_header),
    "indexes of a Job": (
        2_500,
        lambda n: ",".join(str(2 * i) for i in range(n)),
        lambda text: overlap(parse_indexes(text, 1 << 30), parse_indexes(f"{text},{1 << 29}", 1 << 30)),
    ),
    "exit codes of a Job": (
        5_000,
        lambda n: PodFailurePolicyOnExitCodesRequirement(operator="In", values=list(range(1, n + 1))),
        lambda codes: list(validate_exit_codes(codes, set(), "")),
    ),
    "indexes, counted": (
        20_000,
        lambda n: ",".join(str(index) for index in range(0, 2 * n, 2)),
        lambda text: total(indexes_below(text, 1 << 30)),
    ),
    "schedule": (10_000, lambda n: f"{'1,' * n}x * * * *", schedule_fault),
    "schedule, a duration": (25_000, lambda n: f"@every {'1s' * n}", schedule_fault),
    "usages of a certificate": (
        2_500,
        lambda n: CertificateSigningRequestSpec(usages=[f"usage {i}" for i in range(n)]),
        lambda spec: list(validate_request(spec)),
    ),
    "PEM": (20_000, lambda n: b"-----BEGIN A-----\na:b\nYQ==\n" * n, request_fault),
    "PEM, headers": (20_000, lambda n: b"-----BEGIN A-----\n" + b"a:b\n" * n, request_fault),
    "pool of devices": (20_000, lambda n: "a-" * n + "/a" * n, lambda name: list(validate_pool(name, ""))),
    "attribute of a device": (
        100_000,
        lambda n: f"{'a-' * n}/{'a' * n}-",
        lambda name: list(validate_qualified(name, "")),
    ),
    "version of a device": (100_000, lambda n: f"1.2.3-{'0a1.' * n}!", VERSION.fullmatch),
    "version of digits": (100_000, lambda n: f"1.2.3-{'1' * n}!", VERSION.fullmatch),
    "address of a device": (
        50_000,
        lambda n: f"{'0' * n}1.0.0.1/24",
        lambda address: list(validate_interface_address(address, "")),
    ),
    "devices": (
        5_000,
        lambda n: ResourceSliceSpec(devices=[Device(name=f"d{i}") for i in range(n)]),
        lambda spec: list(validate_slice(spec, spec)),
    ),
    "devices of a claim": (
        2_000,
        lambda n: ResourceClaimObject(
            status=ResourceClaimStatus(
                devices=[AllocatedDeviceStatus(driver="d", pool="p", device=f"d{i}") for i in range(n)]
            )
        ),
        lambda claim: list(validate_claim_status(claim, claim)),
    ),
    "DER": (20_000, lambda n: b"\x82\x01a" * n, lambda der: list(elements(der))),
    "topologies": (
        2_000,
        lambda n: StorageClass(provisioner="a", allowed_topologies=[TopologySelectorTerm()] * n),
        lambda obj: list(validate_storage_class(obj)),
    ),
    "URL": (25_000, lambda n: f"https://{'%41@:[' * n}", refused(parsed_url)),
    "URL, a zone": (12_500, lambda n: f"https://[::1%25{'%41' * n}]:", parsed_url),
    "URL, a user": (25_000, lambda n: f"https://{'%41:' * n}@h", parsed_url),
    "path of a webhook": (
        25_000,
        lambda n: MutatingWebhook(
            client_config=WebhookClientConfig(service=WebhookServiceReference(path="/" * n))
        ),
        lambda webhook: list(validate_webhooks([webhook], {})),
    ),
    "rule of a webhook": (
        5_000,
        lambda n: MutatingWebhook(
            rules=[RuleWithOperations(["*"], ["*"], ["*"], [f"{i}/*" for i in range(n)] + ["*", "*/*"])]
        ),
        lambda webhook: list(validate_webhooks([webhook], {})),
    ),
    "names of a policy": (
        5_000,
        lambda n: MatchResources(
            resource_rules=[NamedRuleWithOperations(resource_names=[f"{i}" for i in range(n)])]
        ),
        lambda match: list(validate_binding(MutatingAdmissionPolicyBindingSpec("p", None, match))),
    ),
    "annotations of a policy": (
        2_000,
        lambda n: ValidatingAdmissionPolicySpec(
            audit_annotations=[AuditAnnotation(f"a{i}", "'a'") for i in range(n)]
        ),
        lambda spec: list(validate_policy(spec, "p", {})),
    ),
    "objects of an expression": (
        20_000,
        lambda n: f"{'Object.a' * n}{'a' * n} {'. ' * n}{'b' * n}",
        lambda text: Compilation().fault(Expression(text, mutates=True)),
    ),
    "an expression that is right": (
        500,
        lambda n: " && ".join(["object.a.startsWith('b') || [1, 2].exists(x, x > 1)"] * n),
        lambda text: Compilation().fault(Expression(text)),
    ),
    "an expression that is wrong": (
        500,
        lambda n: " && ".join(["foo(object.a + 1) == [1, 'a']"] * n),
        lambda text: Compilation().fault(Expression(text)),
    ),
    "quotes of an expression": (
        10_000,
        lambda n: "'`" * n + '"""' * n,
        lambda text: Compilation().fault(Expression(text)),
    ),
    "faults of an expression": (
        5_000,
        lambda n: "".join(f"ERROR: <input>:1:{i}: x\n | a\n" for i in range(n)),
        lambda text: told(list(faults_in(text, "a" * len(text))), "a" * len(text)),
    ),
    **{
        f"what is no expression, {name}": (n, make, lambda text: Compilation().fault(Expression(text)))
        for name, (n, make) in {
            "at its end": (100, lambda n: f"[{'a.b(1) + -2, ' * n}]]"),
            "from its beginning": (5_000, lambda n: "] " * n),
            "without tokens": (5_000, lambda n: "'a\n" * n),
            "without an end": (2_000, lambda n: "a.b{c: " * n),
        }.items()
    },
    "a volume": (
        500,
        lambda n: persistent_volume(n),
        lambda obj: list(validate_volume_spec(obj.spec, "spec", "v")),
    ),
    "a volume that moves": (
        500,
        lambda n: (persistent_volume(n), persistent_volume(n + 1)),
        lambda pair: list(validate_volume_update(*pair)),
    ),
    "a claim that changes": (
        1_000,
        lambda n: (claim(n), claim(n + 1)),
        lambda pair: [*validate_claim_spec(pair[0].spec, "spec"), *validate_claim_update(*pair)],
    ),
    "percentage": (100_000, lambda n: f"{'9' * n}%", lambda text: list(validate_share(text, ""))),
    "refusal": (
        5_000,
        lambda n: [Cause("FieldValueInvalid", "bad", f"f[{i}]") for i in range(n)],
        lambda causes: invalid("Pod", "p", causes),
    ),
    **{
        f"schema, {name}": (
            n,
            lambda n, make=make: defined(make(n)),  # type: ignore[misc]
            lambda obj: CUSTOM_RESOURCES.validate(settled_definition(obj)),
        )
        for name, (n, make) in SCHEMAS.items()
    },
    "pattern": (20_000, lambda n: f"{'(a*)*' * (n // 50)}{'a' * n}", pattern_fault),
    **{
        f"format {form} of {text!r}": (
            20_000,
            lambda n, text=text: text * n,  # type: ignore[misc]
            lambda made, form=form: is_of_format(form, made),  # type: ignore[misc]
        )
        for form, text in (
            ("email", "a "),
            ("email", '"a'),
            ("duration", "1"),
            ("duration", "1h"),
            ("uri", "a"),
        )
    },
    "path of a field": (
        20_000,
        lambda n: ("['a'].'" * n, JSONSchemaProps(additional_properties=JSONSchemaProps(type="object"))),
        lambda pair: field_path_fault(*pair),
    ),
    "warnings": (5_000, lambda n: [f"unknown field {i}" for i in range(n)], warned),
    "metrics of an older time": (
        1_000,
        lambda n: from_data(
            {"metadata": {"annotations": {METRICS: "[" + ",".join([OLDER_METRIC] * n) + "]"}}},
            HorizontalPodAutoscalerV1,
        ),
        lambda obj: to_v1(to_v2(obj)),
    ),
    "rules of a flow schema": (
        2_000,
        lambda n: FlowSchema(
            spec=FlowSchemaSpec(
                rules=[
                    PolicyRulesWithSubjects(
                        subjects=[FlowSubject(kind="User")] * n,
                        resource_rules=[ResourcePolicyRule(verbs=["get"] * n, namespaces=["a"] * n)],
                        non_resource_rules=[NonResourcePolicyRule(non_resource_urls=["/a"] * n)],
                    )
                ]
            )
        ),
        lambda obj: list(validate_schema(obj)),
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_parsers(assert_linear: Linear, name: str) -> None:
    n, make, run = TABLE[name]
    assert_linear(make, run, n)
