"""apiextensions.k8s.io/v1: CustomResourceDefinition, and the schemas in it.

Kubernetes reads three fields of a schema that may be of two kinds with decoders of its own, and so does
`model/codec`: what is unknown in there is dropped and not told.
Lists that are written even when they are empty are None then: a schema may hold values of any kind, in which
`json.with_nulls` would take their names for its own.
"""

from typing import Annotated, Any, ClassVar

import msgspec

from podling.model.codec.fields import (
    ATOMIC_LIST,
    JSON,
    Int32,
    Int64,
    Merge,
    Part,
    Telling,
    Time,
    always,
    keyed,
    null,
)
from podling.model.types.meta import KubeObject

_BY_RULE = Merge(("merge",), "rule", "map", ("rule",))


def _extension(name: str, default: Any = False) -> Any:
    return msgspec.field(default=default, name=f"x-kubernetes-{name}")


class ExternalDocumentation(Part):
    description: str = ""
    url: str = ""


class ValidationRule(Part):
    rule: str = always(str)
    message: str = ""
    message_expression: str = ""
    reason: str | None = None
    field_path: str = ""
    optional_old_self: bool | None = None


class JSONSchemaProps(Telling):
    TELLS = (
        *("dependencies", "definitions", "patternProperties", "enum", "allOf", "oneOf", "anyOf"),
        "x-kubernetes-list-map-keys",
    )

    id: str = ""
    schema: str = msgspec.field(default="", name="$schema")
    ref: str | None = msgspec.field(default=None, name="$ref")
    description: str = ""
    type: str = ""
    format: str = ""
    title: str = ""
    default: JSON = None
    maximum: int | float | None = None
    exclusive_maximum: bool = False
    minimum: int | float | None = None
    exclusive_minimum: bool = False
    max_length: Int64 | None = None
    min_length: Int64 | None = None
    pattern: str = ""
    max_items: Int64 | None = None
    min_items: Int64 | None = None
    unique_items: bool = False
    multiple_of: int | float | None = None
    enum: list[JSON] = []
    max_properties: Int64 | None = None
    min_properties: Int64 | None = None
    required: list[str] = []
    items: "JSONSchemaProps | list[JSONSchemaProps] | None" = None
    all_of: "list[JSONSchemaProps]" = []
    one_of: "list[JSONSchemaProps]" = []
    any_of: "list[JSONSchemaProps]" = []
    not_: "JSONSchemaProps | None" = None
    properties: "dict[str, JSONSchemaProps]" = {}
    additional_properties: "JSONSchemaProps | bool | None" = None
    pattern_properties: "dict[str, JSONSchemaProps]" = {}
    dependencies: "dict[str, JSONSchemaProps | list[str] | None]" = {}
    additional_items: "JSONSchemaProps | bool | None" = None
    definitions: "dict[str, JSONSchemaProps]" = {}
    external_docs: ExternalDocumentation | None = None
    example: JSON = None
    nullable: bool = False
    preserve_unknown_fields: bool | None = _extension("preserve-unknown-fields", None)
    embedded_resource: bool = _extension("embedded-resource")
    int_or_string: bool = _extension("int-or-string")
    list_map_keys: Annotated[list[str], ATOMIC_LIST] = msgspec.field(
        default_factory=list, name="x-kubernetes-list-map-keys"
    )
    list_type: str | None = _extension("list-type", None)
    map_type: str | None = _extension("map-type", None)
    validations: Annotated[list[ValidationRule], _BY_RULE] = msgspec.field(
        default_factory=list, name="x-kubernetes-validations"
    )


class CustomResourceValidation(Part):
    open_api_v3_schema: JSONSchemaProps | None = None


class CustomResourceSubresourceStatus(Part):
    """Empty: that it is there says that there is a status."""


class CustomResourceSubresourceScale(Part):
    spec_replicas_path: str = always(str)
    status_replicas_path: str = always(str)
    label_selector_path: str | None = None


class CustomResourceSubresources(Part):
    status: CustomResourceSubresourceStatus | None = None
    scale: CustomResourceSubresourceScale | None = None


class CustomResourceColumnDefinition(Part):
    name: str = always(str)
    type: str = always(str)
    format: str = ""
    description: str = ""
    priority: Int32 = 0
    json_path: str = always(str)


class SelectableField(Part):
    json_path: str = always(str)


class CustomResourceDefinitionVersion(Part):
    name: str = always(str)
    served: bool = always(bool)
    storage: bool = always(bool)
    deprecated: bool = False
    deprecation_warning: str | None = None
    schema: CustomResourceValidation | None = None
    subresources: CustomResourceSubresources | None = None
    additional_printer_columns: list[CustomResourceColumnDefinition] = []
    selectable_fields: list[SelectableField] = []


class CustomResourceDefinitionNames(Part):
    plural: str = always(str)
    singular: str = ""
    short_names: list[str] = []
    kind: str = always(str)
    list_kind: str = ""
    categories: list[str] = []


class ConversionServiceReference(Part):
    namespace: str = always(str)
    name: str = always(str)
    path: str | None = None
    port: Int32 | None = None


class ConversionClientConfig(Part):
    url: str | None = None
    service: ConversionServiceReference | None = None
    ca_bundle: bytes = b""


class WebhookConversion(Part):
    client_config: ConversionClientConfig | None = None
    conversion_review_versions: list[str] | None = null()


class CustomResourceConversion(Part):
    strategy: str = always(str)
    webhook: WebhookConversion | None = None


class CustomResourceDefinitionSpec(Part):
    group: str = always(str)
    names: CustomResourceDefinitionNames = always(CustomResourceDefinitionNames)
    scope: str = always(str)
    versions: list[CustomResourceDefinitionVersion] | None = null()
    conversion: CustomResourceConversion | None = None
    preserve_unknown_fields: bool = False


class CustomResourceDefinitionCondition(Part):
    type: str = always(str)
    status: str = always(str)
    last_transition_time: Time | None = null()
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0


class CustomResourceDefinitionStatus(Part):
    conditions: Annotated[list[CustomResourceDefinitionCondition], keyed("type")] | None = null()
    accepted_names: CustomResourceDefinitionNames = always(CustomResourceDefinitionNames)
    stored_versions: list[str] | None = null()
    observed_generation: Int64 = 0


class CustomResourceDefinition(KubeObject):
    KIND: ClassVar[str] = "CustomResourceDefinition"
    API_VERSION: ClassVar[str] = "apiextensions.k8s.io/v1"

    spec: CustomResourceDefinitionSpec = always(CustomResourceDefinitionSpec)
    status: CustomResourceDefinitionStatus = always(CustomResourceDefinitionStatus)
