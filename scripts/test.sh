#!/usr/bin/env bash
# Sets this machine up and runs every check and every test; ends with status 0 only when all of them pass.
# Arguments go to pytest in place of the whole suite: scripts/test.sh tests/unit
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
scripts/setup.sh test
export PATH=$PWD/.venv/bin:$PATH
# pytest keeps the tests it has prepared as bytecode: each worker would prepare all of them again, for 8 s.
unset PYTHONDONTWRITEBYTECODE

failed=()
check() {
  local began=$SECONDS
  printf '\n==> %s\n' "$*"
  "$@" || failed+=("$*")
  printf '    (%d s)\n' $((SECONDS - began))
}
check ruff check
check ruff format --check
check mypy
check lint-imports

if [ ${#failed[@]} -gt 0 ]; then
  printf '\nfailed: %s\n' "${failed[@]}" >&2
  exit 1
fi

# Kubernetes' own programs are no part of this project; without them what is compared with them is skipped.
upstream=$PWD/../shared/upstream
if [ -z "${PODLING_UPSTREAM:-}" ] && [ -x "$upstream/unpack" ]; then
  export PODLING_UPSTREAM=$upstream
fi

if [ $# -gt 0 ]; then
  printf '\n==> pytest %s\n' "$*"
  exec pytest --durations=15 "$@"
fi

printf '\n==> pytest tests/unit, on all cores\n'
pytest -q -n auto --maxprocesses=4 --whole-tables --durations=5 tests/unit

# Three at a time on two cores: what lives with containerd waits for it, what is compared with Kubernetes for the
# servers, and what runs for a while for its own programs. The latter two need no podling of other tests.
alone=(tests/contract tests/e2e/test_{durability,init_order,schemathesis,served}.py)
alone+=(tests/peer/test_{autoscalers,job_controllers,set_controllers,volume_binding,workload_controllers}.py)
pids=() outputs=()
beside() {
  local said
  said=$(mktemp)
  pytest --durations=15 "$@" >"$said" 2>&1 &
  pids+=("$!") outputs+=("$said")
}
# A kill that finds nothing to end must not decide the status of all this.
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -f "${outputs[@]}"' EXIT
printf '\n==> pytest tests/e2e, and beside it tests/peer and %s\n' "${alone[*]}"
beside tests/peer "${alone[@]/#/--ignore=}"
beside "${alone[@]}"
status=0
pytest --durations=15 tests/e2e "${alone[@]/#/--ignore=}" || status=$?
for pid in "${pids[@]}"; do
  wait "$pid" || status=$?
done
cat "${outputs[@]}"
exit "$status"
