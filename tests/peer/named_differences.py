"""Where podling answers otherwise than Kubernetes, and why: everything else that differs is a fault."""

from __future__ import annotations

import re
from typing import NamedTuple

from peer.sequence import Found


class Difference(NamedTuple):
    """`path` is of the field in the answer, the others are of what is said there: patterns, all three."""

    name: str
    reason: str
    path: str
    kubernetes: str
    podling: str


_NOT_OURS = "what a client sends is the client's fault, also a version that Kubernetes answers with 500"
_BINDING = "a Binding that names no node is not the server's fault, so 422 and not 500"
_EMPTY = "podling does not know a list that is left out from one that is empty"
_INTERNAL = "Kubernetes shows a pod template that may not change by the names of its internal types"
_KEPT = r"Invalid value: \{.*\}: field is immutable"
_TEMPLATE = rf"spec\.template(\.spec)?: {_KEPT}"
NAMED = (
    Difference(
        "what is allowed",
        "RFC 9110 asks every 405 to say so; Kubernetes leaves it out for some paths",
        r"headers\.Allow",
        "nothing",
        ".*",
    ),
    Difference(
        "nobody manages a question",
        "the answer to a TokenRequest or a review is not stored, so nobody manages its fields",
        r"body\.metadata\.managedFields",
        r".*'manager': 'peer', .*'subresource': 'token'.*",
        "nothing",
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
        r"body\.columnDefinitions\[\d+\]\.description",
        ".*",
        ".*",
    ),
    Difference(
        "generation of a template",
        "Kubernetes writes this deprecated annotation everywhere but in the rows of a Table",
        r"body\.rows\[\d+\]\.object\.metadata\.annotations",
        "nothing",
        r"\{'deprecated\.daemonset\.template\.generation': '1'\}",
    ),
    Difference("an internal template", _INTERNAL, r"body\.message", f".*{_TEMPLATE}.*", f".*{_TEMPLATE}.*"),
    Difference("an internal template", _INTERNAL, r"body\.details\.causes\[\d+\]\.message", _KEPT, _KEPT),
    Difference(
        "no storage key",
        "podling keeps objects in SQLite: there is no key of etcd's to name",
        r"body\.message",
        r".*StorageError: invalid object, Code: 4, Key: .*",
        r"Operation cannot be fulfilled on .*: Precondition failed: UID in precondition: .*",
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
        r"body\.status\.conditions\[\d+\]\.(status|reason|message)",
        "True|InitialNamesAccepted|the initial names have been accepted",
        "False|NotServed|podling does not serve custom resources",
    ),
    Difference(
        "who keeps definitions",
        "podling's controllers write in one name, also those that Kubernetes has in its API server",
        r"body\.(rows\[\d+\]\.object\.)?metadata\.managedFields\[\d+\]\.manager",
        "kube-apiserver",
        "kube-controller-manager",
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
        r"resourceVersion: Invalid value: .*",
        r"invalid resource version: resourceVersion: Invalid value: .*",
    ),
    Difference(
        "Go's words of a body",
        "a body that is not of its type is refused alike; what is said of it are the words of Go's decoders",
        r"body\.message",
        r".*(cannot unmarshal|json parse error|unexpected GroupVersion|in scheme|unknown conversion).*"
        r"|.*(parsing time|illegal base64|quantities must match|unable to parse quantity|cannot parse).*",
        ".*",
    ),
    Difference(
        "an authority of OpenShift",
        "the programs that are compared were built for OpenShift, whose pods trust one authority more",
        r"body\.spec\.volumes\[\d+\]\.projected\.sources",
        r".*'openshift-service-ca\.crt'.*",
        r"\[.*\]",
    ),
    Difference(
        "no taint of a new node",
        "a kubelet of podling is ready when it says that it is there, and nothing would take the taint away",
        r"body\.spec\.taints",
        r"\[.*\{'key': 'node\.kubernetes\.io/not-ready', 'effect': 'NoSchedule'\}\]",
        ".*",
    ),
    Difference(
        "fields that are dropped",
        "Kubernetes records who wrote a field, and then drops the field",
        r"body\.metadata\.managedFields.*",
        r".*f:(configSource|finalizers|config|nodeAllocatableResourceClaimStatuses)'.*",
        ".*",
    ),
    Difference(
        "empty or absent",
        _EMPTY,
        r"body\.metadata\.managedFields\[\d+\]\.fieldsV1\.(f:spec|.*f:(drivers|endpoints|limits|ports|rules))",
        r"\{('f:(drivers|limits)': \{\})?\}",
        "nothing",
    ),
    Difference(
        "empty or absent",
        _EMPTY,
        r"body\.(details\.causes\[\d+\]\.)?message",
        r'.*(Invalid value: \[\]|"Values":\[\]|"Rules":\[\]|Unsupported value: \{\}).*',
        r'.*(Invalid value: null|"Values":null|"Rules":null|Unsupported value: null).*',
    ),
)


def unnamed(found: list[Found]) -> list[Found]:
    return [one for one in found if not any(_is(one, named) for named in NAMED)]


def _is(found: Found, named: Difference) -> bool:
    said = (found.path, str(found.kubernetes), str(found.podling))
    patterns = (named.path, named.kubernetes, named.podling)
    return all(re.fullmatch(pattern, text, re.DOTALL) for pattern, text in zip(patterns, said, strict=True))
