# The targets and what they do: `make`, and `make help-all`
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check

# SAM pins its own click, pydantic and boto3: it has an environment of its own.
SAM_VERSION := 1.170.0
export SAM_CLI_TELEMETRY := 0
export AWS_DEFAULT_REGION ?= us-east-1
# Tests start a hundred processes: each would compile all modules again where this is set.
unexport PYTHONDONTWRITEBYTECODE
SAM := .venv-sam/bin/sam
# What to build for, as in samconfig.toml: make build RUNTIME=3.12 ARCHITECTURE=x86_64
RUNTIME ?= 3.13
ARCHITECTURE ?= arm64
DOCKER_DIR ?= /tmp/polynya-docker
# Each has its packages in requirements.in, and requirements.txt with hashes made of it. In
# requirements/ are those of `polynya serve` without an extra, of this environment, and of builds.
LOCKED := layers/bridge layers/columnar layers/tracing functions/rest_catalog functions/commits
UV_VERSION := 0.13.9
DUCKDB2_VERSION := 2.0.1
# What builds and reads Parquet, and parses views.
WITH_DUCKDB_2 := $(addprefix tests/unit/iceberg/,test_view_text.py test_sandbox.py \
  $(addprefix parquet/,test_generated_files.py test_delete_files.py))
OF_FUNCTIONS := tests/contract/test_events.py tests/contract/test_openapi.py tests/e2e/test_hosts.py tests/unit/aws
WHEELS := .aws-sam/wheels
ONLY_WHEELS = PIP_NO_INDEX=1 PIP_FIND_LINKS=$(CURDIR)/$(WHEELS)
# sam build asks for python3.13 on PATH; where that is a shim of pyenv, pyenv has to be told.
PYENV_RUNTIME = $(shell pyenv versions --bare 2>/dev/null | grep '^$(RUNTIME)\.' | tail -1)

help: ## what people make; make help-all: what else there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

help-all: help #: all targets
	@echo; awk -F ':.*#: ' '/^[a-z-]+:.*#: / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.ready .duckdb2/.ready ## a virtual environment with everything, the jars for Spark, as root on Debian Chromium and PgBouncer
	@$(BIN)/python -m polynya_local.clients.spark_jars
	@$(BIN)/python -m tests.pages.chromium
	@$(BIN)/python -m tests.support.servers.pgbouncer

