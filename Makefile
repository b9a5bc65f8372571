# `make demo` and `make test` set up everything they need in .venv; nothing is installed by hand.
.DEFAULT_GOAL := help
.PHONY: audit mutants quality test-lowest test-newest test-posix test-macos docs numbers test-quick test-spark-oldest help install demo test test-full check format bench bench-quick completions pictures conformance compared rows changes console man build archives tag-check wheels wheels-check sbom bundle clean

# Tests start some thousand processes; without its cache each would compile every module that it imports.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# The first interpreter that is new enough; `make PYTHON=/path/to/python test` names another.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
	"$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { command -v "$$p"; break; }; done)

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP) ## Make .venv with the program, Spark and the development tools

$(STAMP): pyproject.toml hatch_build.py $(wildcard */native/*.[ch] storage/native/*/*.[ch])
	@test -n "$(PYTHON)" || { echo "make: rmqctl needs Python 3.11 or newer with the venv module;" \
		"none of python3.13, python3.12, python3.11, python3 is one (or: make PYTHON=/path/to/python)" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is older than Python 3.11" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "making $(VENV) with $(PYTHON)"; "$(PYTHON)" -m venv $(VENV); }
	@echo "installing rmqctl with Spark and the development tools into $(VENV) (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[spark,dev]'
	@touch $@

demo: $(STAMP) ## The main job from end to end: make a store, produce, consume, look
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh docs/demo.sh

# Rules that have a compiled form, too: these tests run once more without it.
PURE_TESTS := $(addprefix tests/,$(addsuffix .py,\
	$(addprefix storage/read/test_,by_time get_message by_key record_offsets) \
	$(addprefix storage/format/test_,index_file properties java_hash message) \
	storage/index/test_index_slots storage/log/test_walk \
	storage/append/test_fast_append storage/tools/fsck/test_findings \
	client/listener/test_process_queue client/listener/test_ack_collector broker/pull/test_pull))
PURE := RMQCTL_PURE=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal -p no:cacheprovider -m 'not long' $(PURE_TESTS)

# Three on two cores: tests of processes and of pauses wait for a third of their time. Their stores, three gigabytes
# at a time, lie in memory where there is a file system for that with enough room: none needs a device.
# `make test-full` has its stores on a device.
MEMORY := /dev/shm
STORES = room=$$(df -Pk $(MEMORY) 2>/dev/null | awk 'NR == 2 {print int($$4 / 1048576)}'); \
	stores=$$([ "$${room:-0}" -ge 8 ] && mktemp -d -p $(MEMORY) rmqctl-test-XXXXXX || mktemp -d); \
	trap 'rm -rf "$$stores"' EXIT
SHORT := -n 4 --dist worksteal -m 'not long' --basetemp="$$stores/s"
test: $(STAMP) ## All tests but the long ones, four at a time; some once more without compiled code
	@$(STORES); set -x; $(BIN)/python -m pytest $(SHORT)
	$(PURE)

# The reference forms of storage/platform/, on this machine; tests of a form of Linux are skipped with that reason.
test-posix: $(STAMP) ## The same tests with each form of Linux hidden, as on any other POSIX system
	@$(STORES); set -x; RMQCTL_POSIX=1 $(BIN)/python -m pytest $(SHORT)

# What runs on macOS: the rooms that store and read. The others use programs and files of Linux in their tests.
MACOS_TESTS := $(addprefix tests/,$(addprefix storage/,append configs coordination files format index log platform queue \
	read recovery tools) broker client)
test-macos: $(STAMP) ## The tests of stores, brokers and clients, as the job of macOS runs them
	$(BIN)/python -m pytest -n 3 --dist worksteal -m 'not long and not spark and not interop' $(MACOS_TESTS)

test-quick: $(STAMP) ## What a commit needs, in 90 s: no slow tests, one sample of each; ROOM=storage/queue for one
	@$(STORES); set -x; $(BIN)/python -m pytest -q -n 3 --dist worksteal --quick --basetemp="$$stores/s" tests/$(ROOM)

# The lower bound of PySpark in pyproject.toml, in an environment of its own.
OLDEST_SPARK := $(shell sed -n 's/^spark = .*pyspark>=\([0-9.]*\),.*/\1/p' pyproject.toml)
OLDEST := .venv-spark-$(OLDEST_SPARK)

$(OLDEST)/.installed: $(STAMP)
	@test -x $(OLDEST)/bin/python || "$(PYTHON)" -m venv $(OLDEST)
	@echo "installing rmqctl with PySpark $(OLDEST_SPARK) into $(OLDEST) (once)"
	@$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[spark,dev]' 'pyspark==$(OLDEST_SPARK)'
	@touch $@

test-spark-oldest: $(OLDEST)/.installed ## The tests of Spark with the oldest PySpark that pyproject.toml allows
	$(OLDEST)/bin/python -m pytest -n 2 --dist worksteal -m 'not long' tests/analytics tests/rmqctl/lag/report

# The bounds of pyproject.toml, each in an environment of its own that is made anew: with the lowest version
# of each dependency that it allows, and with the newest that the index has.
.venv-lowest/.installed: $(STAMP)
	@rm -rf .venv-lowest && "$(PYTHON)" -m venv .venv-lowest
	@$(BIN)/python -m tests.support.lower_bounds > .venv-lowest/constraints.txt
	@echo "installing the lowest dependencies into .venv-lowest (once)"
	@.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c .venv-lowest/constraints.txt -e '.[spark,dev]'
	@touch $@

test-lowest: .venv-lowest/.installed ## All tests but the long ones, with the lowest dependencies that pyproject.toml allows
	@$(STORES); set -x; .venv-lowest/bin/python -m pytest $(SHORT)

test-newest: $(STAMP) ## All tests but the long ones, with the newest dependencies that pyproject.toml allows
	@rm -rf .venv-newest && "$(PYTHON)" -m venv .venv-newest
	@.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager -e '.[spark,dev]'
	@$(STORES); set -x; .venv-newest/bin/python -m pytest $(SHORT)

test-full: $(STAMP) ## Every test: chaos, matrices and torture too
	$(BIN)/python -m pytest
	$(PURE)

# tests/mutants/modules.toml names the modules and their tests. Each mutant takes hours: a job of a night.
MUTATING := $(BIN)/python -m tests.mutants $(if $(filter all,$(MUTANTS)),--all --minutes 330)

mutants: $(STAMP) ## Wrong changes of rules that tests must find: a sample in ten minutes; MUTANTS=all, MODULE=storage/retention.py
	$(MUTATING) $(addprefix --module ,$(MODULE))

quality: $(STAMP) ## The same, and write the tables of docs/quality.md; MUTANTS=all
	$(MUTATING) --kept --write

check: $(STAMP) ## Format, lint, types, layers, docstrings, nothing stale, no unused dependency
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/checks/completions_fresh.py
	$(BIN)/python tests/checks/man_fresh.py
	$(BIN)/python tests/checks/declared_dependencies.py
	$(BIN)/python tests/checks/docstrings.py
	$(BIN)/python tests/checks/console_safe.py
	$(BIN)/python tests/checks/stale_names.py
	$(BIN)/python tests/checks/retired_words.py
	$(BIN)/python tests/checks/linux_names.py
	$(BIN)/python tests/checks/native_numbers.py
	$(BIN)/python tests/checks/conformance.py
	$(BIN)/python tests/checks/compared.py
	$(BIN)/python tests/checks/rows.py
	$(BIN)/python tests/checks/changes.py
	$(BIN)/python tests/checks/console_document.py
	$(BIN)/codespell
	$(BIN)/reuse lint --quiet || $(BIN)/reuse lint
	@if command -v actionlint > /dev/null; then set -x; actionlint; else \
		echo "actionlint is not on PATH: .github/workflows is not checked by it"; fi

audit: $(STAMP) ## Known weaknesses of the installed dependencies (asks a database on the network)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/pip-audit --skip-editable

format: $(STAMP) ## Format and sort imports
	$(BIN)/ruff check --select I --fix .
	$(BIN)/ruff format .

BENCH_STAMP := $(VENV)/.installed-bench

$(BENCH_STAMP): $(STAMP)
	@echo "installing the peers of the benchmarks into $(VENV) (once); what is not to be had is left out"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]' || true
	@touch $@

