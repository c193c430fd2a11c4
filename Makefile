# The few commands that a person types; README.md tells more.

PORT ?= 9000
DYNAMODB_PORT ?= 8000

MEASURED := compact-error-segments create-feature-flag delete-event-marker-collection \
	evaluate-feature-flag evaluate-feature-flags ingest-error-events interpret-error-filters \
	purge-event-markers query-error-timeseries split-insight update-email-preferences

# Queries with gold answers: those of the tests, and those of the specification where it is at hand.
SPECIFIED_QUERIES := ../shared/interpret/dev.jsonl
FILE ?=
EVAL_FILES = $(or $(FILE),$(wildcard functions/interpret-error-filters/tests/queries/*.jsonl $(SPECIFIED_QUERIES)))

# What `make package` builds: all functions for arm64 or x86_64, with glibc as old as Lambda's.
FUNCTIONS := $(notdir $(wildcard functions/*))
TARGET_arm64 := aarch64-unknown-linux-gnu
TARGET_x86_64 := x86_64-unknown-linux-gnu
LAMBDA_GLIBC := 2.34

VENV := .venv
NEXTEST := 0.9.143

# The official SDKs of Sentry and OpenFeature, as applications have them.
PYTHON_SDKS := $(addprefix $(VENV)/,$(addsuffix /installed,openfeature sentry-sdk sentry-sdk-brotli))
NODE_SDK := tests/sdks/node/node_modules/.package-lock.json

API_REFERENCE := target/api-reference/index.html
API_REFERENCE_TOOLS := tests/api-reference/node_modules/.package-lock.json

# Environments of their own, since they pin much of what they bring.
CHECKOV := $(VENV)/checkov/bin/checkov
SAM := $(VENV)/sam/bin/sam
DENY := 0.20.2

ARCHITECTURE ?= arm64
CONFIG ?= default
# What the stack is for. Not taken from the environment, where others have a STAGE too.
STAGE = $(if $(filter default,$(CONFIG)),production,$(CONFIG))
PARAMETERS ?=

export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help run reset test check docs audit package start-packaged reproduce deploy bench eval tools test-tools

help: ## Lists these commands.
	@sed -n 's/^\([a-z-]*\):.*## /make \1	/p' $(MAKEFILE_LIST) | expand -t 16

run: tools ## Starts the local stack (PORT=9000, DYNAMODB_PORT=8000); Ctrl-C stops it.
	cargo build --workspace --bins --locked
	@target/debug/waymark-local --port $(PORT) --dynamodb-port $(DYNAMODB_PORT)

reset: ## Deletes the local stack's data; the next `make run` starts afresh.
	rm -rf .local

# The part of interpret-error-filters that only its feature bedrock builds. Naming the workspace keeps
# what other features do not change.
WITH_BEDROCK := --workspace --locked --features interpret-error-filters/bedrock --test second_opinion

test: test-tools docs ## Runs every check: format, lints, template, API description, all tests.
	cargo fmt --all --check
	$(VENV)/bin/cfn-lint --include-checks I --template template.yaml
	$(VENV)/bin/python tests/contract/check_template.py
	$(VENV)/bin/openapi-spec-validator openapi.yaml
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy $(WITH_BEDROCK) -- -D warnings
	cargo nextest run $(WITH_BEDROCK)
	cargo build --workspace --all-targets --locked
	cargo nextest run --workspace --locked
	@command -v chromium chromium-browser google-chrome google-chrome-stable > /dev/null || echo "SKIPPED: no Chromium is on the PATH, so the API reference was not opened in a browser"

check: ## Lints without running anything: the fast half of `make test`.
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

# What is measured is built without the harness, whose dependencies would add features to its own.
bench: ## Measures the release binaries beside a bare function, and checks the targets.
	cargo build --release --locked $(addprefix --package ,$(MEASURED)) --package bench --no-default-features
	cargo build --release --locked --package bench --bin bench
	target/release/bench

eval: ## Asks interpret-error-filters queries with gold answers (FILE=queries.jsonl for your own).
	cargo build --release --locked --package interpret-error-filters --example eval
	@$(if $(FILE),,test -f $(SPECIFIED_QUERIES) || echo "$(SPECIFIED_QUERIES) is not there; its queries are not asked")
	@target/release/examples/eval $(EVAL_FILES)

audit: $(CHECKOV) ## Checks licences, duplicates and advisories of dependencies, and the template's security.
	@cargo deny --version > /dev/null 2>&1 || cargo install --locked cargo-deny --version $(DENY)
	cargo deny --locked --log-level error check licenses bans sources
	@if cargo deny fetch db > /dev/null 2>&1; then cargo deny --locked check advisories; else echo "SKIPPED: the database of advisories is out of reach" >&2; fi
	$(CHECKOV) --config-file .checkov.yaml

# Paths of this computer are left out of the binaries, so that they are the same wherever they are made.
package: tools $(VENV)/packaging-tools ## Builds all functions for Lambda, as zips (ARCHITECTURE=arm64).
	@test -n "$(TARGET_$(ARCHITECTURE))" || { echo "error: ARCHITECTURE is arm64 or x86_64, not $(ARCHITECTURE)" >&2; exit 1; }
	@! command -v rustup > /dev/null || rustup target add $(TARGET_$(ARCHITECTURE))
	RUSTFLAGS="--remap-path-prefix=$(CURDIR)=/waymark --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo" \
		cargo lambda build --release --locked --target $(TARGET_$(ARCHITECTURE)).$(LAMBDA_GLIBC) $(addprefix --package ,$(FUNCTIONS)) $(addprefix --features ,$(FEATURES))
	@$(VENV)/bin/python packaging/zip_functions.py $(ARCHITECTURE)

start-packaged: $(VENV)/packaging-tools ## Starts each packed function once (after make package ARCHITECTURE=x86_64).
	@$(VENV)/bin/python packaging/start_functions.py

# Elsewhere on the disk and from nothing, of what is committed; with the same tools.
REPRODUCED := target/reproduced

reproduce: package ## Builds all functions a second time, and compares their zips (ARCHITECTURE=arm64).
	rm -rf $(REPRODUCED)
	mkdir -p $(REPRODUCED)
	git archive HEAD | tar -x -C $(REPRODUCED)
	$(MAKE) -C $(REPRODUCED) package VENV=../../$(VENV)
	@$(VENV)/bin/python packaging/compare_packages.py target/package $(REPRODUCED)/target/package

# sam looks for the region in AWS_DEFAULT_REGION and in profiles, other tools in AWS_REGION first.
deploy: package $(SAM) ## Builds the functions and deploys them, as samconfig.toml says (ARCHITECTURE=arm64).
	SAM_CLI_TELEMETRY=0 $(SAM) deploy --config-env $(CONFIG) $(addprefix --region ,$(AWS_REGION)) \
		--tags application=waymark stage=$(STAGE) \
		--parameter-overrides Architecture=$(ARCHITECTURE) Stage=$(STAGE) $(PARAMETERS)

# cargo-lambda comes from PyPI, unless a version that does is on the PATH already: before 1.9.1 a
# function of one process answered nothing.
tools: $(VENV)/tools
$(VENV)/tools: requirements.txt
	@command -v python3 > /dev/null || { echo "error: python3 is missing; install Python 3.9 or later" >&2; exit 1; }
	@command -v cargo > /dev/null || { echo "error: cargo is missing; install Rust from https://rustup.rs" >&2; exit 1; }
	@echo "Installing cargo-lambda into $(VENV) ..."
	@test -x $(VENV)/bin/pip || python3 -m venv $(VENV) || { echo "error: python3 cannot make a virtual environment; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement requirements.txt
	@touch $@

$(VENV)/packaging-tools: packaging/requirements.txt | tools
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement packaging/requirements.txt
	@touch $@

test-tools: tools $(VENV)/test-tools $(PYTHON_SDKS) $(NODE_SDK)
$(VENV)/test-tools: tests/contract/requirements.txt | tools
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement tests/contract/requirements.txt
	@cargo nextest --version > /dev/null 2>&1 || cargo install --locked cargo-nextest --version $(NEXTEST)
	@touch $@

# Environments of their own: what an SDK finds beside it decides what it does.
$(VENV)/%/installed: tests/sdks/python/%.txt
	python3 -m venv --clear $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@
$(VENV)/sentry-sdk-brotli/installed: tests/sdks/python/sentry-sdk.txt

$(CHECKOV): tests/contract/checkov.txt
$(SAM): requirements-deploy.txt
$(CHECKOV) $(SAM):
	python3 -m venv --clear $(patsubst %/bin/,%,$(dir $@))
	$(dir $@)pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

%/node_modules/.package-lock.json: %/package.json %/package-lock.json
	@command -v npm > /dev/null || { echo "error: npm is missing; install Node.js 20 or later from https://nodejs.org" >&2; exit 1; }
	npm ci --prefix $* --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

docs: $(API_REFERENCE) ## Renders openapi.yaml into one page, which the local stack shows at /docs.
$(API_REFERENCE): openapi.yaml tests/api-reference/render.mjs $(API_REFERENCE_TOOLS)
	node tests/api-reference/render.mjs openapi.yaml $@
