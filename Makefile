# The ways to run checks, tests and measurements. `make` lists them.
PATH := $(CURDIR)/.venv/bin:$(PATH)

help:  ## list these
	@sed -n 's/^\([a-z0-9]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

check:  ## ruff, mypy, import contracts
	ruff check
	ruff format --check
	mypy
	lint-imports

unit:  ## the unit tests, on all cores (no root)
	pytest -q -n auto --maxprocesses=4 tests/unit

e2e:  ## contract, end-to-end and peer tests (root)
	pytest tests/contract tests/e2e tests/peer

bench:  ## pods beside the raw calls to the runtime (root; the other benchmarks are in bench/ too)
	python bench/pods.py

profile:  ## where a start takes its time (root)
	python bench/start.py

.PHONY: help check unit e2e bench profile