bench: $(BENCH_STAMP) ## Measure beside RocketMQ, Redis, lmdb, SQLite ...; write docs/benchmarks.md (an hour)
	$(BIN)/python -m benchmarks --document docs/benchmarks.md

bench-quick: $(BENCH_STAMP) ## The same goals with little work, in three minutes; writes nothing
	$(BIN)/python -m benchmarks --quick

completions: $(STAMP) ## Write the completion scripts of bash, zsh, fish and PowerShell
	$(BIN)/python tests/checks/completions_fresh.py --write

numbers: $(STAMP) ## Write the numbers of C that Python has, too
	$(BIN)/python tests/checks/native_numbers.py --write

man: $(STAMP) ## Write the manual pages of all commands
	$(BIN)/python tests/checks/man_fresh.py --write

pictures: $(STAMP) ## Export the README's pictures from real output, and those that tests compare
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python -m tests.support.console_pictures

DOCS_STAMP := $(VENV)/.installed-docs

$(DOCS_STAMP): $(STAMP)
	@echo "installing mkdocs-material into $(VENV) (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

docs: $(DOCS_STAMP) ## Build the site into build/site/html; a warning or a link that leads nowhere ends it
	$(BIN)/python docs/make_site.py

conformance: $(STAMP) ## Write the table of RocketMQ's mechanisms and the tests that show them
	$(BIN)/python tests/checks/conformance.py --write

