PYTHON ?= python3
BIN := .venv/bin

.PHONY: env browser demo docs test lint unit each load clean

env: .venv/.installed

.venv/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("nearsim needs Python 3.11 or later, this is " + sys.version) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[fast,embedded,report,parquet,dev]'
	touch $@

# The report is tested in a real Chromium; without one, and where none can be installed, those tests are skipped.
browser:
	command -v chromium > /dev/null || (test "$$(id -u)" = 0 && command -v apt-get > /dev/null \
		&& apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends chromium > /dev/null) \
		|| echo "no Chromium: the report's tests in a browser will be skipped"

demo: env
	$(BIN)/nearsim ingest examples/stories.jsonl --collection demo
	$(BIN)/nearsim pairs --collection demo --limit 10
	$(BIN)/nearsim clusters --collection demo --limit 10
	$(BIN)/nearsim similar story-036 --collection demo

docs: env
	$(BIN)/python -m docs.generate_sql

# What lint takes is one process's time, for which the tests leave room while their servers start and work.
test: env browser
	$(MAKE) -j2 lint unit

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy nearsim_db tests benchmarks
	$(BIN)/lint-imports

unit: env browser
	$(BIN)/pytest -n 2 --no-loadscope-reorder

# The suite runs a test that any major of PostgreSQL could do on one of them; this, on each.
each: env browser
	$(BIN)/pytest -n 2 --no-loadscope-reorder --each-major

# The suite reindexes 5,000 documents under load; this is the whole measure.
load: env
	$(BIN)/pytest tests/acceptance/test_reindex_under_load.py --documents 50000

clean:
	rm -rf .venv build dist
