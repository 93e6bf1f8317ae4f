"""A part that runs alone: what is said when it cannot tell where its API server is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from podling.assemble.controllers import control, schedule
from podling.assemble.kubelet import KubeletOptions
from podling.assemble.kubelet import run as run_kubelet
from podling.machine.instance import Instance
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
    said: list[str] = []
    starts: tuple[Callable[[], None], ...] = (
        lambda: schedule(file, 0, said.append, elects=True),
        lambda: control(file, None, None, 0, said.append, accounts_each=True, elects=True),
        lambda: run_kubelet(KubeletOptions(Instance.at(tmp_path), file), said.append),
    )
    for start in starts:
        with pytest.raises(StartError) as refused:
            start()
        assert str(file) in str(refused.value)
        assert why in str(refused.value)
    assert said == []
