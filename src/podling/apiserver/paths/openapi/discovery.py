"""What OpenAPI says of the paths that tell of the server itself: groups and versions, who signs tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from podling.apiserver.paths.openapi.operations import READ, UNAUTHORIZED, Item, camel, tag_of
from podling.apiserver.paths.openapi.schemas import META, Schema, reference

_TEXT: Schema = {"type": "string"}
_ALWAYS: Schema = {"type": "string", "default": ""}
_INFO = "io.k8s.apimachinery.pkg.version.Info"
_VERSION, _ADDRESS = f"{META}.GroupVersionForDiscovery", f"{META}.ServerAddressByClientCIDR"
_MADE_OF = ("gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform")
_ALWAYS_TOLD = ("major", "minor", *_MADE_OF)
_TOLD = ("emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor")
_JSON = ("application/json",)


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items, "x-kubernetes-list-type": "atomic"}


def _object(description: str, required: Iterable[str], properties: Mapping[str, Schema]) -> Schema:
    return {
        "type": "object",
        "description": description,
        "required": list(required),
        "properties": dict(properties),
    }


def _kind(name: str, description: str, required: Iterable[str], properties: Mapping[str, Schema]) -> Schema:
    return {
        **_object(description, required, {"apiVersion": _TEXT, "kind": _TEXT, **properties}),
        "x-kubernetes-group-version-kind": [{"group": "", "kind": name, "version": "v1"}],
    }


_ADDRESSES = _list(reference(_ADDRESS))
SCHEMAS: Mapping[str, Schema] = {
    f"{META}.APIVersions": _kind(
        "APIVersions",
        "The versions of the group without a name.",
        ("versions", "serverAddressByClientCIDRs"),
        {"serverAddressByClientCIDRs": _ADDRESSES, "versions": _list(_TEXT)},
    ),
    f"{META}.APIGroupList": _kind(
        "APIGroupList", "All groups.", ("groups",), {"groups": _list(reference(f"{META}.APIGroup"))}
    ),
    f"{META}.APIGroup": _kind(
        "APIGroup",
        "A group, its versions, and which of them is preferred.",
        ("name", "versions"),
        {
            "name": _ALWAYS,
            "preferredVersion": {"allOf": [reference(_VERSION)], "default": {}},
            "serverAddressByClientCIDRs": _ADDRESSES,
            "versions": _list(reference(_VERSION)),
        },
    ),
    _VERSION: _object(
        "A version, alone and behind its group.",
        ("groupVersion", "version"),
        {"groupVersion": _ALWAYS, "version": _ALWAYS},
    ),
    _ADDRESS: _object(
        "The address at which clients of a network find the server.",
        ("clientCIDR", "serverAddress"),
        {"clientCIDR": _ALWAYS, "serverAddress": _ALWAYS},
    ),
    _INFO: _object(
        "The version of the server and of what made it.",
        _ALWAYS_TOLD,
        {**dict.fromkeys(_ALWAYS_TOLD, _ALWAYS), **dict.fromkeys(_TOLD, _TEXT)},
    ),
}


class ToldPath(NamedTuple):
    """`schema` is the name of what is answered, "" for text."""

    description: str
    tag: str
    identifier: str
    schema: str = ""
    types: tuple[str, ...] = READ

    def item(self) -> Item:
        answered = reference(self.schema) if self.schema else _TEXT
        content = {media_type: {"schema": answered} for media_type in self.types}
        return {
            "get": {
                "description": self.description,
                "tags": [self.tag],
                "operationId": self.identifier,
                "responses": {"200": {"description": "OK", "content": content}, **UNAUTHORIZED},
            }
        }

    def schemas(self) -> dict[str, Schema]:
        """Those it needs."""
        needed = {
            f"{META}.APIVersions": (_ADDRESS,),
            f"{META}.APIGroupList": (f"{META}.APIGroup", _VERSION, _ADDRESS),
            f"{META}.APIGroup": (_VERSION, _ADDRESS),
        }
        names = (self.schema, *needed.get(self.schema, ())) if self.schema else ()
        return {name: SCHEMAS[name] for name in sorted(names)}


OF_THE_SERVER: Mapping[str, ToldPath] = {
    ".well-known/openid-configuration": ToldPath(
        "Tell who signs the tokens of service accounts.",
        "WellKnown",
        "getServiceAccountIssuerOpenIDConfiguration",
        types=_JSON,
    ),
    "api": ToldPath(
        "Tell the versions of the group without a name.", "core", "getCoreAPIVersions", f"{META}.APIVersions"
    ),
    "apis": ToldPath("Tell which groups there are.", "apis", "getAPIVersions", f"{META}.APIGroupList"),
    "openid/v1/jwks": ToldPath(
        "Tell the keys that verify the tokens of service accounts.",
        "openid",
        "getServiceAccountIssuerOpenIDKeyset",
        types=("application/jwk-set+json",),
    ),
    "version": ToldPath("Tell the version of the server.", "version", "getCodeVersion", _INFO, _JSON),
}


def told(api_versions: Iterable[str]) -> dict[str, ToldPath]:
    """By the path of each, without slashes around it."""
    groups = {version.rpartition("/")[0] for version in api_versions} - {""}
    of_groups = {}
    for group in groups:
        tag = tag_of(f"{group}/").removesuffix("_")
        of_groups[f"apis/{group}"] = ToldPath(
            "Tell the versions of the group.", tag, f"get{camel(tag)}APIGroup", f"{META}.APIGroup"
        )
    return {**OF_THE_SERVER, **of_groups}
