# The ways to run checks, tests and measurements. `make` lists them.
PATH := $(CURDIR)/.venv/bin:$(PATH)
# pytest keeps the tests it has prepared as bytecode: each worker would prepare all of them again, for 8 s.
unexport PYTHONDONTWRITEBYTECODE

help:  ## list these
	@sed -n 's/^\([a-z0-9]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

check:  ## ruff, mypy, import contracts
	ruff check
	ruff format --check
	mypy
	lint-imports

unit:  ## the unit tests, on all cores (no root)
	pytest -q -n auto --maxprocesses=4 --whole-tables tests/unit

coverage:  ## functions that no unit test enters
	coverage erase
	# Tests that measure modules and time fail under it.
	-coverage run -m pytest -q -n auto --maxprocesses=4 tests/unit
	coverage combine --quiet
	python scripts/unreached.py

e2e:  ## contract, end-to-end and peer tests (root)
	pytest tests/contract tests/e2e tests/peer

bench:  ## pods beside the raw calls to the runtime (root; the other benchmarks are in bench/ too)
	python bench/pods.py

profile:  ## where a start takes its time (root)
	python bench/start.py

.PHONY: help check unit coverage e2e bench profile
