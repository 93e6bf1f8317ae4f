"""docs/flow.md draws what the planner does: its steps are the planner's functions, in their order."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

from podling.kubelet.plan import plan

FLOW = Path(__file__).parents[4] / "docs/flow.md"
PLANNED_BY_THE_STEP_BEFORE = ("stop_it", "next_init")


def test_the_diagram_has_the_steps_of_the_plan_in_order() -> None:
    (diagram,) = re.findall(r"```mermaid\nflowchart TD\n(.*?)```", FLOW.read_text(), re.DOTALL)
    drawn = list(dict.fromkeys(re.findall(r"\b(\w+)[\[{]", diagram)))
    steps = [name for name in drawn if name not in PLANNED_BY_THE_STEP_BEFORE]
    assert all(callable(getattr(plan, name)) for name in steps)
    assert steps[steps.index("plan_ephemeral") :] == called_in("_run")
    assert [name for name in called_in("plan") if name in steps] == [
        name for name in steps if name in called_in("plan")
    ]


def called_in(function: str) -> list[str]:
    """The functions of the module that one of it calls, in the order of their text."""
    tree = ast.parse(inspect.getsource(getattr(plan, function)))
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [
        call for call in calls if isinstance(call, ast.Name) and inspect.isfunction(vars(plan).get(call.id))
    ]
    return list(
        dict.fromkeys(call.id for call in sorted(named, key=lambda call: (call.lineno, call.col_offset)))
    )
