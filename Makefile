# Everything runs in .venv, made on first use: a Python >= 3.11 is all a machine needs.
#   make demo    profile a small training step and print what wastes its time
#   make test    run the tests
#   make check   format, lint, SQL, types, architecture
#   make deep    run the tests that compile for minutes
#   make score   score the analyzers on the labelled programs
#   make bench   measure import speed, memory and analysis time
#   make picture TRACE=...   draw docs/analyze.svg, the picture in the README
#   make screens TRACE=...   draw docs/overview.svg, source.svg and timeline.svg, its other pictures
#   make wheel-check   build the wheel and use it in a clean environment without torch

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST_ARGS ?= -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: install demo test deep check format score bench picture screens wheel-check clean
.DEFAULT_GOAL := test

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Python >= 3.11 is needed, this is " + sys.version) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dev --editable '.[torch]'
	touch $@

demo: $(STAMP)
	$(BIN)/neuron-explorer demo

test: $(STAMP)
	$(BIN)/pytest $(PYTEST_ARGS)

deep: $(STAMP)
	$(BIN)/pytest -m deep tests

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/sqlfluff lint --disable-progress-bar --processes 2 analyzers neuron_explorer/views
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/sqlfluff fix --disable-progress-bar analyzers neuron_explorer/views

score: $(STAMP)
	$(BIN)/python tests/benchmarks/score.py $(SCORE_ARGS)

bench: $(STAMP)
	$(BIN)/pytest -m bench -s tests/benchmarks tests/analyzers/compare

picture: $(STAMP)
	$(BIN)/python docs/picture.py $(TRACE) --limit 3

screens: $(STAMP)
	$(BIN)/python docs/screens.py $(TRACE)

wheel-check: $(STAMP)
	bash .ci/wheel-check $(BIN)/python

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
