"""How a part that runs alone reaches its API server: by its kubeconfig."""

from __future__ import annotations

from pathlib import Path

from podling.client import kubeconfig
from podling.machine.start import StartError


def access_from(file: Path) -> kubeconfig.Access:
    """Raises StartError."""
    try:
        return kubeconfig.read(file)
    except kubeconfig.KubeconfigError as error:
        raise StartError(str(error)) from error
