"""R-SYS-8: options and bodies that hardly anybody sends, answered by podling as by Kubernetes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import pytest

from peer.every_kind import samples
from peer.named_differences import unnamed
from peer.sequence import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, differences, shown
from peer.server import Answer, Server
from podling.apiserver.protobuf.wire import MAGIC, encode_bytes, encode_varint

MAPS = "/api/v1/namespaces/{ns}/configmaps"
PODS = "/api/v1/namespaces/{ns}/pods"
POD = {
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False},
}
MADE = [
    Ask("POST", MAPS, {"metadata": {"name": name, "labels": {"l": name}, "finalizers": ["x.y/z"]}})
    for name in "abc"
]
OF_A_DELETION = (
    "propagationPolicy=No", "propagationPolicy=", "propagationPolicy=Orphan&dryRun=All", "dryRun=No",
    "gracePeriodSeconds=-1&dryRun=All", "gracePeriodSeconds=x", "gracePeriodSeconds=99999999999999999999",
    "orphanDependents=true&dryRun=All", "orphanDependents=true&propagationPolicy=Orphan", "continue=x",
    "limit=1&dryRun=All", "limit=-1&dryRun=All", "limit=99999999999&dryRun=All", "timeoutSeconds=x",
    "resourceVersion=$0.metadata.resourceVersion&resourceVersionMatch=Exact&dryRun=All",
    "sendInitialEvents=true&dryRun=All",
    "allowWatchBookmarks=true&dryRun=All", "watch=true&dryRun=All",
    "fieldSelector=metadata.name%3Da&dryRun=All",
    "labelSelector=l+in+(a,b)&dryRun=All", "pretty=x&dryRun=All",
    "ignoreStoreReadErrorWithClusterBreakingPotential=true",
    "ignoreStoreReadErrorWithClusterBreakingPotential=x",
)  # fmt: skip
DELETIONS: tuple[Any, ...] = (
    {}, [], b"null", b"x", b'""', b'{"dryRun":["All"]} x', {"kind": "DeleteOptions", "apiVersion": "v1"},
    {"kind": "DeleteOptions", "apiVersion": "v2"}, {"kind": "Pod", "apiVersion": "v1"},
    {"kind": "DeleteOptions"},
    {"kind": "DeleteOptions", "apiVersion": "apps/v1"}, {"propagationPolicy": "No"},
    {"propagationPolicy": "Orphan", "orphanDependents": True}, {"gracePeriodSeconds": -3},
    {"gracePeriodSeconds": "x"}, {"preconditions": {"uid": "x"}}, {"preconditions": {"resourceVersion": "1"}},
    {"dryRun": ["No"]}, {"dryRun": ["All", "All"]}, {"dryRun": "All"}, {"nope": 1},
    {"ignoreStoreReadErrorWithClusterBreakingPotential": True},
)  # fmt: skip
TRIED = {"dryRun": ["All"]}
_NOW = "resourceVersion=$0.metadata.resourceVersion"
OF_PRECONDITIONS = (
    "uid=x", "uid=", "uid=$0.metadata.uid", f"uid=$0.metadata.uid&{_NOW}", _NOW, "resourceVersion=",
    "resourceVersion=x", "resourceVersion=0$0.metadata.resourceVersion", "uid=x&uid=$0.metadata.uid",
    "preconditions=x", "preconditions.uid=x", f"{_NOW}&limit=1", f"{_NOW}&resourceVersionMatch=Exact",
    f"{_NOW}&resourceVersionMatch=NotOlderThan", "resourceVersion=$1.metadata.resourceVersion",
    "resourceVersion=0", "resourceVersion=0&resourceVersionMatch=NotOlderThan", f"{_NOW}&continue=x",
    "limit=-1", f"{_NOW}&limit=-1",
)  # fmt: skip
SORTS = (
    "text/plain", "application/yaml", "application/x-www-form-urlencoded", "application/cbor", "",
    "application/vnd.kubernetes.protobuf", "application/json; charset=utf-8", "application/json;",
    "application/merge-patch+json",
)  # fmt: skip
OF_PODS: dict[str, tuple[str, ...]] = {
    "status": ("GET", "PUT", "PATCH", "POST", "DELETE"),
    "ephemeralcontainers": ("GET", "PUT", "PATCH", "POST"),
    "resize": ("GET", "PUT", "PATCH", "POST"),
    "binding": ("GET", "POST", "PUT"),
    "eviction": ("GET", "POST", "PUT"),
    "log": ("GET", "POST"),
    "nope": ("GET", "POST"),
}
WRONG: tuple[Any, ...] = (
    {}, [], b"", b"x", {"metadata": 1}, {"metadata": {"name": "q"}},
    {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}},
    {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "p"}},
    {"metadata": {"name": "p", "namespace": "other"}},
)  # fmt: skip
OF_WRITES = (
    "dryRun=All", "fieldValidation=Strict&dryRun=All", "fieldManager=%C3%A4%00&dryRun=All", "dryRun=No",
)  # fmt: skip

TRUTHS = ("y", "Y", "n", "N", "yes", "YES", "yEs", "on", "Off", "no", "~", "null", "true", "TRUE")
YAML = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: z}\ndata: "

OF_LABELS = (
    "a\x0b=b", "a\x0c", "a >x,-", "a in (-,-- )", "a>-", "a>-x", "a>_,b", "a>x y", "a,\x00", "a(\x00b",
    "a\x00in(b)", "a i\x00n (b)", "a =\x00= b", "a !\x00= b", "a \x00 b", "a in (-b,-c)", "a>x,A/=b",
    'a notin (' + "x" * 64 + ',----------------------------------------------------------------)', "a=(",
    " a", "a\x00", "a in (b,(c))", "a in (,(", "a in (b,", "a in (,", "a in (,,,b)", "a in (b,!",
    "a in (b,=", "A/b>x", "A/b>c d", "a>'", '/>' + "x" * 64, "_/ in (-,-)", "a\x00b", "\x00a", "a,\x00b",
    "a=b\x00c", "a in (b\x00,c)", "a\x00\x00=b", "\x00\x00", "a=\x00b", "a!\x00=b",
    "a>-9223372036854775808", "a>-9223372036854775809", "a=\t", "a=\\", "a/", "a=\u200b", "a=\xa0b",
    "a\u2003=b", "/a", "a//b", "a/b/c", "/", "a b", "a,b", "a,", "a,,b", ",a", ",", "a=", "a==", "a===b",
    "a!=", "!a", "!!a", "! a", "!", "!a=b", "!a in (b)", "a in", "a in ()", "a in (", "a in (b",
    "a in (b,)", "a in (,b)", "a in (b,,c)", "a in (b c)", "a in b", "a in(b)", "ain (b)", "a IN (b)",
    "a notin (b)", "a notin b", "a exists", "a>1", "a<1", "a>x", "a>=1", "a>1,a<3", "a>", "a > -1", "a>01",
    "a>1.5", "in", "notin", "in in (in)", "notin notin (notin)", "in=in", "exists", "a=b=c", "a=(b)",
    "a=b c", "a= b", "a =b", " a = b ", "a\t=b", "a\n=b", "a\rb", "A=B", "a_=b", "_a=b", "a-=b", "-a=b",
    "a.=b", "a..b=c", "a.b/c=d", "A.b/c=d", "a.b./c", "x" * 63 + '=a', "x" * 64 + '=a', 'a=' + "x" * 63,
    'a=' + "x" * 64, "a=-b", "a=b-", "a=b/c", "a=b:c", "ä=b", "a=ä", "a=%", "a\x00=b", "a=b\x00", "a='b'",
    'a="b"', "a;b", "a|b", "a&b", "(a)", "()", "a)", "a in (b))", "a in ((b))", "a!b", "a!==b",
    "a!=b,!c,d in (e)", "a>b", "a>9223372036854775807", "a>9223372036854775808", "a>1,", "a in (in)",
    "a in (notin,in)", "a in (a=b)", "a in (!)", "!in", "! notin", "a not in (b)", "x.y/a in (b)", "=",
    "==", "!=", "=b", "<", ">1", "a<", "a==b", "a in (b),c", "a in (b)c", "a,b in (c),!d,e!=f,g>1",
    "x" * 254 + '/a', ".a", "a.", "kubernetes.io/a=b", "a=b,a=c", "a=b,a!=b", "a in (b,b)", "a in (c,b)",
)  # fmt: skip
OF_FIELDS = (
    "metadata.name", "metadata.name=", "metadata.name==a", "metadata.name!=a", "metadata.name=a,",
    "metadata.name=a,,", ",metadata.name=a", "=", "=a", "!=a", "metadata.name=a=b", "metadata.name = a",
    "metadata.name= a", "metadata.name=a\\,b", "metadata.name=a\\=b", "metadata.name=a\\\\b",
    "metadata.name=a\\", "metadata.name=a\\b", "nope=a", "nope", "metadata.namespace=x",
    "metadata.namespace=", "metadata.name in (a)", "metadata.name>a", "metadata.name=a,metadata.name=b",
    "metadata.name=a,metadata.name!=a", "metadata.uid=x", "Metadata.name=a", "metadata.name=ä",
    "metadata.name=%00", "metadata.name\\==a", "metadata.labels.a=b", "spec.nodeName=", "metadata.name===a",
    "metadata.name!==a", "!metadata.name=a", "metadata.name=a;b", "metadata.name=a b",
    'metadata.name=' + "x" * 300, "metadata.name=\x00", "metadata.name=/", "metadata.name=..",
    "metadata.name=.", "metadata.name=a/b", "metadata.namespace=../x", "metadata.name=a%",
)  # fmt: skip

META = "g=meta.k8s.io"
DISCOVERY = "as=APIGroupDiscoveryList;g=apidiscovery.k8s.io"
PARAMETERS = (
    "v=v1", "q=0", "q=x", "q=2", "q=-1", "q=1;q=0", "foo=bar", "charset=utf-8", "pretty=1", "stream=watch",
    "stream=", "stream=nope", "g=x", "as=", "v=", "as=;v=v1", "v=v1;as=", "sv=v1", "sv=v2", "sv=", "",
    " ;q=1",
    f"as=Table;v=v1;{META}", f"as=Table;v=v1beta1;{META}", f"as=Table;{META}", "as=Table",
    f"as=table;v=v1;{META}", f"AS=Table;V=v1;{META}", f"as=Nope;v=v1;{META}", f" as=Table ; v=v1 ;{META}",
    f'as="Table";v=v1;{META}', f"as=Table;v=v1;{META};profile=x", f"as=PartialObjectMetadata;v=v1;{META}",
    f"as=PartialObjectMetadata;v=v1beta1;{META}", f"as=PartialObjectMetadataList;v=v1;{META}",
    f"{DISCOVERY};v=v2", f"{DISCOVERY};v=v2;profile=nopeer", f"{DISCOVERY};v=v2beta1", f"{DISCOVERY};v=v1",
)  # fmt: skip
ACCEPTS = (
    "", "APPLICATION/JSON", "Application/Json", "application/*", "*/*;q=0", "*", "json", "/", ",",
    "text/html",
    "text/plain", "text/html,*/*;q=0.1", "text/*", "*/json", "a/b,*/json", "application/",
    "application/json/x",
    "application/json,", " , application/json", "application/json application/yaml",
    "application/json\tapplication/yaml", "application/cbor", "application/cbor,application/json",
    "application/cbor-seq", "application/jwk-set+json", "application/yaml,application/json",
    "application/json;q=0.5,application/yaml", "application/yaml;q=0.5,application/json",
    "application/json;q=0.1,application/yaml;q=0.2", "application/json;q=0,application/yaml",
    "*/*,application/yaml;q=0.5", "application/yaml;q=0.5,*/*", "application/*;q=1,application/yaml;q=0.3",
    "application/yaml;q=.2,application/json;q=.1,*/*;q=.9", 'application/yaml;q="0.5",application/json;q=0.4',
    "application/yaml;q= 0.5,application/json;q=0.4", "application/yaml; q =0.5,application/json;q=0.4",
    "application/yaml;Q=0.1,application/json", "application/yaml;q=NaN,application/json",
    "application/yaml;q=Inf,application/json", "application/yaml;q=1e0,application/json",
    "*,application/json",
    f"application/json;as=Table;v=v1;{META},application/yaml;q=0.1", f"*/*;as=Table;v=v1;{META}",
    f"application/json;q=0.5;as=Table;v=v1;{META},application/json;q=0.6", "application/yaml;stream=watch",
    f"application/yaml;as=Table;v=v1;{META}", f"application/yaml;{DISCOVERY};v=v2",
    *(f"application/json;{one}" for one in PARAMETERS),
)  # fmt: skip
NEGOTIATED = (
    "/version", "/api", "/apis", "/apis/apps", "/apis/apps/v1", "/api/v1", "/healthz", "/nope",
    "/.well-known/openid-configuration", "/openid/v1/jwks", "/openapi/v3", "/api/v1/nope",
    "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default",
    "/api/v1/namespaces/default/status",
    "/api/v1/namespaces/default/configmaps/nope", "/api/v1/namespaces/default/configmaps?resourceVersion=x",
    "/api/v1/namespaces/default/pods/x/log", "/api/v1/namespaces/default/pods/x/proxy/y",
    "/apis/apps/v1/namespaces/default/deployments/nope/scale",
    "/api/v1/namespaces?watch=1&sendInitialEvents=x",
)  # fmt: skip
COMPRESSIONS = (
    "gzip", "GZIP", "gzip;q=0", "gzip;q=1", "x-gzip", "*", "deflate", "br, gzip", "identity", "", " gzip ",
    "deflate;q=1.0, gzip;q=0.5", "gzip;level=1",
)  # fmt: skip
DOCUMENTS = ("/openapi/v2", "/openapi/v3/apis/events.k8s.io/v1")
OF_DOCUMENTS = (
    "", "*", "*/*", "application/*", "application/json;v=v1", "application/json;as=x", "APPLICATION/JSON",
    "text/html,application/json;q=0.1", "application/yaml,application/json", "application/yaml", "text/html",
)  # fmt: skip

POD_HEAD = b"apiVersion: v1\nkind: Pod\n"
ODD_PODS = (
    b"metadata: {name: p}\nzz: 1\naa: 2\nspec: {zx: 1, ab: 2, containers: [{name: c, image: i, zc: 1, "
    b"ac: 2}], zz: {b: 1}}\n",
    b"metadata: {name: p}\nspec: {containers: [{name: c, image: i}], hostNetwork: false, hostNetwork: "
    b"false, hostNetwork: false}\n",
    b"metadata: {name: p, name: p}\nspec: {containers: [{name: c, image: i, image: i}], nope: 1, "
    b"nope: 2}\nspec: {}\n",
    b"metadata: {name: p}\nspec: {nope: 1, nope: 2, containers: [{name: c, image: i}]}\nbb: 1\nbb: "
    b"2\naa: 1\n",
    b"metadata: {name: p, labels: {a: b, a: c}}\nspec: {containers: [{name: c, image: i}]}\n",
    b"metadata: {name: p, labels: {yes: b, true: c}}\nspec: {containers: [{name: c, image: i}]}\n",
    b"metadata: {name: p, labels: {0x1: b, 1: c}}\nspec: {containers: [{name: c, image: i}]}\n",
    b"metadata:\n  name: p\n  annotations:\n    a: b\n    a: c\n    a: d\n    b: e\n    b: f\nspec:\n "
    b" containers: [{name: c, image: i}]\n",
    b"metadata: {name: p, Name: q}\nspec: {containers: [{name: c, image: i}]}\nSpec: {}\n",
    b"metadata: {name: p}\nspec: {containers: [{name: c, image: i, zz: 1}, {name: d, image: i, aa: 1, "
    b"zz: 2}], aa: 1}\nstatus: {zz: 1, phase: x}\n",
    b'{"metadata": {"name": "p"}, "zz": 1, "aa": 2, "spec": {"zx": 1, "containers": [{"name": "c", '
    b'"image": "i", "image": "i"}], "ab": 2}, "zz": 3}',
    b"metadata: {name: p}\nzz: {a: 1, a: 2}\nspec: {containers: [{name: c, image: i}]}\n",
)  # fmt: skip
ODD_CONFIGURATIONS = (
    b"spec: {replicas: 3, replicas: 3}", b"spec: {replicas: 3}\nspec: {replicas: 3}\nzz: 1",
    b"spec: {replicas: x, replicas: x}", b"spec: {zz: 1, zz: 1}",
)  # fmt: skip
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
SELECTED = {
    "selector": {"matchLabels": {"a": "b"}},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
}

REPEATED_IN_PATCHES = (
    b'[{"op":"add","path":"/data/a","value":"x","value":"y"}]',
    b'[{"op":"add","path":"/data","value":{"a":"1","a":"2"}}]',
    b'[{"op":"add","path":"/metadata/labels","value":{"b":"1","a":"2","b":"3"}}]',

       b'[{"op":"add","path":"/metadata/labels","value":{"b":"1","a":"2","b":"3"}},{"op":"add","path":"/metadata/labels/b","value":"4"}]',
    b'[{"op":"add","op":"remove","path":"/data/k"}]',
    b'[{"op":"add","path":"/zz","value":{"b":1,"b":2}},{"op":"add","path":"/aa","value":1}]',

       b'[{"op":"add","path":"/metadata/labels","value":{"b":"1","a":"2","b":"3"}},{"op":"add","path":"/metadata/annotations","value":{"x":"1","x":"2"}}]',
    b'[{"op":"add","path":"/data","value":{"a":{"x":1,"x":2}}}]',
    b'[{"op":"test","path":"/data","value":{"k":"v","k":"v"}}]',
    b'[{"op":"test","path":"/data","value":{"k":"w","k":"v"}}]',
    b'[{"op":"replace","path":"","value":{"metadata":{"name":"a","name":"a"},"data":{}}}]',
    b'[{"op":"copy","from":"/data","path":"/zz"}]',

       b'[{"op":"add","path":"/metadata/labels","value":{"b":"1","b":"3"}},{"op":"copy","from":"/metadata/labels","path":"/metadata/annotations"}]',

       b'[{"op":"add","path":"/metadata/labels","value":{"b":"1","b":"3"}},{"op":"test","path":"/metadata/labels","value":{"b":"3"}}]',
    b'[{"op":"replace","path":"","value":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}}]',
    b'[{"op":"add","path":"","value":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}}]',
    b'[{"op":"replace","path":"","value":{"metadata":{"name":"a"}}}]',
    b'[{"op":"remove","path":"/kind"}]',
    b'[{"op":"remove","path":"/apiVersion"}]',
    b'[{"op":"replace","path":"/apiVersion","value":""}]',
    b'[{"op":"replace","path":"","value":1}]',
    b'[{"op":"replace","path":"","value":null}]',
    b'[{"op":"add","path":"","value":null}]',
    b'[{"op":"test","path":"","value":{}}]',
    b'[{"op":"remove","path":""}]',
    b'[{"op":"copy","from":"","path":"/zz"}]',
    b'[{"op":"move","from":"","path":"/zz"}]',
    b'[{"op":"copy","from":"/data","path":""}]',
)  # fmt: skip
APPLIED_WITH_FAULTS = tuple(
    b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%b"%b},"data":{"%b":"1","a":"2"}}'
    % (name, more, twice)
    for name in (b"a", b"other", b"A_", b"new")
    for more in (b"", b',"namespace":"elsewhere"')
    for twice in (b"a", b"A_ ")
)
REPEATED_IN_MERGES = (
    b'{"data":{"a":"1","a":"2"}}',
    b'{"metadata":{"labels":{"b":"1","a":"2","b":"3"}},"zz":1,"aa":{"x":1,"x":2}}',
    b'{"data":{"a":"1"},"data":{"b":"2"}}',
    b'{"apiVersion":null}', b'{"kind":null}', b'{"kind":null,"apiVersion":null}',
)  # fmt: skip
NO_PATCHES = (
    b"", b"{", b"[]", b"null", b"{}", b"1", b'"x"', b"{a: b: c}", b'{"metadata":1}', b'{"kind":"x"}',
    b'"\xff"', b'{"a":1,"a":2}', b'[{"op":"x"}]', b'{"metadata":{"name":"q"}}',
)  # fmt: skip
EVENTS = "/apis/events.k8s.io/v1/namespaces/{ns}/events"
OCCURRED = {
    "regarding": {"kind": "Pod", "namespace": "{ns}", "name": "p"}, "reason": "R", "action": "A",
    "type": "Normal", "reportingController": "c", "reportingInstance": "i",
    "eventTime": "2026-01-02T03:04:05.000000Z",
}  # fmt: skip
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices"
ACCOUNTS = "/api/v1/namespaces/{ns}/serviceaccounts"
JOBS = "/apis/batch/v1/namespaces/{ns}/jobs"
OF_JOBS = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
LABELED: tuple[dict[str, Any], ...] = ({}, {"labels": {}}, {"labels": {"q": "r"}})
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "a"}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
OF_THE_SERVER: tuple[dict[str, Any], ...] = (
    {"deletionTimestamp": "2026-01-02T03:04:05Z"}, {"deletionTimestamp": "x"}, {"deletionTimestamp": 1},
    {"deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 5},
    {"deletionGracePeriodSeconds": 0}, {"selfLink": "a"}, {"selfLink": 1}, {"resourceVersion": 1},
    {"uid": 1}, {"creationTimestamp": 1}, {"generation": "x"}, {"generation": 7}, {"generateName": "b-"},
)  # fmt: skip
SERVICES = "/api/v1/namespaces/{ns}/services"
OF_SERVICES: tuple[dict[str, Any], ...] = (
    {"clusterIP": "10.96.7.7"}, {"clusterIPs": ["10.96.7.7"]}, {"clusterIP": "None"}, {"clusterIP": ""},
    {"clusterIP": "x"}, {"clusterIPs": ["None"]}, {"clusterIPs": []}, {"clusterIPs": [""]},
    {"clusterIP": "10.96.7.7", "clusterIPs": ["10.96.7.8"]}, {},
)  # fmt: skip
SORTS_OF_SERVICES = (
    {"type": "ExternalName", "externalName": "a.b"}, {"type": "ClusterIP"}, {"type": "ExternalName"},
)  # fmt: skip
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaimtemplates"
REQUEST: dict[str, Any] = {"name": "r", "exactly": {"deviceClassName": "c", "adminAccess": True}}
OF_CLAIMS: tuple[dict[str, Any], ...] = (
    {"requests": [REQUEST]}, {"requests": [REQUEST, REQUEST]}, {"requests": [{**REQUEST, "name": "A"}]},
    {"requests": [{"name": "r", "exactly": {"adminAccess": True}}]},
    {"requests": [REQUEST], "constraints": [{"requests": ["no"], "matchAttribute": "a"}]},
    {"requests": [{"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]}]},
)  # fmt: skip

PROTOBUF = "application/vnd.kubernetes.protobuf"
_NAMED = encode_bytes(1, encode_bytes(1, b"z"))
"""The metadata of an object."""
_CONTAINER = encode_bytes(1, b"c") + encode_bytes(2, b"i")


def of_protobuf(message: bytes, kind: str = "ConfigMap", version: str = "v1", more: bytes = b"") -> bytes:
    sort = encode_bytes(1, version.encode()) + encode_bytes(2, kind.encode())
    return MAGIC + encode_bytes(1, sort) + encode_bytes(2, message) + more


def key(number: int, wire: int) -> bytes:
    return encode_varint(number << 3 | wire)


def data(*parts: bytes) -> bytes:
    """An entry of a ConfigMap's data."""
    return encode_bytes(2, b"".join(parts))


