"""What the evaluation of an expression takes of the processor, and how long one may last.

python bench/expressions.py
"""

from __future__ import annotations

import time

from podling.apiserver.cel.evaluation import Cut, Program

OBJECT = {
    "metadata": {"name": "a", "labels": {"app": "web"}},
    "spec": {
        "replicas": 3,
        "containers": [{"name": str(i), "image": f"registry/{i}"} for i in range(3)],
    },
}
EXPRESSIONS = (
    "object.spec.replicas <= 5",
    "has(object.metadata.labels.app) && object.metadata.labels.app == 'web'",
    "object.spec.containers.all(c, c.image.startsWith('registry/'))",
    "quantity('1Gi').isLessThan(quantity('2Gi'))",
    "object.metadata.name.matches('^[a-z]+$')",
)
LONG = "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))"
TIMES = 5_000


def main() -> None:
    names = {"object": OBJECT}
    for expression in EXPRESSIONS:
        began = time.thread_time()
        program = Program(expression)
        compiled = time.thread_time()
        for _ in range(TIMES):
            program.evaluated(names, quick=True)
        each = (time.thread_time() - compiled) / TIMES
        print(f"{each * 1e6:8.1f} µs, compiled in {(compiled - began) * 1e6:6.0f} µs: {expression}")
    program = Program(LONG)
    began = time.thread_time()
    try:
        program.evaluated(names, quick=True)
    except Cut:
        print(f"{(time.thread_time() - began) * 1e3:8.1f} ms until one that is long leaves the loop")
    began = time.thread_time()
    told = program.evaluated(names)
    print(f"{(time.thread_time() - began) * 1e3:8.1f} ms until it ends: {told.error}")


if __name__ == "__main__":
    main()
