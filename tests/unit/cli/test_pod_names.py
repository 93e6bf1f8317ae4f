"""A name that a user gives is a name in the path of a request, or refused before anything is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from podling.cli.main import main
from podling.debug.container import WishError, pod_path

CONFIG = (
    "{current-context: c, contexts: [{name: c, context: {cluster: c}}], "
    "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]}"
)
NAMED = {
    "debug": ["debug", "NAME", "--", "true"],
    "debug --pod": ["debug", "-p", "NAME", "--", "true"],
    "debug --copy-to": ["debug", "NAME", "--copy-to=x"],
    "debug --stop": ["debug", "NAME", "--stop"],
    "why": ["why", "NAME"],
    "capture": ["capture", "NAME"],
    "cp": ["cp", "NAME:/x", "y"],
    "logs": ["logs", "NAME"],
    "-n": ["why", "web", "-n", "NAME"],
    "-n of many": ["debug", "-l", "a=b", "-n", "NAME", "--", "true"],
    "-n of a node": ["debug", "node/x", "-n", "NAME", "--", "true"],
    "sessions -n": ["sessions", "-n", "NAME"],
}


def said(tmp_path: Path, *words: str) -> tuple[int, str]:
    config = tmp_path / "config"
    config.write_text(CONFIG)
    done = CliRunner().invoke(main, [words[0], "--kubeconfig", str(config), *words[1:]])
    return done.exit_code, done.output


@pytest.mark.parametrize("name", [".", "..", "50%"])
@pytest.mark.parametrize("where", NAMED)
def test_what_is_no_name_is_refused(where: str, name: str, tmp_path: Path) -> None:
    code, output = said(tmp_path, *(word.replace("NAME", name) for word in NAMED[where]))
    assert (code, output) == (
        1,
        f'Error: "{name}" is no name: it may not be "." or "..", nor contain "/" or "%"\n',
    )


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["debug", "a/b", "--", "true"], 2, "a/b cannot be debugged: give a pod, or node/NAME"),
        (["debug", "pods/../b", "--", "true"], 2, "pods/../b cannot be debugged"),
        (["why", "a/b"], 1, '"a/b" is no name'),
        (["why", "pod/a/b"], 1, '"a/b" is no name'),
        (["capture", "../b"], 1, '"../b" is no name'),
        (["cp", "a/b/c:/x", "y"], 2, "give PATH, POD:PATH or NAMESPACE/POD:PATH"),
        (["sessions", "-n", "a/b"], 1, '"a/b" is no name'),
        (["why", ""], 2, "its name is empty"),
        (["logs", "pod/"], 2, "its name is empty"),
    ],
)
def test_a_name_leads_to_no_other_path(words: list[str], code: int, why: str, tmp_path: Path) -> None:
    found, output = said(tmp_path, *words)
    assert found == code and why.lower() in output.lower(), output


def test_a_name_is_quoted() -> None:
    """Whatever may stand in an object's name in some cluster, and what only the server can refuse."""
    assert pod_path("ns", "a b?c#d:ä", "log") == "/api/v1/namespaces/ns/pods/a%20b%3Fc%23d%3A%C3%A4/log"
    assert pod_path() == "/api/v1/pods" and pod_path("ns") == "/api/v1/namespaces/ns/pods"
    with pytest.raises(WishError):
        pod_path("..", "web")
