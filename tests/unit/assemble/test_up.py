"""The order of a start and what it must not cost, as far as imports tell."""

from __future__ import annotations

import subprocess
import sys


def test_containerd_waits_for_no_part_of_podling_to_be_imported() -> None:
    parts = {"aiohttp", "cryptography", "podling.apiserver", "podling.kubelet.kubelet", "podling.scheduler"}
    code = f"import sys, podling.assemble.up; print(sorted({parts!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_no_start_pays_for_dataclasses() -> None:
    """A dataclass takes 0.5 to 0.9 ms to make, a msgspec struct 0.02 (docs/decisions/029)."""
    code = (
        "import sys, podling.assemble.up, podling.assemble.cluster; "
        "modules = [module for name, module in sys.modules.items() if name.startswith('podling.')]; "
        "names = {f'{one.__module__}.{one.__name__}' for module in modules for one in vars(module).values() "
        "if isinstance(one, type) and '__dataclass_fields__' in vars(one)}; "
        "print(sorted(name for name in names if name.startswith('podling.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