_A, _B = encode_bytes(1, b"a"), encode_bytes(2, b"b")
ODD_MAPS = (
    of_protobuf(_NAMED), of_protobuf(_NAMED + data(_A, _B)), of_protobuf(_NAMED + data(_B, _A)),
    of_protobuf(_NAMED + data(_A)), of_protobuf(_NAMED + data(_B)), of_protobuf(_NAMED + data()),
    of_protobuf(_NAMED + data(_A, _B, encode_bytes(3, b"c"))),
    of_protobuf(_NAMED + data(_A, _B) + data(_A, encode_bytes(2, b"c"))),
    of_protobuf(_NAMED + data(_A, encode_bytes(2, b"\xff"))),
    of_protobuf(_NAMED + encode_bytes(99, b"x")), of_protobuf(_NAMED + key(99, 0) + b"\x05"),
    of_protobuf(_NAMED + key(99, 5) + b"abcd"), of_protobuf(_NAMED + key(99, 1) + b"abcdefgh"),
    of_protobuf(_NAMED + key(99, 3) + key(99, 4)), of_protobuf(_NAMED + key(99, 3)),
    of_protobuf(_NAMED + key(99, 4)), of_protobuf(_NAMED + key(99, 6)), of_protobuf(_NAMED + key(2, 7)),
    of_protobuf(_NAMED + key(0, 2) + b"\x01x"), of_protobuf(_NAMED + key(2, 0) + b"\x05"),
    of_protobuf(key(1, 0) + b"\x05"), of_protobuf(encode_bytes(1, key(1, 0) + b"\x05")),
    of_protobuf(_NAMED + encode_bytes(4, b"x")), of_protobuf(_NAMED + key(4, 0) + b"\x02"),
    of_protobuf(_NAMED + key(4, 0) + b"\xff" * 9 + b"\x01"), of_protobuf(_NAMED + key(4, 0) + b"\xff" * 11),
    of_protobuf(_NAMED + _NAMED), of_protobuf(encode_bytes(1, _A + encode_bytes(1, b"z"))),
    b"", MAGIC, MAGIC[:3], of_protobuf(_NAMED)[4:],
    b"k8t\0" + of_protobuf(_NAMED)[4:], of_protobuf(_NAMED)[:-1], of_protobuf(_NAMED)[:-5],
    of_protobuf(_NAMED)[:10], of_protobuf(_NAMED, more=b"\0"), of_protobuf(_NAMED, more=b"x"),
    MAGIC + encode_bytes(2, _NAMED), of_protobuf(_NAMED, "Pod"), of_protobuf(_NAMED, version="v2"),
    of_protobuf(_NAMED, "Nope"), of_protobuf(_NAMED, ""), of_protobuf(_NAMED, version=""),
    of_protobuf(_NAMED, "", ""), of_protobuf(_NAMED, more=encode_bytes(3, b"gzip")),
    of_protobuf(_NAMED, more=encode_bytes(4, b"application/json")),
    of_protobuf(_NAMED, more=encode_bytes(9, b"x")),
    MAGIC + encode_bytes(1, _A + encode_bytes(2, b"ConfigMap")) + key(2, 2) + encode_varint(1000) + _NAMED,
    MAGIC + key(1, 2) + b"\xff" * 8 + b"\x7f", b'{"metadata":{"name":"z"}}',
)  # fmt: skip
ODD_PARTS = (
    key(4, 0) + b"\x05", key(4, 0) + encode_varint((1 << 64) - 1), encode_bytes(4, b"5"),
    key(11, 0) + b"\x01",
    encode_bytes(2, _CONTAINER + encode_bytes(6, key(3, 0) + encode_varint(1 << 40))),
    encode_bytes(2, _CONTAINER + encode_bytes(6, key(3, 0) + encode_varint((1 << 64) - 5))),
    *(
        encode_bytes(2, _CONTAINER + encode_bytes(8, encode_bytes(1, encode_bytes(1, b"cpu") + quantity)))
        for quantity in (encode_bytes(2, encode_bytes(1, text)) for text in (b"1", b"x", b""))
    ),
)  # fmt: skip
CONTENTS = (
    "application/cbor", "application/cbor-seq", "application/json;q=1", "APPLICATION/JSON",
    "application/json ;x",
    "application/json;charset=latin1", 'application/json; charset="utf-8"', "application/json;a",
    "application/json;a=", "application/json;=b", "application/json;a=b;a=c", "application/json;a=b;a=b",
    "application/json,application/yaml", "*/*", "application/*", "json", "/", ";", "application/json/x",
    "application/yaml;x=y", "text/yaml", "application/json\t", 'application/json;a="b',
    "application/json;a=b c",
    "application/json; ;", "application/json;a=b;",
)  # fmt: skip
PATCHES = (
    "application/merge-patch+json;x=y", "application/merge-patch+json; charset=utf-8",
    "Application/merge-patch+json", "application/merge-patch+json,x", "application/merge-patch+json ;a=",
    "application/apply-patch+cbor", "application/strategic-merge-patch+json;a=b;c",
)  # fmt: skip

