"""What is said when a part that runs alone cannot tell where its API server is."""

from __future__ import annotations

from pathlib import Path

import pytest

from podling.assemble.access import access_from
from podling.machine.start import StartError


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no: [yaml", "while parsing"),
        ("[]", "not a kubeconfig"),
        ("current-context: here", 'contexts: no entry is named "here"'),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_named(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "kubelet.conf"
    file.write_text(text)
    with pytest.raises(StartError) as refused:
        access_from(file)
    assert str(file) in str(refused.value)
    assert why in str(refused.value)
