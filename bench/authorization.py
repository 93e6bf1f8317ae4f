"""A decision of RBAC, warm, with 500 roles and 500 bindings, against a look-up in a dictionary; and what one
change of a role makes the next decision cost. Run with `python bench/authorization.py`.
"""

from __future__ import annotations

from time import perf_counter

from table import Measurement, report

from podling.apiserver.authz.rbac import RbacAuthorizer
from podling.apiserver.request.request import RequestInfo, User
from podling.model.codec.json import from_data
from podling.model.types.rbac import ClusterRole, ClusterRoleBinding

COUNT, ROUNDS = 500, 100_000
USER = User("user-7", ("group-3", "system:authenticated"))
ASKED = RequestInfo("get", "", True, "", "v1", "default", "pods", "log", "web")


def role(i: int) -> ClusterRole:
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": [f"kind-{i}", "pods/log"]}
    return from_data({"metadata": {"name": f"r{i}"}, "rules": [rule]}, ClusterRole)


def cluster() -> RbacAuthorizer:
    rbac = RbacAuthorizer()
    for i in range(COUNT):
        rbac.changed(("", f"r{i}"), role(i), ClusterRole)
        subject = {"kind": "User", "name": f"user-{i % 50}"}
        ref = {"kind": "ClusterRole", "name": f"r{i}"}
        bound = {"metadata": {"name": f"b{i}"}, "roleRef": ref, "subjects": [subject]}
        rbac.changed(("", f"b{i}"), from_data(bound, ClusterRoleBinding), ClusterRoleBinding)
    return rbac


def main() -> None:
    rbac, known = cluster(), {(USER, ASKED): True}
    begin = perf_counter()
    for _ in range(ROUNDS):
        rbac.authorize(USER, ASKED)
    warm = (perf_counter() - begin) / ROUNDS * 1e6
    begin = perf_counter()
    for _ in range(ROUNDS):
        known.get((USER, ASKED))
    floor = (perf_counter() - begin) / ROUNDS * 1e6
    begin = perf_counter()
    for i in range(COUNT):
        rbac.changed(("", f"r{i}"), role(i), ClusterRole)
        rbac.authorize(USER, ASKED)
    changed = (perf_counter() - begin) / COUNT * 1e6
    goal = "≤ 10 µs"
    measurements = [
        Measurement("a decision, warm", "µs", [warm], floor, goal),
        Measurement("a change of a role, and the next decision", "µs", [changed]),
    ]
    report("authorization", measurements)


if __name__ == "__main__":
    main()