# The marker is younger than all that it was made from.
$(VENV)/.ready: pyproject.toml $(wildcard requirements/*.txt)
	@echo "setting up $(VENV) (a minute or two) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) --require-hashes --requirement requirements/build.txt
	@# Without isolation, into which pip would fetch setuptools without a hash.
	@$(INSTALL) --no-build-isolation --require-hashes --requirement requirements/setup.txt
	@$(INSTALL) --no-build-isolation --no-deps --editable .
	@$(BIN)/pip download --quiet --disable-pip-version-check --no-deps --dest $(VENV)/sam \
	  --require-hashes --requirement requirements/sam.txt
	@$(BIN)/python -m tests.checks.runtime_interface $(VENV)/sam/*.whl
	@touch $@

# DuckDB 2.0 alone, in front of $(VENV) by PYTHONPATH: PyPI has no ducklake extension for it, and the
# tests need the one of 1.5.5 for native truth.
.duckdb2/.ready: requirements/duckdb2.txt $(VENV)/.ready
	@rm -rf .duckdb2
	@$(INSTALL) --no-deps --require-hashes --target .duckdb2 --requirement requirements/duckdb2.txt
	@touch $@

demo: setup ## make a lake, serve it, read it with Iceberg clients, compare
	@$(BIN)/polynya demo

pipeline-demo: setup #: an hour of device events through Spark into a DuckLake, verified, read by all
	@$(BIN)/python -m polynya_local.demo.pipeline $(ARGS)

write-demo: setup ## PyIceberg, Spark and DuckDB write to a DuckLake; what it has after each step
	@$(BIN)/python -m polynya_local.demo.writes $(ARGS)

serve: setup ## serve a lake of yours: make serve ARGS="--database postgresql://..."
	@$(BIN)/polynya serve $(ARGS)

# Three processes for two cores, because they wait for a fifth of the time (four take as long); each takes all tests of a lake, or of a file (tests/support/scheduler.py).
# A process that crashes is replaced, and its test runs once more: a library of C++ can end it.
PYTEST = pytest --numprocesses 3 --max-worker-restart 2 --dist loadscope --no-loadscope-reorder
# A test that hangs ends its process, with the stacks of all threads, long before CI ends.
HANGING = -o faulthandler_timeout=1200 -o faulthandler_exit_on_timeout=true

# Two cores: what needs one process runs beside the first tests.
test: ## what CI runs: the linters, and all tests that are not marked slow (12 minutes on two idle cores, after set-up)
	@$(MAKE) --no-print-directory --jobs 2 fast-tests $(if $(ARGS),lint,lambda-tests)

fast-tests: setup
	@$(BIN)/python -m $(PYTEST) $(HANGING) -m "not slow" $(ARGS)

duckdb2-tests: lint
	@PYTHONPATH=$(CURDIR)/.duckdb2 $(BIN)/python -m pytest --numprocesses 0 $(HANGING) $(WITH_DUCKDB_2)

# What the functions answer, on the Python that Lambda has, where it is installed; on GitHub it has to be.
lambda-tests: duckdb2-tests
	@if PYENV_VERSION=$(PYENV_RUNTIME) python$(RUNTIME) -c "" 2>/dev/null; \
	then $(MAKE) --no-print-directory tests-of-functions; \
	else echo "python$(RUNTIME), which Lambda has, is not installed: the functions ran on $$($(BIN)/python --version) alone"; test -z "$$GITHUB_ACTIONS"; fi

tests-of-functions: .venv-lambda/.ready
	@PYTHONPATH=layers/bridge:local:pipeline .venv-lambda/bin/python -m pytest -p no:cacheprovider $(HANGING) $(OF_FUNCTIONS)

test-slow: setup #: the tests that `make test` leaves out (more than three hours)
	@$(BIN)/python -m $(PYTEST) -m slow $(ARGS)

test-all: test test-slow #: all tests and checks that need no root (more than six hours)
	@$(MAKE) histories HISTORIES=20
	@$(MAKE) mixed-histories HISTORIES=20
	@$(MAKE) soak
	@$(MAKE) demo
	@$(MAKE) pipeline-demo
	@$(MAKE) write-demo
	@$(MAKE) catalog-tests
	@$(MAKE) package
	@$(MAKE) build
	@$(MAKE) deployed
	@$(MAKE) check-template
	@$(MAKE) matrix

coverage: setup #: which lines no test runs, processes that tests start included: htmlcov/index.html
	@$(BIN)/pip install --quiet --disable-pip-version-check "coverage>=7.10,<8"
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m $(PYTEST) -m "not slow" $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage html --quiet
	@$(BIN)/coverage report --skip-covered --sort=miss

soak: setup #: eight ingest jobs and two DuckDBs on one lake, 2,400 files (ten minutes)
	@POLYNYA_SOAK=1 $(BIN)/python -m pytest tests/pipeline/test_exactly_once.py -k side_by_side --durations=1

histories: setup #: random histories all night: make histories HISTORIES=100 FIRST=1000
	@POLYNYA_HISTORIES=$(or $(HISTORIES),100) POLYNYA_FIRST_HISTORY=$(or $(FIRST),1) \
	  $(BIN)/python -m pytest tests/differential/test_random_histories.py $(ARGS)

mixed-histories: setup #: random histories of native and Iceberg writers: make mixed-histories HISTORIES=100 FIRST=1000
	@POLYNYA_MIXED_HISTORIES=$(or $(HISTORIES),100) POLYNYA_FIRST_HISTORY=$(or $(FIRST),1) \
	  $(BIN)/python -m pytest tests/e2e/writes/histories/test_mixed_histories.py $(ARGS)

changed-values: setup #: wrong values in the catalogs of all lakes all night: make changed-values CHANGES=200 FIRST=7
	@POLYNYA_CHANGES=$(or $(CHANGES),200) POLYNYA_FIRST_CHANGE=$(or $(FIRST),1) \
	  $(BIN)/python -m pytest tests/differential/test_changed_values.py -k "all_lakes or commit" -s $(ARGS)

metadata: setup #: what Spark shows of the metadata of all lakes (ten minutes)
	@$(BIN)/python -m pytest tests/differential/metadata/test_metadata_in_spark.py $(ARGS)

catalog-tests: setup #: Iceberg's own tests of catalogs that write; Java 17 and Maven (five minutes)
	@$(BIN)/python -m tests.catalog_tests.run $(ARGS)

pyiceberg-suite: setup #: PyIceberg's tests of catalogs, from the clone PYICEBERG_TESTS
	@PYICEBERG_TESTS=$(PYICEBERG_TESTS) $(BIN)/python -m tests.catalog_tests.pyiceberg_suite $(ARGS)

pyiceberg-integration: setup #: PyIceberg's tests with Spark, from the clone PYICEBERG_TESTS
	@PYICEBERG_TESTS=$(PYICEBERG_TESTS) $(BIN)/python -m tests.catalog_tests.pyiceberg_suite integration $(ARGS)

duckdb-suite: setup #: the catalog tests of DuckDB's iceberg extension, from the clone DUCKDB_ICEBERG
	@DUCKDB_ICEBERG=$(DUCKDB_ICEBERG) $(BIN)/python -m tests.catalog_tests.duckdb_suite $(ARGS)

docs: setup ## docs/clients/ and docs/reference/, from the code and docs/generator/
	@$(BIN)/python -m docs.generator.clients
	@$(BIN)/python -m docs.generator.reference

docs-examples: setup #: the same, with new examples of the page's JSON from a real lake
	@$(BIN)/python -m docs.generator.examples

lint: setup ## ruff and mypy
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy

bench: setup ## what things cost, as ratios in one run
	@$(BIN)/pip install --quiet --disable-pip-version-check --requirement bench/requirements.txt
	@$(BIN)/python -m bench $(ARGS)

matrix: setup .venv-matrix/.ready #: what each of eight clients reads, written into tests/matrix/results.md (two hours)
	@$(BIN)/python -m tests.matrix.run .venv-matrix/bin/python --write $(ARGS)

trino: setup #: Trino writes, then reads all test lakes; Java and Maven, 540 MB (an hour)
	@$(INSTALL) --requirement tests/engines/trino/requirements.txt
	@$(BIN)/python -m tests.engines.trino.archives
	@$(BIN)/python -m pytest tests/engines/trino/writes.py tests/engines/trino/nested.py tests/engines/trino/snippets.py
	@$(BIN)/python -m tests.engines.trino.reads $(ARGS)

flink: setup #: Flink reads all test lakes and appends; Java 17 and Maven, 270 MB (an hour)
	@$(BIN)/python -m tests.engines.flink.session
	@$(BIN)/python -m pytest tests/engines/flink/smoke.py tests/engines/flink/snippets.py
	@$(BIN)/python -m tests.engines.flink.reads $(ARGS)

flink-changelog: setup #: Flink upserts a changelog while all is killed: POLYNYA_CHANGELOG_SECONDS=600 (a minute for each sink)
	@$(BIN)/python -m tests.engines.flink.session
	@$(BIN)/python -m pytest -s tests/engines/flink/changelog.py tests/engines/flink/bounded.py $(ARGS)

kafka-connect: setup #: Iceberg's sink of Kafka Connect while all is killed; Java 17 and Maven, POLYNYA_KILLS=10 (three minutes)
	@$(BIN)/python -m pytest -s tests/engines/kafka_connect/sink.py $(ARGS)

sling: setup #: Sling loads files; 200 MB (two minutes)
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --upgrade --target .cache/engines/sling sling-linux-amd64==1.4.11
	@$(BIN)/python -m pytest tests/engines/sling/smoke.py $(ARGS)

# The newest that Go's proxy had on 2026-11-29.
MINIO_VERSION := v0.0.0-20260212201848-7aac2a2c5b7c
minio: #: MinIO, for the tests of --sts-role; Go, two GB of modules (long)
	@GOBIN=$(CURDIR)/.cache/minio go install github.com/minio/minio@$(MINIO_VERSION)

iceberg-go: setup #: iceberg-go writes; Go 1.25, 2 GB of modules (ten minutes)
	@$(BIN)/python -m pytest tests/engines/go/smoke.py $(ARGS)

# Programs that load tables, each with packages of its own.
.cache/engines/%/.ready: tests/engines/programs/%.txt
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

killed-programs: setup .cache/engines/dlt/.ready .cache/engines/chdb/.ready #: dlt, iceberg-go, Sling and ClickHouse write while the server is killed; Go 1.25, Java 17, 3 GB (half an hour)
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --upgrade --target .cache/engines/sling sling-linux-amd64==1.4.11
	@$(BIN)/python -m pytest -s tests/engines/programs/killed.py tests/engines/programs/clickhouse.py $(ARGS)

# Those clients want other versions of pyarrow: they have an environment of their own.
.venv-matrix/.ready: tests/matrix/requirements.txt
	@$(PYTHON) -m venv .venv-matrix
	@.venv-matrix/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

screenshots: setup #: pictures of the page for docs/; Chromium
	@$(BIN)/python -m tests.pages.screenshots

build: .venv-sam/.ready ## the layers and functions for AWS, with SAM, and a check of the template
	@$(SAM) validate --lint
	@PYENV_VERSION=$(PYENV_RUNTIME) python$(RUNTIME) -m local.build.package --wheels \
	  --architecture $(ARCHITECTURE) --out $(WHEELS)
	@PYENV_VERSION=$(PYENV_RUNTIME) $(ONLY_WHEELS) $(SAM) build \
	  --parameter-overrides PythonRuntime=python$(RUNTIME) Architecture=$(ARCHITECTURE)
	@# Without .pyc files each cold start compiles; by hash, for a zip keeps no exact times.
	@PYENV_VERSION=$(PYENV_RUNTIME) python$(RUNTIME) -m compileall -q \
	  --invalidation-mode unchecked-hash .aws-sam/build
	@$(PYTHON) -m tests.checks.built .aws-sam/build

COMPILE = .venv-build/bin/uv pip compile --quiet --refresh-package polynya --universal --generate-hashes --no-annotate \
  --custom-compile-command "make lock" --constraint constraints.txt

lock: .venv-build/.ready #: the packages of each layer and of this environment, with hashes, as constraints.txt has them
	@for folder in $(LOCKED); do $(COMPILE) --python-version 3.12 $$folder/requirements.in \
	  --output-file $$folder/requirements.txt || exit 1; done
	@$(COMPILE) --python-version 3.11 requirements/build.in --output-file requirements/build.txt
	@$(COMPILE) --python-version 3.11 pyproject.toml --output-file requirements/serve.txt
	@$(COMPILE) --python-version 3.11 --all-extras pyproject.toml --output-file requirements/setup.txt
	@$(COMPILE) --python-version 3.12 requirements/lambda.in --output-file requirements/lambda.txt
	@echo aws-sam-cli==$(SAM_VERSION) | $(COMPILE) --no-deps - --output-file requirements/sam.txt
	@echo duckdb==$(DUCKDB2_VERSION) | $(filter-out --constraint constraints.txt,$(COMPILE)) \
	  --no-deps - --output-file requirements/duckdb2.txt

wheel: .venv-build/.ready #: the wheel, and the lock that the Dockerfile needs beside it: dist/
	@rm -rf dist
	@.venv-build/bin/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	  --wheel-dir dist .
	@cp requirements/serve.txt dist/

# `sam package` would put the code into one bucket of one region; this deploys to all.
TEMPLATE_ARCHIVE := polynya-template-$(ARCHITECTURE)
packaged-template: build #: what `make build` made, as one file for `sam deploy`: dist/polynya-template-….tar.gz
	@mkdir -p dist
	@tar --create --gzip --file dist/$(TEMPLATE_ARCHIVE).tar.gz --sort=name --owner=0 --group=0 --numeric-owner \
	  --mtime="$$(git log -1 --format=%cI)" --transform 's,^\.,$(TEMPLATE_ARCHIVE),' --directory .aws-sam/build .

release: #: check the changelog and the version, and tag this commit; make release PUSH=origin also pushes the tag
	@$(PYTHON) -m local.build.release $(if $(PUSH),--push $(PUSH))

publish-wheel: .venv-build/.ready #: only in .github/workflows/release.yml, as a trusted publisher
	@.venv-build/bin/uv publish --trusted-publishing always dist/*.whl

package: setup #: what the pipeline's jobs need on EMR Serverless and Glue: .aws-sam/pipeline
	@PYENV_VERSION=$(PYENV_RUNTIME) python$(RUNTIME) -m local.build.package \
	  --architecture $(ARCHITECTURE) --out .aws-sam/pipeline $(ARGS)
	@$(BIN)/python -m tests.checks.packaged .aws-sam/pipeline $(ARCHITECTURE)

deployed: setup .venv-sam/.ready .venv-ministack/.ready #: sam deploy to an emulator of AWS; read, and with Writes=yes write (five minutes)
	@PYENV_VERSION=$(PYENV_RUNTIME) python3.13 -m local.build.package --wheels \
	  --architecture x86_64 --out $(WHEELS)
	@PYENV_VERSION=$(PYENV_RUNTIME) $(ONLY_WHEELS) $(SAM) build --cached \
	  --build-dir .aws-sam/local --parameter-overrides PythonRuntime=python3.13 Architecture=x86_64 >/dev/null
	@$(BIN)/python -m tests.checks.deployed

sam-local: setup .venv-sam/.ready #: sam local invoke with every sample event, in containers (as root on Debian; ten minutes)
	@PYENV_VERSION=$(PYENV_RUNTIME) python3.13 -m local.build.package --wheels \
	  --architecture x86_64 --out $(WHEELS)
	@PYENV_VERSION=$(PYENV_RUNTIME) $(ONLY_WHEELS) $(SAM) build --cached \
	  --build-dir .aws-sam/local --parameter-overrides PythonRuntime=python3.13 Architecture=x86_64 >/dev/null
	@SUITE=trixie PYVER=3.13 tests/checks/sam-local-docker.sh start -d $(DOCKER_DIR) -v $(CURDIR)/.venv-sam
	@trap 'tests/checks/sam-local-docker.sh stop -d $(DOCKER_DIR); rm -rf $(DOCKER_DIR)' EXIT; \
	  eval "$$(tests/checks/sam-local-docker.sh env -d $(DOCKER_DIR))"; \
	  $(BIN)/python -m pytest tests/contract/test_events.py tests/contract/test_commit_events.py -k in_containers -v

check-template: #: checkov over the template; .checkov.yaml says what is left out and why
	@# It pins other versions of boto3 and click than SAM and our packages.
	@$(PYTHON) -m venv .venv-checkov
	@.venv-checkov/bin/pip install --quiet --disable-pip-version-check checkov==3.3.30
	@.venv-checkov/bin/checkov --config-file .checkov.yaml

# Its functions run in its own Python, the runtime's, where a package that a layer lacks must not be found.
.venv-ministack/.ready:
	@PYENV_VERSION=$(PYENV_RUNTIME) python3.13 -m venv .venv-ministack
	@.venv-ministack/bin/pip install --quiet --disable-pip-version-check \
	  ministack==1.5.33 aws-sam-translator cryptography boto3 snapshot-restore-py==1.0.0
	@touch $@

# What builds the wheel, and uv; without the packages of $(VENV), which a release does not need.
.venv-build/.ready: requirements/build.txt
	@$(PYTHON) -m venv .venv-build
	@.venv-build/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@.venv-build/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

# The functions' packages alone, on the Python of Lambda.
.venv-lambda/.ready: requirements/lambda.txt
	@PYENV_VERSION=$(PYENV_RUNTIME) python$(RUNTIME) -m venv .venv-lambda
	@.venv-lambda/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@touch $@

.venv-sam/.ready:
	@$(PYTHON) -m venv .venv-sam
	@.venv-sam/bin/pip install --quiet --disable-pip-version-check aws-sam-cli==$(SAM_VERSION)
	@touch $@

clean: ## remove what the targets above made
	@rm -rf .venv .duckdb2 .venv-lambda .venv-matrix .venv-build .venv-sam .venv-ministack .venv-checkov .aws-sam .cache dist

.PHONY: help help-all docs docs-examples setup demo pipeline-demo write-demo serve test fast-tests duckdb2-tests lambda-tests tests-of-functions test-slow test-all coverage soak histories mixed-histories changed-values metadata catalog-tests pyiceberg-suite pyiceberg-integration duckdb-suite lint bench screenshots matrix trino flink flink-changelog kafka-connect sling iceberg-go killed-programs minio build lock wheel packaged-template release publish-wheel package deployed sam-local check-template clean
