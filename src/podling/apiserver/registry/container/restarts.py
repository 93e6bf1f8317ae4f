"""Faults of a container's own restart policy, and of its rules for exit codes."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry.field import choice, not_supported, required, too_long
from podling.model.container import Container, ContainerRestartRule
from podling.model.errors import Cause

POLICIES = frozenset(("Always", "Never", "OnFailure"))
ACTIONS = frozenset(("Restart", "RestartAllContainers"))
OPERATORS = frozenset(("In", "NotIn"))
MAX_RULES, MAX_EXIT_CODES = 20, 255


def validate_restarts(container: Container, path: str) -> Iterator[Cause]:
    if container.restart_policy is None and not container.restart_policy_rules:
        return
    if container.restart_policy is None:
        yield required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    yield from choice(f"{path}.restartPolicy", container.restart_policy, POLICIES)
    if len(container.restart_policy_rules) > MAX_RULES:
        yield too_long(f"{path}.restartPolicyRules", MAX_RULES)
    for i, rule in enumerate(container.restart_policy_rules):
        yield from _validate_rule(rule, f"{path}.restartPolicyRules[{i}]")


def _validate_rule(rule: ContainerRestartRule, path: str) -> Iterator[Cause]:
    yield from choice(f"{path}.action", rule.action, ACTIONS)
    if rule.exit_codes is None:
        yield required(f"{path}.exitCodes", "must be specified")
        return
    if rule.exit_codes.operator not in OPERATORS:
        yield not_supported(f"{path}.exitCodes.operator", rule.exit_codes.operator, OPERATORS)
    if len(rule.exit_codes.values) > MAX_EXIT_CODES:
        yield too_long(f"{path}.exitCodes.values", MAX_EXIT_CODES)
