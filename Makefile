PYTHON ?= python3
BIN := .venv/bin

.PHONY: env demo docs test lint unit clean

env: .venv/.installed

.venv/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("nearsim needs Python 3.11 or later, this is " + sys.version) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[fast,embedded,dev]'
	touch $@

demo: env
	$(BIN)/nearsim ingest examples/stories.jsonl --collection demo
	$(BIN)/nearsim pairs --collection demo --limit 10
	$(BIN)/nearsim clusters --collection demo --limit 10
	$(BIN)/nearsim similar story-036 --collection demo

docs: env
	$(BIN)/python -m docs.generate_sql

test: lint unit

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy nearsim_db tests benchmarks
	$(BIN)/lint-imports

unit: env
	$(BIN)/pytest -n 2 --dist loadscope

clean:
	rm -rf .venv build dist
