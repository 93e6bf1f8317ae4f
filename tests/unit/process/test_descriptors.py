"""The limit of descriptors, in a process of its own: raised for us, as it was for what we start."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 512))
from podling.process.descriptors import limit_as_given; from podling.process.descriptors import raise_limit
limit = lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0]
seen = [raise_limit(), limit()]
with limit_as_given():
    seen.append(limit())
print(*seen, limit())
"""


def test_it_is_ours_alone() -> None:
    said = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["512", "512", "256", "512"]
