"""The names of `--authorization-mode`, in the order in which they are asked. Pure."""

from __future__ import annotations

from podling.model.codec.quoting import quoted, quoted_list
from podling.model.errors import joined

NODE, RBAC, ALWAYS_ALLOW, ALWAYS_DENY = "Node", "RBAC", "AlwaysAllow", "AlwaysDeny"
WEBHOOK = "Webhook"
DEFAULT_MODES = (NODE, RBAC)
SERVED = frozenset({NODE, RBAC, ALWAYS_ALLOW, ALWAYS_DENY, WEBHOOK})
NEED_A_FILE = {WEBHOOK: "authorization config file", "ABAC": "authorization policy file"}
"""Modes that read a file. For that of ABAC podling has no option: it is refused as without it."""


def read_modes(text: str, *, webhook: bool = False) -> tuple[str, ...]:
    """Names joined by commas; none is AlwaysAllow, as in Kubernetes. `webhook`: whether there is a file that
    says where it is. Raises ValueError."""
    modes = tuple(text.split(",")) if text else (ALWAYS_ALLOW,)
    faults = []
    for mode in modes:
        if mode in NEED_A_FILE and not (mode == WEBHOOK and webhook):
            faults.append(f"authorization-mode {mode}'s {NEED_A_FILE[mode]} not passed")
        elif mode not in SERVED:
            faults.append(f"authorization-mode {quoted(mode)} is not a valid mode")
    if len(set(modes)) < len(modes):
        faults.append(f"authorization-mode {quoted_list(modes)} has mode specified more than once")
    if webhook and WEBHOOK not in modes:
        faults.append("cannot specify --authorization-webhook-config-file without mode Webhook")
    if faults:
        raise ValueError(joined(faults))
    return modes
