"""As much is compared as docs/compared.md says. This is the last test of a run (`conftest.py`)."""

from __future__ import annotations

import os

import pytest

from peer import counted


def test_no_less_is_compared_than_is_written(request: pytest.FixtureRequest) -> None:
    options = request.config.option
    if options.keyword or options.markexpr or any("::" in one for one in request.config.args):
        pytest.skip("only a part of the tests of a file was asked for")
    if os.environ.get("PODLING_RECORD"):
        counts = {**counted.documented(), **counted.compared()}
        counted.DOCUMENT.write_text(counted.rendered(counts))
    less = counted.less({item.path.name for item in request.session.items})
    assert not less, "\n".join(f"{file}: {now} of {written}" for file, (written, now) in less.items())
