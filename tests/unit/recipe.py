"""What tests of the documents `docs/adding-….md` share: their code, and modules as they are once it stands
where the document says.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

DOCUMENTS = Path(__file__).parents[2] / "docs"


def code_of(document: str) -> list[str]:
    """The blocks of Python, in order."""
    return re.findall(r"```python\n(.*?)```", (DOCUMENTS / document).read_text(), re.DOTALL)


def written(patch: pytest.MonkeyPatch, name: str, source: str) -> Any:
    """The module `name` made of `source`, for the time of a test."""
    made = ModuleType(name)
    patch.setitem(sys.modules, name, made)
    exec(compile(source, name, "exec"), made.__dict__)
    return made


def extended(
    patch: pytest.MonkeyPatch, name: str, added: dict[str, str] | None = None, *, appended: str = ""
) -> Any:
    """The module `name` with each text of `added` behind the line that is its key, `appended` at its end, and
    made anew from what stands in `sys.modules` by now."""
    path = importlib.import_module(name).__file__
    assert path
    source = Path(path).read_text()
    for after, text in (added or {}).items():
        assert source.count(after) == 1, after
        source = source.replace(after, after + text)
    return written(patch, name, f"{source}\n\n{appended}")
