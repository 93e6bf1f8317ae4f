"""Validation of the kinds of admissionregistration.k8s.io
(`pkg/apis/admissionregistration/validation` of Kubernetes).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from podling.apiserver.cel.checker import INTERNAL
from podling.apiserver.cel.urls import parsed_url
from podling.apiserver.rules.expressions import APPLY_CONFIGURATION, JSON_PATCH, SPACE, is_identifier
from podling.apiserver.rules.field import (
    all_invalid,
    duplicate,
    forbidden,
    internal,
    invalid,
    not_supported,
    required,
    too_many,
)
from podling.apiserver.rules.metadata import validate_label_selector
from podling.model import names
from podling.model.errors import Cause
from podling.model.types.admissionregistration import (
    AuditAnnotation,
    MatchCondition,
    MatchResources,
    MutatingAdmissionPolicyBindingSpec,
    MutatingAdmissionPolicySpec,
    MutatingWebhook,
    Mutation,
    NamedRuleWithOperations,
    ParamKind,
    ParamRef,
    RuleWithOperations,
    TypeChecking,
    ValidatingAdmissionPolicyBindingSpec,
    ValidatingAdmissionPolicySpec,
    ValidatingWebhook,
    Validation,
    Variable,
    WebhookClientConfig,
    WebhookServiceReference,
)
from podling.model.types.apiextensions import ConversionClientConfig, ConversionServiceReference

Faults = Mapping[str, str]
"""What is wrong with expressions, by path."""

FAILURE_POLICIES = frozenset(("Fail", "Ignore"))
MATCH_POLICIES = frozenset(("Equivalent", "Exact"))
REINVOCATION_POLICIES = frozenset(("IfNeeded", "Never"))
OPERATIONS = frozenset(("*", "CONNECT", "CREATE", "DELETE", "UPDATE"))
CHANGING = OPERATIONS - {"DELETE"}
SCOPES = frozenset(("*", "Cluster", "Namespaced"))
SIDE_EFFECTS = frozenset(("None", "NoneOnDryRun"))
REVIEW_VERSIONS = ("v1", "v1beta1")
LONGEST_TIMEOUT = 30
REASONS = frozenset(("Forbidden", "Invalid", "RequestEntityTooLarge"))
NOT_FOUND_ACTIONS = ("Deny", "Allow")
ACTIONS = frozenset(("Audit", "Deny", "Warn"))
MAX_MATCH_CONDITIONS, MAX_AUDIT_ANNOTATIONS = 64, 20
LONGEST_VALUE_EXPRESSION = 5 * 1024
MOST_SEGMENTS_TOLD = 100
DESIRED_URL = "; desired format: https://host[/path]"


def _compiled(path: str, text: str, faults: Faults) -> Iterator[Cause]:
    if why := faults.get(path):
        if why.startswith(INTERNAL):
            yield Cause("InternalError", why, path)
        else:
            yield invalid(path, text, why)


def validate_webhooks(
    webhooks: Sequence[ValidatingWebhook | MutatingWebhook], faults: Faults
) -> Iterator[Cause]:
    """`faults`: of expressions, by path."""
    seen: set[str] = set()
    for i, webhook in enumerate(webhooks):
        path = f"webhooks[{i}]"
        yield from validate_webhook(webhook, path, faults)
        yield from validate_versions(webhook.admission_review_versions, f"{path}.admissionReviewVersions")
        if webhook.name in seen:
            yield duplicate(f"{path}.name", webhook.name)
        seen.add(webhook.name)


def validate_webhook(
    webhook: ValidatingWebhook | MutatingWebhook, path: str, faults: Faults
) -> Iterator[Cause]:
    if not webhook.name:
        yield required(f"{path}.name")
    elif problems := names.dns1123_subdomain(webhook.name):
        yield from all_invalid(f"{path}.name", webhook.name, problems)
    elif webhook.name.count(".") < 2:
        why = "should be a domain with at least three segments separated by dots"
        yield invalid(f"{path}.name", webhook.name, why)
    for i, rule in enumerate(webhook.rules):
        yield from _validate_rule(rule, f"{path}.rules[{i}]")
    yield from _choice(f"{path}.failurePolicy", webhook.failure_policy, FAILURE_POLICIES)
    yield from _choice(f"{path}.matchPolicy", webhook.match_policy, MATCH_POLICIES)
    if webhook.side_effects is None:
        yield required(f"{path}.sideEffects", f"must specify one of {', '.join(sorted(SIDE_EFFECTS))}")
    yield from _choice(f"{path}.sideEffects", webhook.side_effects, SIDE_EFFECTS)
    seconds = webhook.timeout_seconds
    if seconds is not None and not 1 <= seconds <= LONGEST_TIMEOUT:
        why = f"the timeout value must be between 1 and {LONGEST_TIMEOUT} seconds"
        yield invalid(f"{path}.timeoutSeconds", seconds, why)
    yield from validate_label_selector(webhook.namespace_selector, f"{path}.namespaceSelector")
    yield from validate_label_selector(webhook.object_selector, f"{path}.objectSelector")
    if isinstance(webhook, MutatingWebhook):
        yield from _choice(f"{path}.reinvocationPolicy", webhook.reinvocation_policy, REINVOCATION_POLICIES)
    yield from validate_webhook_client(webhook.client_config, f"{path}.clientConfig")
    yield from _validate_match_conditions(webhook.match_conditions, f"{path}.matchConditions", faults)


def _choice(path: str, value: str | None, supported: Iterable[str]) -> Iterator[Cause]:
    if value is not None and value not in supported:
        yield not_supported(path, value, supported)


def validate_webhook_client(
    client: WebhookClientConfig | ConversionClientConfig, path: str
) -> Iterator[Cause]:
    if (client.url is None) == (client.service is None):
        yield required(path, "exactly one of url or service is required")
    elif client.url is not None:
        yield from validate_webhook_url(client.url, f"{path}.url")
    elif client.service is not None:
        yield from validate_service(client.service, f"{path}.service")


def validate_webhook_url(text: str, path: str) -> Iterator[Cause]:
    try:
        url = parsed_url(text)
    except ValueError as error:
        yield required(path, f"url must be a valid URL: {error}{DESIRED_URL}")
        return
    if url.scheme != "https":
        yield invalid(path, url.scheme, f"'https' is the only allowed URL scheme{DESIRED_URL}")
    if not url.host:
        yield invalid(path, url.host, f"host must be specified{DESIRED_URL}")
    if url.user is not None:
        yield invalid(path, url.user, "user information is not permitted in the URL")
    if url.fragment:
        yield invalid(path, url.fragment, "fragments are not permitted in the URL")
    if url.query:
        yield invalid(path, url.query, "query parameters are not permitted in the URL")


def validate_service(
    service: WebhookServiceReference | ConversionServiceReference, path: str
) -> Iterator[Cause]:
    # Kubernetes hands over the two in the wrong order.
    if not service.namespace:
        yield required(f"{path}.name")
    if not service.name:
        yield required(f"{path}.namespace")
    if service.port is not None and (faults := names.port_number(service.port)):
        yield invalid(f"{path}.port", service.port, f"port is not valid: {','.join(faults)}")
    if service.path not in (None, "", "/"):
        yield from validate_service_path(service.path or "", f"{path}.path")


def validate_service_path(text: str, path: str) -> Iterator[Cause]:
    if text == "//":
        yield invalid(path, text, "segment[0] may not be empty")
        return
    if not text.startswith("/"):
        yield invalid(path, text, "must start with a '/'")
    told = 0
    for i, segment in enumerate(text[1:].removesuffix("/").split("/")):
        if not segment:
            faults = [f"segment[{i}] may not be empty"]
        else:
            faults = [f"segment[{i}]: {fault}" for fault in names.dns1123_subdomain(segment)]
        yield from all_invalid(path, text, faults)
        told += len(faults)
        if told > MOST_SEGMENTS_TOLD:
            # Each fault has the whole path in it.
            return


def validate_versions(versions: list[str], path: str) -> Iterator[Cause]:
    known = ", ".join(REVIEW_VERSIONS)
    if not versions:
        yield required(path, f"must specify one of {known}")
        return
    seen: set[str] = set()
    for i, version in enumerate(versions):
        if version in seen:
            yield invalid(f"{path}[{i}]", version, "duplicate version")
            continue
        seen.add(version)
        yield from all_invalid(f"{path}[{i}]", version, names.dns1035_label(version))
    if seen.isdisjoint(REVIEW_VERSIONS):
        yield invalid(path, versions, f"must include at least one of {known}")


def _validate_rule(rule: RuleWithOperations | NamedRuleWithOperations, path: str) -> Iterator[Cause]:
    yield from _validate_wildcard(rule.operations, f"{path}.operations", "operations")
    for i, operation in enumerate(rule.operations):
        if operation not in OPERATIONS:
            yield not_supported(f"{path}.operations[{i}]", operation, OPERATIONS)
    yield from _validate_wildcard(rule.api_groups, f"{path}.apiGroups", "API groups")
    yield from _validate_wildcard(rule.api_versions, f"{path}.apiVersions", "API versions")
    for i, version in enumerate(rule.api_versions):
        if not version:
            yield required(f"{path}.apiVersions[{i}]")
    yield from validate_resources(rule.resources, f"{path}.resources")
    yield from _choice(f"{path}.scope", rule.scope, SCOPES)


def _validate_wildcard(values: list[str], path: str, what: str) -> Iterator[Cause]:
    if not values:
        yield required(path)
    if len(values) > 1 and "*" in values:
        yield invalid(path, values, f"if '*' is present, must not specify other {what}")


def validate_resources(resources: list[str], path: str) -> Iterator[Cause]:
    """`*/x` and `x/*` stand for what follows them in the list, not for what comes before."""
    if not resources:
        yield required(path)
    of_all, all_of, ends_plain = set[str](), set[str](), False
    for i, resource in enumerate(resources):
        if not resource:
            yield required(f"{path}[{i}]")
            continue
        name, slash, subresource = resource.partition("/")
        if not slash:
            # As in Kubernetes, the last one decides.
            ends_plain = resource != "*"
            continue
        if name in all_of:
            why = f"if '{name}/*' is present, must not specify {resource}"
            yield invalid(f"{path}[{i}]", resource, why)
        if subresource in of_all:
            why = f"if '*/{subresource}' is present, must not specify {resource}"
            yield invalid(f"{path}[{i}]", resource, why)
        if subresource == "*":
            all_of.add(name)
        if name == "*":
            of_all.add(subresource)
    if len(resources) > 1 and "*/*" in resources:
        yield invalid(path, resources, "if '*/*' is present, must not specify other resources")
    if "*" in resources and ends_plain:
        why = "if '*' is present, must not specify other resources without subresources"
        yield invalid(path, resources, why)


def _validate_match_conditions(
    conditions: list[MatchCondition], path: str, faults: Faults
) -> Iterator[Cause]:
    if len(conditions) > MAX_MATCH_CONDITIONS:
        yield too_many(path, len(conditions), MAX_MATCH_CONDITIONS)
    seen: set[str] = set()
    for i, condition in enumerate(conditions):
        where = f"{path}[{i}]"
        expression = condition.expression.strip(SPACE)
        if not expression:
            yield required(f"{where}.expression")
        yield from _compiled(f"{where}.expression", expression, faults)
        if not condition.name:
            yield required(f"{where}.name")
            continue
        yield from all_invalid(f"{where}.name", condition.name, names.qualified_name(condition.name))
        if condition.name in seen:
            yield duplicate(f"{where}.name", condition.name)
        seen.add(condition.name)


def validate_policy(spec: ValidatingAdmissionPolicySpec, name: str, faults: Faults) -> Iterator[Cause]:
    """`name`: the policy's, of which the keys of its audit annotations are made. `faults`: of expressions, by
    path."""
    yield from _validate_policy(spec, faults)
    if not spec.validations and not spec.audit_annotations:
        why = "validations or auditAnnotations must contain at least one item"
        yield required("spec.validations", why)
        yield required("spec.auditAnnotations", why)
        return
    for i, validation in enumerate(spec.validations):
        yield from validate_validation(validation, f"spec.validations[{i}]", faults)
    annotations, path = spec.audit_annotations, "spec.auditAnnotations"
    if len(annotations) > MAX_AUDIT_ANNOTATIONS:
        why = f"must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations"
        yield invalid(path, internal(annotations), why)
    seen: set[str] = set()
    for i, annotation in enumerate(annotations):
        yield from validate_annotation(annotation, name, f"{path}[{i}]", faults)
        if annotation.key in seen:
            yield duplicate(f"{path}[{i}].key", annotation.key)
        seen.add(annotation.key)


def validate_mutating_policy(spec: MutatingAdmissionPolicySpec, faults: Faults) -> Iterator[Cause]:
    """`faults`: of expressions, by path."""
    yield from _validate_policy(spec, faults)
    if not spec.mutations:
        yield required("spec.mutations", "mutations must contain at least one item")
    for i, mutation in enumerate(spec.mutations):
        yield from validate_mutation(mutation, f"spec.mutations[{i}]", faults)
    if not spec.reinvocation_policy:
        yield required("spec.reinvocationPolicy")
    else:
        yield from _choice("spec.reinvocationPolicy", spec.reinvocation_policy, REINVOCATION_POLICIES)


def _validate_operations(match: MatchResources, path: str) -> Iterator[Cause]:
    """A policy that changes objects has nothing to change of one that is deleted."""
    for rule in match.resource_rules:
        for operation in rule.operations:
            if operation not in CHANGING:
                yield not_supported(f"{path}.resourceRules.operations", operation, CHANGING)


def _validate_policy(
    spec: ValidatingAdmissionPolicySpec | MutatingAdmissionPolicySpec, faults: Faults
) -> Iterator[Cause]:
    yield from _choice("spec.failurePolicy", spec.failure_policy, FAILURE_POLICIES)
    if spec.param_kind is not None:
        yield from validate_param_kind(spec.param_kind, "spec.paramKind")
    if spec.match_constraints is None:
        yield required("spec.matchConstraints")
    else:
        yield from _validate_match(spec.match_constraints, "spec.matchConstraints")
        if not spec.match_constraints.resource_rules:
            yield required("spec.matchConstraints.resourceRules")
        if isinstance(spec, MutatingAdmissionPolicySpec):
            yield from _validate_operations(spec.match_constraints, "spec.matchConstraints")
    yield from _validate_match_conditions(spec.match_conditions, "spec.matchConditions", faults)
    for i, variable in enumerate(spec.variables):
        yield from validate_variable(variable, f"spec.variables[{i}]", faults)


def validate_param_kind(kind: ParamKind, path: str) -> Iterator[Cause]:
    where = f"{path}.apiVersion"
    group, _, version = kind.api_version.rpartition("/")
    if not kind.api_version:
        yield required(where)
    elif "/" in group:
        yield invalid(where, kind.api_version, f"unexpected GroupVersion string: {kind.api_version}")
    else:
        if group and (faults := names.dns1123_subdomain(group)):
            yield invalid(where, group, ",".join(faults))
        if not version:
            yield invalid(where, kind.api_version, "version must be specified")
        elif faults := names.dns1035_label(version):
            yield invalid(where, version, ",".join(faults))
    if not kind.kind:
        yield required(f"{path}.kind")
    elif faults := names.dns1035_label(kind.kind.lower()):
        why = f"may have mixed case, but should otherwise match: {','.join(faults)}"
        yield invalid(f"{path}.kind", kind.kind, why)


def _validate_match(match: MatchResources, path: str) -> Iterator[Cause]:
    yield from _choice(f"{path}.matchPolicy", match.match_policy, MATCH_POLICIES)
    yield from validate_label_selector(match.namespace_selector, f"{path}.namespaceSelector")
    yield from validate_label_selector(match.object_selector, f"{path}.objectSelector")
    for wire, rules in (
        ("resourceRules", match.resource_rules),
        ("excludeResourceRules", match.exclude_resource_rules),
    ):
        for i, rule in enumerate(rules):
            where, seen = f"{path}.{wire}[{i}]", set[str]()
            for j, name in enumerate(rule.resource_names):
                yield from all_invalid(f"{where}.resourceNames[{j}]", name, names.path_segment(name))
                if name in seen:
                    yield duplicate(f"{where}.resourceNames[{j}]", name)
                seen.add(name)
            yield from _validate_rule(rule, where)


def validate_variable(variable: Variable, path: str, faults: Faults) -> Iterator[Cause]:
    if not variable.name.strip(SPACE):
        yield required(f"{path}.name", "name is not specified")
    elif not is_identifier(variable.name):
        yield invalid(f"{path}.name", variable.name, "must be a valid CEL identifier")
    if not variable.expression.strip(SPACE):
        yield required(f"{path}.expression", "expression is not specified")
    yield from _compiled(f"{path}.expression", variable.expression, faults)


def validate_validation(validation: Validation, path: str, faults: Faults) -> Iterator[Cause]:
    if not validation.expression.strip(SPACE):
        yield required(f"{path}.expression", "expression is not specified")
    yield from _compiled(f"{path}.expression", validation.expression, faults)
    if validation.message_expression and not validation.message_expression.strip(SPACE):
        why = "must be non-empty if specified"
        yield invalid(f"{path}.messageExpression", validation.message_expression, why)
    yield from _compiled(f"{path}.messageExpression", validation.message_expression, faults)
    message = validation.message.strip(SPACE)
    if validation.message and not message:
        yield invalid(f"{path}.message", validation.message, "must be non-empty if specified")
    elif "\n" in message or "\r" in message:
        yield invalid(f"{path}.message", validation.message, "must not contain line breaks")
    yield from _choice(f"{path}.reason", validation.reason, REASONS)


def validate_annotation(annotation: AuditAnnotation, name: str, path: str, faults: Faults) -> Iterator[Cause]:
    key = f"{name}/{annotation.key}" if name else annotation.key
    yield from all_invalid(f"{path}.key", key, names.qualified_name(key))
    expression = annotation.value_expression.strip(SPACE)
    if not expression:
        yield required(f"{path}.valueExpression", "valueExpression is not specified")
    elif len(expression.encode()) > LONGEST_VALUE_EXPRESSION:
        why = f"must not exceed {LONGEST_VALUE_EXPRESSION} bytes in length"
        yield required(f"{path}.valueExpression", why)
    else:
        yield from _compiled(f"{path}.valueExpression", annotation.value_expression, faults)


def validate_mutation(mutation: Mutation, path: str, faults: Faults) -> Iterator[Cause]:
    type_ = mutation.patch_type
    if not type_:
        yield required(f"{path}.patchType")
        return
    parts = {
        APPLY_CONFIGURATION: ("applyConfiguration", mutation.apply_configuration),
        JSON_PATCH: ("jsonPatch", mutation.json_patch),
    }
    if type_ not in parts:
        yield not_supported(f"{path}.patchType", type_, sorted(parts))
        return
    wire, part = parts.pop(type_)
    if part is None:
        yield required(f"{path}.{wire}", f"must be specified when patchType is {type_}")
    elif not part.expression.strip(SPACE):
        yield required(f"{path}.{wire}.expression")
    else:
        yield from _compiled(f"{path}.{wire}.expression", part.expression, faults)
    for other, unwanted in parts.values():
        if unwanted is not None:
            why = f"must not be specified when patchType is {type_}"
            yield invalid(f"{path}.{other}", f"{{{other}}}", why)


def validate_binding(
    spec: ValidatingAdmissionPolicyBindingSpec | MutatingAdmissionPolicyBindingSpec,
) -> Iterator[Cause]:
    if not spec.policy_name:
        yield required("spec.policyName")
    else:
        faults = names.dns1123_subdomain(spec.policy_name)
        yield from all_invalid("spec.policyName", spec.policy_name, faults)
    if spec.param_ref is not None:
        yield from validate_param_ref(spec.param_ref, "spec.paramRef")
    if spec.match_resources is not None:
        yield from _validate_match(spec.match_resources, "spec.matchResources")
    if isinstance(spec, ValidatingAdmissionPolicyBindingSpec):
        yield from validate_actions(spec.validation_actions, "spec.validationActions")
    elif spec.match_resources is not None:
        yield from _validate_operations(spec.match_resources, "spec.matchResources")


def validate_param_ref(reference: ParamRef, path: str) -> Iterator[Cause]:
    exclusive = "name and selector are mutually exclusive"
    if reference.name:
        yield from all_invalid(f"{path}.name", reference.name, names.path_segment(reference.name))
        if reference.selector is not None:
            yield forbidden(f"{path}.name", exclusive)
    if reference.selector is not None:
        yield from validate_label_selector(reference.selector, f"{path}.selector")
        if reference.name:
            yield forbidden(f"{path}.selector", exclusive)
    elif not reference.name:
        yield required(path, "one of name or selector must be specified")
    if not reference.parameter_not_found_action:
        yield required(f"{path}.parameterNotFoundAction")
    else:
        action = reference.parameter_not_found_action
        yield from _choice(f"{path}.parameterNotFoundAction", action, NOT_FOUND_ACTIONS)


def validate_actions(actions: list[str], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, action in enumerate(actions):
        if action not in ACTIONS:
            yield not_supported(f"{path}[{i}]", action, ACTIONS)
        if action in seen:
            yield duplicate(f"{path}[{i}]", action)
        seen.add(action)
    if {"Deny", "Warn"} <= seen:
        why = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the "
            "API response and headers serves no purpose)"
        )
        yield invalid(path, actions, why)
    if not actions:
        yield required(path, "at least one validation action is required")


def validate_type_checking(checking: TypeChecking | None, path: str) -> Iterator[Cause]:
    if not checking or not checking.expression_warnings:
        return
    # With the first policy that is warned of: few are (docs/decisions/066).
    from podling.apiserver.rules.json_path import fault_of_json_path

    for i, warning in enumerate(checking.expression_warnings):
        where = f"{path}.expressionWarnings[{i}]"
        if not warning.warning:
            yield required(f"{where}.warning")
        reference = warning.field_ref.strip(SPACE)
        if not reference:
            yield required(f"{where}.fieldRef")
        elif fault := fault_of_json_path(reference):
            yield invalid(f"{where}.fieldRef", reference, f"invalid JSONPath: {fault}")
