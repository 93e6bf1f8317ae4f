"""Labels of logs are coloured where somebody looks at them, and does not say no."""

from __future__ import annotations

import io

import pytest

from podling.cli import logs
from podling.debug.log_lines import Part
from podling.remote import terminal
from podling.remote.logs import Source


@pytest.mark.parametrize(
    ("is_terminal", "no_color", "is_coloured"),
    [(True, None, True), (True, "", True), (True, "1", False), (True, "0", False), (False, None, False)],
)
def test_colours(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, no_color: str | None, is_coloured: bool
) -> None:
    """NO_COLOR, whatever it says, if it is not empty (no-color.org)."""
    written = io.BytesIO()
    monkeypatch.setattr(terminal, "is_terminal", lambda _: is_terminal)
    monkeypatch.setattr(terminal, "write", lambda _, data: written.write(data))
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    screen = logs._Screen(timestamps=False, prefix=True, with_namespace=False)
    for number in (0, 1):
        screen.show(Source(number, "own", "web", f"c{number}"), [Part("T", b"line\n")])
    said = written.getvalue()
    assert (b"\x1b[" in said) is is_coloured
    if is_coloured:
        assert said == b"\x1b[36m[pod/web/c0]\x1b[0m line\n\x1b[33m[pod/web/c1]\x1b[0m line\n"
    else:
        assert said == b"[pod/web/c0] line\n[pod/web/c1] line\n"
