"""The order of a start, as far as imports tell it."""

from __future__ import annotations

import subprocess
import sys


def test_containerd_waits_for_no_part_of_podling_to_be_imported() -> None:
    parts = {"aiohttp", "cryptography", "podling.apiserver", "podling.kubelet.kubelet", "podling.scheduler"}
    code = f"import sys, podling.assemble.up; print(sorted({parts!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