OF_LISTS = (
    "timeoutSeconds=0", "timeoutSeconds=-1", "timeoutSeconds=x", "timeoutSeconds=1.5", "timeoutSeconds=",
    "timeoutSeconds=99999999999999999999", "allowWatchBookmarks=x", "sendInitialEvents=true",
    "sendInitialEvents=x", "sendInitialEvents=", "resourceVersion=0", "resourceVersion=-1",
    "resourceVersion=x",
    "resourceVersion=99999999999999999999999", "resourceVersionMatch=Exact",
    "resourceVersionMatch=NotOlderThan",
    "resourceVersionMatch=x", "resourceVersionMatch=", "resourceVersionMatch=Exact&resourceVersion=0",
    "limit=0",
    "limit=-1", "limit=x", "limit=99999999999", "limit=99999999999999999999", "limit=", "limit=1&continue=x",
    "continue=x", "continue=", "continue=e30", "continue=x&resourceVersion=1", "shardSelector=x",
    "includeObject=x",
    "gracePeriodSeconds=x", "dryRun=x", "watch=0", "watch=false", "x=%zz&limit=1", "limit=1;limit=2",
    "limit=%31",
)  # fmt: skip
OF_WATCHES = (
    "allowWatchBookmarks=true", "allowWatchBookmarks=true&resourceVersion=0",
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
    "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
)  # fmt: skip

