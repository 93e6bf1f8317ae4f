"""Each option of `podling debug` with each thing it may be about: it is used there, or refused with a
reason.
"""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from podling.cli.debug import debug
from podling.cli.debug_modes import COPY, FLEET, HOLD, MODES, NODE, OPTIONS, POD, STOP

WORDS = {
    POD: ["web"],
    COPY: ["web", "--copy-to=x"],
    HOLD: ["web", "--hold=step"],
    NODE: ["node/one"],
    FLEET: ["-l", "a=b"],
    STOP: ["web", "--stop"],
}
CLUSTER = {"file", "context", "namespace"}
NAMED = {parameter.name: parameter for parameter in debug.params if isinstance(parameter, click.Option)}


def unreachable(directory: Path) -> Path:
    """The kubeconfig of a cluster that is not there."""
    file = directory / "config"
    file.write_text(
        "{current-context: c, contexts: [{name: c, context: {cluster: c}}], "
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]}"
    )
    return file


def test_the_table_has_every_option() -> None:
    assert {name for name in NAMED if name} - CLUSTER == set(OPTIONS)
    assert all(about.why for about in OPTIONS.values() if set(about.modes) != set(MODES))


SAYS_WHAT = ("selector", "all_namespaces", "stop", "hold", "copy_to")
"""Options that say what is debugged."""
PAIRS = [(name, mode) for name in OPTIONS if name not in SAYS_WHAT for mode in MODES]


@pytest.mark.parametrize(("name", "mode"), PAIRS)
def test_an_option_is_used_or_refused(name: str, mode: str, tmp_path: Path) -> None:
    config, file = unreachable(tmp_path), tmp_path / "file"
    file.write_text("{metadata: {name: web}}")
    option = NAMED[name]
    flag = max(option.opts, key=len)
    values = {"env": "A=1", "images": "a=b", "custom": str(file), "filename": str(file), "tools": "net"}
    values |= {"record": str(tmp_path / "x.cast"), "save": str(tmp_path / "out"), "pod_option": "web"}
    values["pod_option"] = WORDS[NODE][0] if mode == NODE else "web"
    if option.is_flag:
        given = [flag]
    elif isinstance(option.type, click.Choice):
        given = [flag, option.type.choices[0]]
    else:
        given = [flag, values.get(name, "5")]
    # What needs others, gets them.
    given += ["-it"] if name == "idle_timeout" else []
    words = [*WORDS[mode], "--kubeconfig", str(config), *given, "--", "true"]
    done = CliRunner().invoke(debug, words)
    if mode in OPTIONS[name].modes:
        assert (done.exit_code, "127.0.0.1" in done.output) == (1, True), done.output
    else:
        assert done.exit_code == 2
        assert f"Error: {flag} {OPTIONS[name].why}" in done.output


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["node/one", "--copy-to=x"], "--copy-to copies one pod, and no node"),
        (["node/one", "--hold=x"], "--hold copies one pod, and no node"),
        (["-A", "--copy-to=x"], "--copy-to copies one pod"),
        (["-l", "a=b", "--stop"], "--stop is for one pod"),
        (["web", "--stop", "--hold=x"], "--hold copies one pod"),
    ],
)
def test_what_it_is_about_is_one_thing(words: list[str], why: str, tmp_path: Path) -> None:
    config = unreachable(tmp_path)
    done = CliRunner().invoke(debug, [*words, "--kubeconfig", str(config)])
    assert done.exit_code == 2 and why in done.output