compared: $(STAMP) ## Write the comparison with other tools and the tests that show our side
	$(BIN)/python tests/checks/compared.py --write

rows: $(STAMP) ## Write the table of all commands that print rows, with what terminals of three widths show
	$(BIN)/python tests/checks/rows.py --write

changes: $(STAMP) ## Write the table of all commands that change something, with what consent does
	$(BIN)/python tests/checks/changes.py --write

console: $(STAMP) ## Write the tables of screens and keys of docs/console.md
	$(BIN)/python tests/checks/console_document.py --write

build: archives ## Build into dist/: the sdist, the wheel of this platform and the pure one of all
	$(BIN)/python -m build --wheel

archives: $(STAMP) ## Build into dist/ what is good for every platform: the sdist and the pure wheel
	$(BIN)/python -m build --sdist
	RMQCTL_PURE=1 $(BIN)/python -m build --wheel

tag-check: ## Fail unless TAG is the version, and the CHANGELOG has its date
	@test "$(TAG)" = "v$(VERSION)" || { echo "make: the tag $(TAG) is not v$(VERSION)" >&2; exit 1; }
	@grep -qE '^## $(VERSION) \([0-9]{4}-[0-9]{2}-[0-9]{2}\)$$' CHANGELOG.md || \
		{ echo "make: CHANGELOG.md has no date for $(VERSION)" >&2; exit 1; }

# The rest of a release: no test needs it. What `build` and `wheels` made lies in dist/.
RELEASE_STAMP := $(VENV)/.installed-release
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' rmqctl/__init__.py)

$(RELEASE_STAMP): $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[release]'
	@touch $@

wheels: $(RELEASE_STAMP) ## The wheels of manylinux and musllinux into dist/; needs containers; ARCHS=aarch64
	$(BIN)/cibuildwheel --platform linux --archs $(or $(ARCHS),x86_64) --output-dir dist

wheels-check: $(RELEASE_STAMP) ## Each wheel in dist/ uses the stable ABI only, and says which C library it needs
	@for wheel in dist/rmqctl-*-abi3-*.whl; do \
		$(BIN)/abi3audit --strict --report "$$wheel" > /dev/null || exit 1; \
		$(BIN)/auditwheel show "$$wheel" || exit 1; done

sbom: $(RELEASE_STAMP) ## The parts of an installation as CycloneDX: build/rmqctl.cdx.json
	rm -rf build/sbom && "$(PYTHON)" -m venv --without-pip build/sbom
	$(BIN)/python -m pip --python build/sbom/bin/python install --quiet --disable-pip-version-check .
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
		-o build/rmqctl.cdx.json build/sbom/bin/python

# What to carry to a machine without a network: pip install --no-index --find-links FOLDER rmqctl
BUNDLE := dist/rmqctl-$(VERSION)-bundle

bundle: $(STAMP) ## A folder of all wheels for an installation without a network, for this Python and system
	rm -rf $(BUNDLE)
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --wheel-dir $(BUNDLE) .
	@echo "pip install --no-index --find-links $(BUNDLE) rmqctl"

clean: ## Remove what the targets made, .venv too
	rm -rf $(VENV) .venv-* dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
