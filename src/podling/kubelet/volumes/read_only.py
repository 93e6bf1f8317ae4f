"""How far a read-only mount is read-only: `recursiveReadOnly` of a volume mount. Pure."""

from __future__ import annotations

from podling.kubelet.runtime_config.environment import ConfigError
from podling.model.container import VolumeMount

ENABLED = "Enabled"
IF_POSSIBLE = "IfPossible"


def is_asked(mount: VolumeMount) -> bool:
    return mount.recursive_read_only in (ENABLED, IF_POSSIBLE)


def is_recursive(mount: VolumeMount, *, possible: bool) -> bool:
    """Raises ConfigError where it must be and cannot."""
    if not is_asked(mount):
        return False
    asked = f'volume "{mount.name}" requested recursive read-only mode, but it is not'
    if not mount.read_only:
        raise ConfigError(f"{asked} read-only")
    if mount.mount_propagation not in (None, "None"):
        raise ConfigError(f'{asked} compatible with propagation "{mount.mount_propagation}"')
    if mount.recursive_read_only == ENABLED and not possible:
        raise ConfigError(f"{asked} supported by the runtime")
    return possible
