# Two commands matter: `make run` and `make test`.

.DEFAULT_GOAL := help
.PHONY: help env env-run env-test run test test-all test-matrix conformance bench chaos repeat shots check fmt lock chromium servers
.SUFFIXES:

PY := .venv/bin/python

# In parallel processes; a process that has finished takes tests from another. What one has compiled serves the others,
# also where the environment says that Python writes no bytecode: rewriting all asserts takes each of them 20 s.
TESTS := PYTHONDONTWRITEBYTECODE= $(PY) -m pytest -q --numprocesses auto --dist worksteal

help:
	@awk -F ' *## *' '/^[a-z-]+:.*##/ { split($$1, target, ":"); printf "  make %-11s %s\n", target[1], $$2 }' Makefile

run: env-run ## Start everything: database, web, workers; Ctrl-C stops it
	@REPRISE_DEMO=$${REPRISE_DEMO:-1} exec $(PY) manage.py studio

test: env-test chromium ## Run the first tier of the tests: what to run after every change
	@$(TESTS) --tier first $(ARGS)

test-all: env-test chromium servers ## Run all tests and list the 20 slowest: before a merge, and in CI
	@REPRISE_TEST_PROFILE=plain,shift,forgetful,duplicate,dry_run REPRISE_TEST_SAMPLE=32 $(TESTS) --durations=20 $(ARGS)

test-matrix: env-test chromium ## Run the first tier with each Python and Django found on this machine
	@sh scripts/matrix $(ARGS)

conformance: env-test ## All conformance cases, in each profile
	@REPRISE_TEST_PROFILE=plain,shift,forgetful,duplicate,dry_run $(PY) -m pytest -q tests/conformance

bench: env-test ## Compare throughput with pgbench; make bench ARGS="-w W1,W2 --runs 3"
	@$(PY) -m tests.bench $(ARGS)

chaos: env-test ## Apply load and faults for CHAOS_MINUTES=10, then judge; CHAOS_SEED=4711 repeats a run
	@$(PY) -m tests.chaos $(if $(CHAOS_SEED),--seed $(CHAOS_SEED)) --minutes $(or $(CHAOS_MINUTES),10)

repeat: env-test chromium ## Run racy tests 30 times each under load, and write repeat-report.md; ARGS="--times 5 tests/process"
	@$(PY) -m tests.repeat $(ARGS)

shots: env-test chromium ## Regenerate the screenshots of the README
	@$(PY) -m tests.shots

check: env-test ## Format, lint, types, imports, templates, settings, migrations, then the first tier of the tests
	@sh scripts/check
	@$(MAKE) --no-print-directory test

fmt: env-test ## Format code and templates
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix-only --quiet .
	@find templates studio -name '*.html' -exec .venv/bin/djade {} + || true

env: env-test ## Create .venv with everything, without running anything

env-run:
	@sh scripts/environment run

env-test:
	@sh scripts/environment dev

chromium:
	@sh scripts/chromium

servers:
	@sh scripts/servers

lock: ## Regenerate the lock files from pyproject.toml (needs uv)
	@sh scripts/lock
