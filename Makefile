# Two commands matter: `make run` and `make test`. Everything else serves them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.ONESHELL:
MAKEFLAGS += --no-print-directory

.PHONY: help env lock

help:  ## Show what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-8s %s\n", $$1, $$2}' Makefile

env:  ## Make .venv from the lock files
	@python3 -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt

lock:  ## Make the lock files anew (needs uv)
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --constraint requirements/constraints.txt pyproject.toml -o requirements/run.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra dev \
	  --constraint requirements/run.txt pyproject.toml -o requirements/dev.txt