NAMES = (
    "%00", "a%00", "%C3%A4", "%25", "%2525", "a%25", "%2F", "a%2Fb", "%2e", "%2E%2E", "%20", "+", "a+b",
    "%0A", "%7F", "%F0%9F%98%80", "%22", "%3F", "%23", "%5C", "a:b", "a;b=c", "a,b", "*", "%u00e4", "%61",
    "A", "a.b", "-a", "a_b", "...", "a%2F..%2Fb", "%2F%2F", "a%2F", "watch", "proxy",
)  # fmt: skip


SEQUENCES = (
    Compared("truths", [
        Ask(method, f"{target}?dryRun=All&fieldManager=q", f"{YAML}{data}\n".encode(), {"Content_Type": sort})
        for word in TRUTHS
        for data in (f"{{a: {word}}}", f"{{{word}: b}}")
        for method, target, sort in (
            ("POST", MAPS, "application/yaml"), ("PATCH", f"{MAPS}/z", APPLY),
        )
    ], apart=True),
    Compared("betas", [
        Ask("GET", f"/api/v1/namespaces{target}", None, {"Accept": f"{sort};as={kind};v=v1beta1;{META}"})
        for sort in ("application/json", "application/yaml")
        for kind in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
        for target in (
            "?fieldSelector=metadata.name%3Ddefault", "/default", "/default?includeObject=Object",
            "?watch=1&timeoutSeconds=1&allowWatchBookmarks=true&fieldSelector=metadata.name%3Ddefault"
            "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        )
    ], apart=True),
    Compared("deletions", [
        *MADE,
        *(Ask("DELETE", f"{MAPS}?{options}") for options in OF_A_DELETION),
        *(
            Ask("DELETE", f"{target}?dryRun=All", body)
            for body in DELETIONS for target in (MAPS, f"{MAPS}/a")
        ),
        *(
            Ask("DELETE", f"{MAPS}?dryRun=All", {"gracePeriodSeconds": 1}, {"Content_Type": sort})
            for sort in SORTS
        ),
    ], apart=True),
    Compared("preconditions", [
        *MADE,
        *(
            Ask("DELETE", f"{target}?{options}&dryRun=All", body)
            for options in OF_PRECONDITIONS for target in (MAPS, f"{MAPS}/a")
            for body in (None, TRIED, {"preconditions": {"uid": "$0.metadata.uid"}, **TRIED})
        ),
        Ask("DELETE", f"{MAPS}/nope?uid=x"), Ask("DELETE", f"{MAPS}?uid=x&labelSelector=no"),
    ], apart=True),
    Compared("protobuf", [
        Ask("POST", MAPS, {"metadata": {"name": "m"}}),
        *(
            Ask(method, f"{target}?dryRun=All&fieldValidation=Strict", body, {"Content_Type": PROTOBUF})
            for body in ODD_MAPS
            for method, target in (("POST", MAPS), ("PUT", f"{MAPS}/z"), ("DELETE", f"{MAPS}/m"))
            # What is no message of that kind may still be read as options, in which it says something else.
            if method != "DELETE" or b"ConfigMap" not in body
        ),
        *(
            Ask("POST", f"{PODS}?dryRun=All",
                of_protobuf(_NAMED + encode_bytes(2, encode_bytes(2, _CONTAINER) + part), "Pod"),
                {"Content_Type": PROTOBUF})
            for part in ODD_PARTS
        ),
    ], apart=True),
    Compared("contents", [
        Ask("POST", MAPS, {"metadata": {"name": "m"}}),
        *(
            Ask(method, f"{target}?dryRun=All", body, {"Content_Type": sort})
            for sort in CONTENTS
            for method, target, body in (
                ("POST", MAPS, {"metadata": {"name": "z"}}),
    ("PUT", f"{MAPS}/m", {"metadata": {"name": "m"}}),
                ("DELETE", f"{MAPS}/m", TRIED), ("PATCH", f"{MAPS}/m", {}),
            )
        ),
        *(Ask("PATCH", f"{MAPS}/m?dryRun=All", {}, {"Content_Type": sort}) for sort in PATCHES),
    ], apart=True),
    Compared("lists", [
        Ask("POST", MAPS, {"metadata": {"name": "m"}}),
        *(
            Ask("GET", f"{target}?{options}")
            for options in OF_LISTS
            for target in (MAPS, f"{MAPS}/m", "/apis/apps/v1/namespaces/{ns}/deployments")
        ),
    ], apart=True),
    Compared("watches", [
        Ask("POST", MAPS, {"metadata": {"name": "m"}}),
        # A bookmark is of a later version than what is sent before it.
        Ask("POST", "/api/v1/namespaces/{ns}/secrets", {"metadata": {"name": "s"}}),
        *(Ask("GET", f"{MAPS}?watch=1&timeoutSeconds=2&{options}") for options in OF_WATCHES),
        *(Ask("GET", f"{MAPS}?watch=1&timeoutSeconds=1&{options}") for options in (
            "continue=x", "continue=x&resourceVersion=$1.metadata.resourceVersion",
            "resourceVersionMatch=Exact", "limit=x",
            "sendInitialEvents=true", "sendInitialEvents=true&resourceVersionMatch=Exact",
        )),
        Ask("GET", "/api/v1/watch/namespaces/{ns}/configmaps?timeoutSeconds=1&continue=x"),
    ], apart=True),
    Compared("names", [
        Ask("POST", MAPS, {"metadata": {"name": "a"}}),
        *(
            Ask(method, f"{MAPS}/{name}{options}", body, {"Content_Type": sort} if sort else {})
            for name in NAMES
            for method, options, body, sort in (
                ("GET", "", None, ""), ("DELETE", "?dryRun=All", None, ""), ("PUT", "?dryRun=x", {}, ""),
                ("PUT", "", {"metadata": {"name": "b"}}, ""), ("PUT", "", {}, "x"),
                ("PATCH", "?dryRun=All", {}, MERGE_PATCH), ("PATCH", "?dryRun=x", {}, MERGE_PATCH),
                ("PATCH", "?fieldManager=m&dryRun=All",
                 {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}, APPLY),
            )
        ),
        *(
            Ask(method, f"{target.format(ns='{ns}', name=name)}", body)
            for name in NAMES
            for method, target, body in (
                ("GET", "/api/v1/namespaces/{ns}/{name}", None),
                ("GET", "/api/v1/namespaces/{ns}/pods/a/{name}", None),
                ("POST", "/api/v1/namespaces/{ns}/pods/{name}/binding", {"target": {"name": "x"}}),
                ("POST", "/api/v1/namespaces/{ns}/pods/{name}/eviction", {"metadata": {"name": "b"}}),
                ("GET", "/apis/apps/v1/namespaces/{ns}/deployments/{name}/scale", None),
                ("GET", "/api/v1/namespaces/{ns}/pods/{name}/log", None),
            )
        ),
    ], apart=True),
    Compared("methods", [
        Ask(method, target)
        for target in (
            "/apis", "/apis/apps", "/apis/apps/v1", "/healthz", "/nope",
            "/.well-known/openid-configuration", f"{MAPS}/m", f"{PODS}/p/log",
        )
        for method in ("HEAD", "OPTIONS", "PUT", "POST", "DELETE", "get")
    ], apart=True),
    Compared("connections", [
        Ask("POST", PODS, POD),
        *(
            Ask(method, f"{target}{options}")
            for target in (
                f"{PODS}/p/log", f"{PODS}/p/exec", f"{PODS}/nope/attach", f"{PODS}/p/portforward",
                f"{PODS}/p/proxy", f"{PODS}/nope/proxy/x", f"{SERVICES}/s/proxy", "/api/v1/nodes/n/proxy/",
            )
            for method in ("GET", "POST")
            for options in ("", "?dryRun=All", "?dryRun", "?x=%zz&dryRun=No")
        ),
    ], apart=True),
    Compared("slashes", [
        Ask("GET", f"{path}{slashes}")
        for path in (
            "/apis", "/api", "/api/v1", "/apis/apps", "/apis/apps/v1", "/apis/nope.io", "/apis/nope.io/v1",
            "/openapi/v3/api/v1", "/openapi/v3/nope", "/healthz",
            "/api/v1/namespaces/default", "/api/v1/namespaces/default/configmaps",
        )
        for slashes in ("/", "//", "/%2F")
    ], apart=True),
    Compared("keys", [
        Ask(method, f"{target}?dryRun=All&fieldManager=q&fieldValidation={validation}", POD_HEAD + body,
            {"Content_Type": sort})
        for body in ODD_PODS
        for validation in ("Strict", "Warn", "Ignore", "")
        for method, target, sort in (
            ("POST", PODS, "application/yaml"), ("PATCH", f"{PODS}/p", APPLY),
        )
    ], apart=True),
    Compared("configurations", [
        Ask("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": SELECTED}),
        *(
            Ask(
                "PATCH", f"{DEPLOYMENTS}/{target}?dryRun=All&fieldManager=q&fieldValidation={options}",
                b"apiVersion: %b\nkind: %b\nmetadata: {name: d}\n%b\n" % (*kind, body),
                {"Content_Type": APPLY},
            )
            for options in ("Strict", "Warn", "Strict&force=true", "Warn&force=true")
            for body in ODD_CONFIGURATIONS
            for target, kind in (
                ("d", (b"apps/v1", b"Deployment")), ("e", (b"apps/v1", b"Deployment")),
                ("d/scale", (b"autoscaling/v1", b"Scale")),
            )
        ),
    ], apart=True),
    Compared("patches", [
        Ask("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}}),
        *(
            Ask("PATCH", f"{MAPS}/a?dryRun=All&fieldManager=q&fieldValidation={validation}", body,
                {"Content_Type": sort})
            for bodies, sorts in (
                (REPEATED_IN_PATCHES, (JSON_PATCH,)), (REPEATED_IN_MERGES, (MERGE_PATCH, STRATEGIC_PATCH)),
            )
            for body in bodies
            for sort in sorts
            for validation in ("Strict", "Warn", "Ignore")
        ),
    ], apart=True),
    Compared("no-patches", [
        Ask("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": SELECTED}),
        *(
            Ask("PATCH", f"{of}?dryRun=All&fieldManager=q&fieldValidation=Strict", body,
                {"Content_Type": sort})
            for of in (
                *(f"{DEPLOYMENTS}/{name}" for name in ("d", "d/status", "d/scale", "B%20ad")),
                *(f"{DEPLOYMENTS}/none{part}" for part in ("", "/status", "/scale")),
                f"{SERVICES}/none/status",
            )
            for sort in (MERGE_PATCH, STRATEGIC_PATCH, JSON_PATCH, APPLY)
            for body in NO_PATCHES
        ),
    ], apart=True),
    Compared("taken", [
        *(Ask("POST", MAPS, {"metadata": {"name": "a", "generateName": "b"}}) for _ in "12"),
        *(
            Ask("POST", EVENTS, {"metadata": {"name": "e", **more}, **OCCURRED})
            for more in ({}, {}, {"generateName": "b"})
        ),
        Ask("PATCH", f"{MAPS}/a", {"metadata": {"finalizers": ["peer.test/keep"]}},
            {"Content_Type": MERGE_PATCH}),
        Ask("DELETE", f"{MAPS}/a"),
        Ask("POST", MAPS, {"metadata": {"name": "a", "generateName": "b"}}),
        Ask("PATCH", f"{MAPS}/a", {"metadata": {"finalizers": None}}, {"Content_Type": MERGE_PATCH}),
    ], apart=True),
    Compared("nameless", [
        Ask("POST", f"{SERVICES}{dry_run}", {"metadata": meta, "spec": {"ports": [{"port": 80}], **spec}})
        for spec in (
            {}, {"clusterIP": "10.96.3.3"}, {"clusterIP": "None"}, {"clusterIP": "1.2.3.4"},
            {"type": "NodePort"}, {"type": "ExternalName", "externalName": "a.b"},
        )
        for meta in (None, {}, {"labels": {"a b": "c"}})
        for dry_run in ("", "?dryRun=All")
    ], apart=True),
    Compared("empty", [
        Ask("GET", f"{base}?labelSelector=nobody", None, {"Accept": accept})
        for base in (sample.items for sample in samples())
        for accept in (f"application/json;as=Table;v=v1;{META}",
                       f"application/json;as=PartialObjectMetadataList;v=v1;{META}")
    ], apart=True),
    Compared("new", [
        *(
            Ask("POST", "/api/v1/nodes?dryRun=All",
                {"metadata": {"name": "A_"}, "spec": {"podCIDRs": ["x"]}, "status": status})
            for status in (
                {"declaredFeatures": ["a", "a", ""]}, {"nodeInfo": {"swap": {"capacity": -1}}},
                {"nodeInfo": {"swap": {"capacity": 0}}, "declaredFeatures": ["A", "B"]},
                {"config": {"assigned": {"configMap": {"namespace": "a", "name": "b"}}}},
            )
        ),
        Ask("POST", "/api/v1/nodes?dryRun=All", {
            "metadata": {"name": "a"},
            "status": {"config": {"assigned": {"configMap": {"namespace": "a", "name": "b"}}}},
        }),
        *(
            Ask("POST", f"{PODS}?dryRun=All", {**POD, "status": {"qosClass": quality, "phase": "Failed"}})
            for quality in ("", "a", "Guaranteed")
        ),
        *(
            ask
            for number, said in enumerate(OF_THE_SERVER)
            for sort in (MERGE_PATCH, APPLY)
            for name in (f"{'applied' if sort == APPLY else 'put'}-{number}",)
            for ask in (
                Ask("PATCH" if sort == APPLY else "PUT", f"{LEASES}/{name}?fieldManager=q",
                    {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                     "metadata": {"name": name, **said}},
                    {"Content_Type": sort} if sort == APPLY else {}),
                Ask("GET", f"{LEASES}/{name}"),
                Ask("PATCH", f"{LEASES}/{name}", {"metadata": {"labels": {"a": "b"}}},
                    {"Content_Type": MERGE_PATCH}),
                Ask("GET", f"{LEASES}/{name}"),
            )
        ),
    ], apart=True),
    Compared("cells", [
        *(
            Ask("POST", "/api/v1/namespaces/{ns}/events?dryRun=All", {
                "metadata": {"name": "e"}, "reason": "R", "source": source,
                "involvedObject": {"namespace": "{ns}", **about},
            }, {"Accept": f"application/json;as=Table;v=v1;{META}"})
            for about in ({"kind": "Pod"}, {"name": "p"}, {"kind": "Pod", "name": "p"})
            for source in ({}, {"host": "h"}, {"component": "c"}, {"component": "c", "host": "h"})
        ),
        *(
            Ask("POST", f"{SLICES}?dryRun=All", {
                "metadata": {"name": "s"}, "addressType": "IPv4", "ports": ports,
                "endpoints": [{"addresses": ["10.0.0.9"]}],
            }, {"Accept": f"application/json;as=Table;v=v1;{META}"})
            for ports in ([{"name": ""}], [{"name": "a"}, {"name": ""}, {"name": "b", "port": 80}])
        ),
    ], apart=True),
    Compared("left", [
        Ask("POST", f"{MAPS}?fieldManager=q", {"metadata": {"name": "a", "ownerReferences": [OWNER]}}),
        *(
            Ask("PATCH", f"{MAPS}/a?fieldManager=q&force=true",
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **said}},
                {"Content_Type": APPLY})
            for said in ({"ownerReferences": [{**OWNER, "name": "b"}]}, {}, {"labels": {"a": "b"}})
        ),
    ], apart=True),
    Compared("untracked", [
        Ask("POST", ACCOUNTS, {"metadata": {"name": "a"}, "secrets": [{"resourceVersion": "b"}]}),
        Ask("PATCH", f"{ACCOUNTS}/a?fieldManager=q",
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}},
            {"Content_Type": APPLY}),
    ], apart=True),
    Compared("jobs", [
        Ask("POST", JOBS, {"metadata": {"name": "j"}, "spec": {"template": OF_JOBS}}),
        *(
            Ask("PUT", f"{JOBS}/j/status{dry_run}",
                {"metadata": {"name": "j", **labels}, "spec": {"template": template}})
            for template in (OF_JOBS, {**OF_JOBS, "metadata": {"labels": {"z": "z"}}})
            for labels in LABELED
            for dry_run in ("?dryRun=All", "")
        ),
    ], apart=True),
    Compared("services", [
        Ask("POST", SERVICES, {"metadata": {"name": "n"}, "spec": SORTS_OF_SERVICES[0]}),
        Ask("POST", SERVICES, {"metadata": {"name": "c"}, "spec": {"ports": [{"port": 80}]}}),
        Ask("POST", SERVICES, {"metadata": {"name": "h"},
                               "spec": {"clusterIP": "None", "ports": [{"port": 80}]}}),
        *(
            Ask("PUT", f"{SERVICES}/{name}?dryRun=All",
                {"metadata": {"name": name}, "spec": {**sort, **spec}})
            for name in "nch" for spec in OF_SERVICES for sort in SORTS_OF_SERVICES
        ),
    ], apart=True),
    Compared("applied", [
        *MADE,
        *(
            Ask("PATCH", f"{MAPS}/{name}?dryRun=All&fieldManager=x&fieldValidation={validation}", body,
                {"Content_Type": APPLY})
            for body in APPLIED_WITH_FAULTS for name in ("a", "new") for validation in ("Strict", "Warn")
        ),
    ], apart=True),
    Compared("admin", [
        Ask("POST", f"{target}?dryRun=All", {"metadata": {"name": name}, "spec": spec})
        for devices in OF_CLAIMS
        for name in ("x", "X_")
        for target, spec in (
            (CLAIMS, {"devices": devices}), (TEMPLATES, {"spec": {"devices": devices}}),
        )
    ], apart=True),
    Compared("selectors", [
        *MADE,
        *(Ask("GET", f"{MAPS}?labelSelector={quote(one)}") for one in OF_LABELS),
        *(Ask("GET", f"{of}?fieldSelector={quote(one)}") for one in OF_FIELDS for of in (MAPS, PODS)),
        *(
            Ask("GET", f"{MAPS}?watch=1&timeoutSeconds=1&{selector}")
            for selector in ("fieldSelector=nope%3Da", "labelSelector=a%2F")
        ),
    ], apart=True),
    Compared("subresources", [
        Ask("POST", PODS, POD),
        *(
            Ask(method, f"{PODS}/p/{part}?{options}", body,
                {"Content_Type": "application/merge-patch+json"} if method == "PATCH" else {})
            for part, methods in OF_PODS.items()
            for method in methods
            for body in ((None,) if method in ("GET", "DELETE") else WRONG)
            for options in (OF_WRITES[:1] if method == "GET" else OF_WRITES)
        ),
    ], apart=True),
)  # fmt: skip


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_what_is_odd_is_answered_alike(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    found = unnamed(differences(sequence, f"odd-{sequence.name}", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"


@pytest.mark.parametrize("target", (*NEGOTIATED, *DOCUMENTS))
def test_as_what_it_is_answered(target: str, kubernetes: Server, podling: Server) -> None:
    """In which form, whatever the answer is."""
    accepts = OF_DOCUMENTS if target in DOCUMENTS else ACCEPTS
    theirs, ours = (_forms(server, target, accepts) for server in (kubernetes, podling))
    assert ours == theirs


@pytest.mark.parametrize("length", [100, 200_000])
def test_what_is_compressed(length: int, kubernetes: Server, podling: Server) -> None:
    """For whom: also a quality of 1 is one that says too much."""
    found = []
    for server in (kubernetes, podling):
        target, name = "/api/v1/namespaces/default/configmaps", f"odd-{length}"
        server.ask("POST", target, {"metadata": {"name": name}, "data": {"a": "x" * length}})
        with server.asking() as asking:
            for encodings in COMPRESSIONS:
                asking.connection.request("GET", f"{target}/{name}", headers={"Accept-Encoding": encodings})
                said = asking.connection.getresponse()
                said.read()
                found.append((encodings, said.status, said.headers.get("Content-Encoding")))
    assert found[len(COMPRESSIONS) :] == found[: len(COMPRESSIONS)]


def _forms(server: Server, target: str, accepts: Sequence[str]) -> dict[str, Any]:
    with server.asking() as asking:
        return {accept: _form(asking.ask("GET", target, None, Accept=accept)) for accept in accepts}


def _form(answer: Answer) -> Any:
    body = answer.body if isinstance(answer.body, dict) else {}
    said = [body.get(name) for name in ("kind", "apiVersion")]
    if body.get("kind") == "Status":
        # Kubernetes could also answer in protobuf.
        message = re.sub(r", application/vnd\.kubernetes\.protobuf(;stream=watch)?", "", body["message"])
        said += [body.get("details"), message]
    return answer.code, answer.headers.get("Content-Type"), *said
