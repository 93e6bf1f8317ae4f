"""YAML loaders that keep what looks like a date as the text it is: JSON has no dates.

`PythonLoader` raises RecursionError for what nests too deeply. `CLoader` is many times as fast, but recurses
in C without a limit: whoever uses it looks at the depth of the events first.
"""

from __future__ import annotations

import yaml

_RESOLVERS = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class PythonLoader(yaml.SafeLoader):
    yaml_implicit_resolvers = _RESOLVERS


class CLoader(yaml.CSafeLoader):
    yaml_implicit_resolvers = _RESOLVERS
