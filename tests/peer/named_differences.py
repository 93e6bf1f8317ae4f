"""Where podling answers otherwise than Kubernetes, and why: everything else that differs is a fault."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from peer.sequence import Found


class Difference(NamedTuple):
    """`path` is of the field in the answer, the others are of what is said there: patterns, all three."""

    name: str
    reason: str
    path: str
    kubernetes: str
    podling: str


_NOT_OURS = "what a client sends is the client's fault, also a version that Kubernetes answers with 500"


class Unasked(NamedTuple):
    """What is left out of what is asked, since the answers differ or cannot be told apart: kinds, values, the
    beginnings of paths, names of questions."""

    name: str
    reason: str
    what: tuple[Any, ...]


CLAIMS = Unasked(
    "a claim begins as pending",
    "Kubernetes stores a new claim without its phase and reads it as Pending, so that the first update "
    "writes it again, though nothing changes; podling stores what it shows",
    ("PersistentVolumeClaim",),
)
SETTLED = Unasked(
    "written meanwhile",
    "a server itself writes the status of such objects when it comes to it, so that the events of a watch "
    "come in one order or another",
    ("CustomResourceDefinition", "APIService", "ServiceCIDR", "FlowSchema"),
)
OWN_FIELDS = Unasked(
    "own fields",
    "podling's own, which Kubernetes does not know, and a generation that only it counts",
    ("spec.volumes[0].container", "status.debugContainerStatuses", "metadata.generation"),
)
UNREADABLE = Unasked(
    "managers that are no managers",
    "Kubernetes stores them in a template as they are, and then cannot tell who manages anything",
    ("spec.jobTemplate.metadata.managedFields[0].fieldsV1", "spec.metadata.managedFields[0].fieldsV1"),
)
EMPTY_BUNDLE = Unasked(
    "empty or absent",
    "of webhooks alone Kubernetes counts it as a change when a caBundle that was left out is empty now",
    ("caBundle",),
)
MINUS_ZERO = Unasked(
    "the spelling of a number",
    "in a list of bytes -0 is no number to Kubernetes; podling has read it as 0 before it knows of bytes",
    ("-0", "-0.0"),
)
AUTHENTICATION = Unasked(
    "words of a configuration",
    "for these Kubernetes looks before and after it reads the rest, tells a path from elsewhere, or shows "
    "the file and where its code is; of authorizers it has ABAC, and the build that is compared has one more",
    (("own issuer", "jwt[0].issuer.url"), ("no version", "Object 'apiVersion' is missing")),
)
AUTHORIZATION = AUTHENTICATION._replace(
    what=(
        ("unknown type", 'authorizers[0].type: Unsupported value: "Nope"'),
        ("lower case type", 'authorizers[0].type: Unsupported value: "rbac"'),
        ("no version", "Object 'apiVersion' is missing"),
        ("no kind", "Object 'Kind' is missing"),
        ("abac", "authorizers[0].type: Unsupported value"),
        ("in-cluster", "authorizers[0].connectionInfo.type: Invalid value"),
    )
)
LABELS_OF_BINDINGS = Unasked(
    "labels of a binding",
    "Kubernetes gives a pod whatever labels its binding has, and no pod with such can be changed any more; "
    "podling refuses them",
    ({"a b": "c"},),
)
HALF_A_BEHAVIOR = Unasked(
    "half a behavior",
    "whoever writes a part of the annotation in which autoscaling/v1 keeps it is its manager by Kubernetes; "
    "podling has filled in the rest first, and sees no change",
    ("autoscaling.alpha.kubernetes.io/behavior",),
)
EMPTY_OBJECT = Unasked(
    "an empty object",
    "of a dry run that ends in the last finalizer's going Kubernetes shows an object without any field",
    ("propagationPolicy=Background",),
)
BAD_PATHS = Unasked(
    "the client's fault",
    _NOT_OURS,
    (
        "/api/v1/watch",
        "/api/v1/proxy",
        "/api/v1/namespaces/../pods",
        "/api/v1/namespaces/./pods/x",
        "/api/v1/namespaces/%2e%2e/configmaps",
    ),
)
HARDLY_HTTP = Unasked(
    "hardly HTTP",
    "podling's reader of HTTP is aiohttp's: it refuses some of what Go's takes, in its own words, and takes "
    "an empty line before a request and more than one space in the first line, as RFC 9112 allows",
    ("STRICTER of test_raw_requests.py",),
)
MANY_CLAUSES = Unasked(
    "many clauses",
    "each clause of Accept may have to be compared with all before it, before anybody knows whose they are: "
    "podling reads 100",
    (101,),
)
OF_GO_PROGRAMS = Unasked(
    "pages of Go programs",
    "beta pages, for people to read, of what a Go program was started with",
    ("/statusz", "/flagz"),
)
PARTS = Unasked(
    "parts of OpenAPI",
    "Kubernetes' documents can be asked for in parts, and by their time; podling's by their ETag",
    ("/openapi/v2", "/openapi/v3/api/v1"),
)
UNASKED = (
    CLAIMS,
    SETTLED,
    OWN_FIELDS,
    UNREADABLE,
    EMPTY_BUNDLE,
    MINUS_ZERO,
    AUTHENTICATION,
    AUTHORIZATION,
    LABELS_OF_BINDINGS,
    HALF_A_BEHAVIOR,
    EMPTY_OBJECT,
    BAD_PATHS,
    HARDLY_HTTP,
    MANY_CLAUSES,
    OF_GO_PROGRAMS,
    PARTS,
)

_BINDING = "a Binding that names no node is not the server's fault, so 422 and not 500"
_SHOWN = r"review\.request\.(object|oldObject)\."
_EMPTY = "podling does not know a list that is left out from one that is empty"
_INTERNAL = "what may not change Kubernetes shows by the names and in the order of its internal types"
_KEPT = r"Invalid value: \{.*\}: field is immutable"
_TEMPLATE = rf"spec\.template(\.spec)?: {_KEPT}"
_ATTACHED = r"(.*spec: )?Invalid value: \{.*\"InlineVolumeSpec\":\{.*\}: field is immutable.*"
NAMED = (
    Difference(
        "options within a body",
        "podling writes of what kind they are",
        rf"{_SHOWN}deleteOptions\.(kind|apiVersion)",
        "nothing",
        "DeleteOptions|v1",
    ),
    Difference(
        "options within a body",
        "podling writes of what kind they are",
        rf"{_SHOWN}metadata\.managedFields\[0\]\.fieldsV1\.f:deleteOptions\.f:(kind|apiVersion)",
        "nothing",
        r"\{\}",
    ),
    Difference(
        "a deletion is asked about once",
        "Kubernetes asks again with the grace period that it has found",
        r"review\.request\.options\.gracePeriodSeconds",
        "0",
        "nothing",
    ),
    Difference(
        "a claim begins as pending",
        "Kubernetes says it to webhooks only once it is stored",
        rf"{_SHOWN}status\.phase",
        "nothing",
        "Pending",
    ),
    Difference(
        "what is allowed",
        "RFC 9110 asks every 405 to say so; Kubernetes leaves it out for some paths",
        r"headers\.Allow",
        "nothing",
        ".*",
    ),
    Difference("a bad binding", _BINDING, r"(body\.)?code", "500", "422"),
    Difference("a bad binding", _BINDING, r"body\.reason", "nothing", "Invalid"),
    Difference("a bad binding", _BINDING, r"body\.details", "nothing", r".*'kind': 'Binding'.*"),
    Difference(
        "a bad binding",
        _BINDING,
        r"body\.message",
        r"\[?target\.\w+: .*",
        r"Binding .* is invalid: \[?target\..*",
    ),
    Difference(
        "own words",
        "descriptions are podling's own",
        r"(body(\.events\[\d+\]\.object)?|\[\d+\]\.object)\.columnDefinitions\[\d+\]\.description",
        ".*",
        ".*",
    ),
    Difference(
        "generation of a template",
        "Kubernetes writes this deprecated annotation everywhere but where metadata is shown alone",
        r"(body|\[\d+\]\.object)(\.rows\[\d+\]\.object|\.items\[\d+\])?\.metadata\.annotations"
        r"(\.deprecated\.daemonset.*)?",
        "nothing",
        r"1|\{'deprecated\.daemonset\.template\.generation': '1'\}",
    ),
    Difference("of internal types", _INTERNAL, r"body\.message", f".*{_TEMPLATE}.*", f".*{_TEMPLATE}.*"),
    Difference(
        "of internal types",
        _INTERNAL,
        r"body\.(details\.causes\[\d+\]\.)?message",
        _ATTACHED,
        _ATTACHED,
    ),
    Difference("of internal types", _INTERNAL, r"body\.details\.causes\[\d+\]\.message", _KEPT, _KEPT),
    Difference(
        "no storage key",
        "podling keeps objects in SQLite: there is no key of etcd's to name",
        r"body\.message",
        r".*StorageError: invalid object, Code: 4, Key: .*",
        r"Operation cannot be fulfilled on .*: Precondition failed: (UID|ResourceVersion) in .*",
    ),
    Difference(
        "empty or absent",
        "podling does not know bytes that are left out from bytes that are empty",
        r"body\.(details\.causes\[\d+\]\.)?message",
        r'.*spec\.request: Invalid value: "": .*|Invalid value: "": PEM block .*',
        r".*spec\.request: Invalid value: null: .*|Invalid value: null: PEM block .*",
    ),
    Difference(
        "not established",
        "podling does not serve custom resources yet, and says so",
        r"body(\.items\[\d+\]|\.rows\[\d+\]\.object)?\.status\.conditions\[\d+\]\.(status|reason|message)",
        "True|InitialNamesAccepted|the initial names have been accepted",
        "False|NotServed|podling does not serve custom resources",
    ),
    Difference(
        "a diff of memory",
        "where a spec may not change, Kubernetes shows what does by the names of its internal types, podling "
        "by the path of each field",
        r"body\.(details\.causes\[\d+\]\.)?message",
        r".*(is immutable after creation|may not change fields other than )[^\n]*\n@@ .*",
        r".*(is immutable after creation|may not change fields other than )[^\n]*\n[-+] spec\..*",
    ),
    Difference("the client's fault", _NOT_OURS, r"(body\.)?code", "500", "400|403|422"),
    Difference("the client's fault", _NOT_OURS, r"body\.reason", "nothing", "BadRequest|Forbidden|Invalid"),
    Difference("the client's fault", _NOT_OURS, r"body\.details", "nothing", r"\{'name': .*"),
    Difference(
        "the client's fault",
        _NOT_OURS,
        r"body\.message",
        r"resource name may not be empty|invalid resource name .*|failed to create typed patch object .*",
        ".*",
    ),
    Difference(
        "the client's fault",
        _NOT_OURS,
        r"body\.message",
        r"resourceVersion: Invalid value: .*|target\.name: Required value",
        r"invalid resource version: resourceVersion: Invalid value: .*|Name parameter required\.",
    ),
    Difference(
        "Go's words of a body",
        "a body that is not of its type is refused alike; what is said of it are the words of Go's decoders",
        r"body\.(details\.causes\[\d+\]\.)?message",
        r".*(cannot unmarshal|json parse error|unexpected GroupVersion|in scheme|unknown conversion).*"
        r"|.*(parsing time|illegal base64|quantities must match|unable to parse quantity|cannot parse).*"
        r"|the object provided is unrecognized .*|error decoding YAML: .*|Invalid JSON Patch|json: .*"
        r"|.*(cannot convert (int64|float64|bool) to |unrecognized type: (u?int|string|bool)).*"
        r"|.*(cannot restore|unable to convert unstructured object).*"
        r"|(error decoding patch: )?(unexpected end of JSON input|invalid character .*)"
        r"|(.*: )?Object 'apiVersion' is missing in .*"
        r"|unknown patch type: .*|The order in patch list:.*|(.*: )?unexpected EOF.*|.*proto: \w+.*",
        ".*",
    ),
    Difference(
        "the spelling of a number",
        "of a number beyond an int64, or with an exponent, Kubernetes keeps here the text and there the next "
        "float; podling the number",
        r"body\.(data\.a|spec\.containers\[0\]\.resources\.(limits|requests)\.memory)",
        r"-?\d+(k|e\+?\d+)?",
        r"-?\d+([kMGTPE]|e\d+)?|-?[\d.]+e\+?\d+",
    ),
    Difference(
        "the spelling of a number",
        "in a schema, too: of a number beyond an int64 Kubernetes writes all digits, podling an exponent",
        r"body\.spec\.versions\[\d+\]\.schema\..*\.(default|enum\[\d+\]|example)(\.a)?(\[\d+\])?",
        r"-?\d{19,21}",
        r"-?[\d.]+e\+?\d+",
    ),
    Difference(
        "bytes that are no text",
        "Go quotes each byte of a path that is no UTF-8; podling has read them as U+FFFD",
        r"body\.message",
        r".*\\x[0-9a-f]{2}.*",
        r".*\ufffd.*",
    ),
    Difference(
        "answers in JSON",
        "podling reads protobuf and writes none (decision 012), and says so",
        r"body\.message",
        r"(406: Not Acceptable|only the following media types are accepted).*vnd\.kubernetes\.protobuf.*",
        r"(406: Not Acceptable|only the following media types are accepted).*",
    ),
    Difference(
        "why a patch does not fit",
        "Kubernetes says no more than that the request was rejected",
        r"body\.details\.causes",
        "nothing",
        r"\[\{.*'field': 'patch'.*\}\]",
    ),
    Difference(
        "an authority of OpenShift",
        "the programs that are compared were built for OpenShift, whose pods trust one authority more",
        r"body\.spec\.volumes\[\d+\]\.projected\.sources",
        r".*'openshift-service-ca\.crt'.*",
        r"\[.*\]",
    ),
    Difference(
        "empty or absent",
        "podling does not know a time that is none from one that is left out, where it may be: it is a time",
        r"body\..*(Time|At|Timestamp|Added|\.time|disruptedPods\.\w+)",
        "None",
        r"0001-01-01T00:00:00(\.000000)?Z",
    ),
    Difference(
        "empty or absent",
        _EMPTY,
        r"body\.metadata\.managedFields\[\d+\]\.fieldsV1\.(f:spec|.*f:(drivers|endpoints|limits|ports|rules|requests))",
        r"\{('f:(drivers|limits)': \{\})?\}|\{('f:spec': \{)?'f:devices': \{'f:requests': \{\}\}\}?\}",
        "nothing",
    ),
    Difference(
        "empty or absent",
        _EMPTY,
        r"body\.metadata\.managedFields",
        r".*'fieldsV1': \{'f:status': \{'f:currentMetrics': \{\}\}\}, 'subresource': 'status'\}\]",
        r".*",
    ),
    Difference(
        "empty or absent",
        _EMPTY,
        r"body\.(details\.causes\[\d+\]\.)?message",
        r'.*(Invalid value: \[\]|"\w+":(\[\]|\{\})|Unsupported value: \{\}).*',
        r'.*(Invalid value: null|"\w+":null|Unsupported value: null).*',
    ),
)


def unnamed(found: list[Found]) -> list[Found]:
    return [one for one in found if not names_of(one)]


def names_of(found: Found) -> list[str]:
    return [named.name for named in NAMED if _is(found, named)]


def _is(found: Found, named: Difference) -> bool:
    said = (found.path, str(found.kubernetes), str(found.podling))
    patterns = (named.path, named.kubernetes, named.podling)
    return all(re.fullmatch(pattern, text, re.DOTALL) for pattern, text in zip(patterns, said, strict=True))
