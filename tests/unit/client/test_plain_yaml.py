"""The YAML of kubeconfigs, beside PyYAML."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from podling.client import kubeconfig, plain_yaml

KUBECTLS = """\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==
    server: https://127.0.0.1:6443
  name: arn:aws:eks:eu-west-1:000000000000:cluster/blue
contexts:
- context:
    cluster: arn:aws:eks:eu-west-1:000000000000:cluster/blue
    namespace: shop
    user: me@blue
  name: blue
current-context: blue
kind: Config
preferences: {}
users:
- name: me@blue
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      args:
      - --region
      - eu-west-1
      command: aws
      env: null
      interactiveMode: IfAvailable
      provideClusterInfo: false
"""

SAFE = string.ascii_letters + string.digits + " .:/-_=#\"'{}[],&*!|>%@`~?\\"
scalars = st.none() | st.booleans() | st.text(SAFE, max_size=12) | st.sampled_from(["", "yes", "On", "NULL"])
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(SAFE, max_size=8), inner, max_size=3),
    max_leaves=12,
)
lines = st.lists(
    st.tuples(
        st.integers(0, 3), st.sampled_from(["", "- ", "-", "# "]), st.text("ab:/ -'\"n~{}[]#", max_size=6)
    ),
    max_size=6,
).map(lambda made: "\n".join(" " * indent + dash + rest for indent, dash, rest in made))


def pyyaml(text: str) -> Any:
    return yaml.load(text, yaml.SafeLoader)


@pytest.mark.parametrize(
    "text",
    [
        KUBECTLS,
        "---\n# mine\na: b\n\n  # and\nc: 'd: e'\n",
        "a:\nb:\n- c\n- d: e\n  f:\n  - g\n",
        'a: ""\nb: \nc: "x # y"\nd: []',
    ],
    ids=["of kubectl", "with comments", "lists at the same column", "empty"],
)
def test_it_is_read_as_pyyaml_reads_it(text: str) -> None:
    found = plain_yaml.read(text)
    assert found is not None
    assert found == pyyaml(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# a",
        "a",
        "a: 1",
        "a: 0x10",
        "a: yes",
        "on: a",
        "a: ~",
        "a: b c",
        "a: b # c",
        "a: b\n  c",
        "a: |\n  b",
        "a: &x b",
        "a: {b: c}",
        "a: b\na: c",
        "a: b\n c: d",
        "- - a",
        "-\n  a: b",
        "a: é",
        'a: "\\n"',
        "a:\tb",
        "a: b\r\n",
        "a: b\n---\nc: d",
        "".join(f"{' ' * depth}a:\n" for depth in range(5000)),
    ],
)
def test_more_than_that_is_left_to_pyyaml(text: str) -> None:
    assert plain_yaml.read(text) is None


@given(documents, st.booleans())
def test_whatever_is_written_is_read_as_pyyaml_reads_it_or_not_at_all(
    document: Any, is_indented: bool
) -> None:
    text = yaml.safe_dump(document, sort_keys=False, default_flow_style=False if is_indented else None)
    found = plain_yaml.read(text)
    assert found is None or found == document


@given(lines)
def test_whatever_stands_in_lines_is_read_as_pyyaml_reads_it_or_not_at_all(text: str) -> None:
    found = plain_yaml.read(text)
    if found is not None:
        assert found == pyyaml(text)


def test_the_kubeconfig_of_podling_is_read(tmp_path: Path) -> None:
    file = tmp_path / "admin.conf"
    pem = b"-----BEGIN CERTIFICATE-----\n" + b"M" * 800
    kubeconfig.write(
        file,
        "podling",
        "https://127.0.0.1:6443",
        certificate_authority=pem,
        client_certificate=pem,
        client_key=pem,
    )
    assert plain_yaml.read(file.read_text()) == pyyaml(file.read_text())
