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

# Three at a time on two cores: now and then one waits, for a thread, a program or a time.
printf '\n==> pytest tests/unit, three at a time\n'
pytest -q -n 3 --whole-tables --durations=5 tests/unit

# Three files at a time on two cores, since containerd and other programs are waited for most of the time. A file
# has its process from its beginning to its end, as do the servers that its tests share.
printf '\n==> pytest tests/contract tests/e2e tests/peer, three files at a time\n'
pytest -q -n 3 --dist loadfile --no-loadscope-reorder --durations=40 tests/contract tests/e2e tests/peer
