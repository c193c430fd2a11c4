# Commands for people; README.md explains them.

PORT ?= 9000
DYNAMODB_PORT ?= 8000

# Queries with expected answers, from the tests.
FILE ?=
EVAL_FILES = $(or $(FILE),$(wildcard tests/tests/errors/interpret_error_filters/queries/*.jsonl))

# `make package` builds all functions for arm64 or x86_64, with the glibc version of Lambda.
FUNCTIONS := $(notdir $(wildcard functions/*))
# One function instead of all. Not read from the environment, where FUNCTION can mean something else.
FUNCTION =
ifneq ($(filter-out $(FUNCTIONS),$(FUNCTION)),)
$(error no function has the name $(filter-out $(FUNCTIONS),$(FUNCTION)); the functions are $(FUNCTIONS))
endif
ifneq ($(and $(FUNCTION),$(filter deploy release reproduce,$(MAKECMDGOALS))),)
$(error make $(MAKECMDGOALS) needs all functions; use FUNCTION with make package)
endif
TARGET_arm64 := aarch64-unknown-linux-gnu
TARGET_x86_64 := x86_64-unknown-linux-gnu
LAMBDA_GLIBC := 2.34

VENV := .venv
NEXTEST := 0.9.143

# The official SDKs of Sentry and OpenFeature, installed as in applications, and an OpenID provider.
PYTHON_SDKS := $(addprefix $(VENV)/,$(addsuffix /installed,flagd openfeature sentry-sdk sentry-sdk-brotli))
NODE_SDKS := $(addsuffix /node_modules/.package-lock.json,tests/sdks/node tests/sdks/browser tests/sdks/bundlers tests/sdks/openid-provider tests/console)
RUST_SDK := target/sdks/debug/raise-errors

API_REFERENCE := target/api-reference/index.html
API_REFERENCE_TOOLS := tests/api-reference/node_modules/.package-lock.json

# Separate environments, because these tools pin many of their dependencies.
CHECKOV := $(VENV)/checkov/bin/checkov
SAM := $(VENV)/sam/bin/sam
SCHEMATHESIS := $(VENV)/schemathesis/bin/schemathesis
MOTO := $(VENV)/moto/bin/moto_server
MINISTACK := $(VENV)/ministack/bin/ministack
UV := $(VENV)/uv/bin/uv
DENY := 0.20.2

ARCHITECTURE ?= arm64
CONFIG ?= default
# Purpose of the stack. Not read from the environment, where STAGE can mean something else.
STAGE = $(if $(filter default,$(CONFIG)),production,$(CONFIG))
PARAMETERS ?=
# Confirm all changes, as in CI; skip the checks of make doctor. Not read from the environment.
YES =
UNCHECKED =

export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.DEFAULT_GOAL := help
NODE_MODULES_OF_CONSOLE := console/node_modules/.package-lock.json
CONSOLE := functions/serve-console/built/index.html

.PHONY: help run demo reset console test soak versions worst fuzz check generate docs audit package reproduce release doctor deploy roll-back restore-tables releases bench bench-all costs eval tools test-tools

help: ## List these commands.
	@sed -n 's/^\([a-z-]*\):.*## /make \1	/p' $(MAKEFILE_LIST) | expand -t 16

# Without Node.js, everything except the console can be built.
CONSOLE_IF_POSSIBLE := $(if $(shell command -v npm),$(CONSOLE),no-console)

run: tools $(CONSOLE_IF_POSSIBLE) ## Start the local stack (PORT=9000, DYNAMODB_PORT=8000, LOG=json); Ctrl-C stops it.
	cargo build --workspace --bins --locked
	@target/debug/waymark-local --port $(PORT) --dynamodb-port $(DYNAMODB_PORT)

demo: ## Fill the demo project of the running stack with 30 days of a fictional shop.
	@test -f .local/env || { echo "error: the local stack was never started here; run make run" >&2; exit 1; }
	@. .local/env && dsn=$$(target/debug/waymark --local --json project list \
		| python3 -c 'import json, sys; print(next(it["dsn"] for it in json.load(sys.stdin) if it["slug"] == "demo"))') \
		&& python3 local/demo/fill.py "$$WAYMARK_BASE_URL" demo "$$(cat .local/demo-key)" "$$dsn"

reset: ## Delete the local stack's data; the next `make run` starts empty.
	rm -rf .local

# Name patterns of each area's functions.
FUNCTIONS_OF_flags := feature-flag|segment|flagd
FUNCTIONS_OF_insights := insight|pain-point
FUNCTIONS_OF_markers := event-marker
FUNCTIONS_OF_notifications := notifications|email|unsubscribe
FUNCTIONS_OF_errors := error|interpreter
FUNCTIONS_OF_people := member|invitation|api-key|session|sign-|-projects?$$|audit|caller
AREAS := $(sort $(patsubst FUNCTIONS_OF_%,%,$(filter FUNCTIONS_OF_%,$(.VARIABLES))))
# Tests of an area: its crate, its functions, its test folder and its files in the tests of all areas.
# Without end-to-end tests: each starts its own stack, and together they take longer than all others.
TESTS_OF_ALL_AREAS := responses permissions writes
OF_AREA = package($(AREA)) | package(/$(FUNCTIONS_OF_$(AREA))/) \
	| package(tests) & (binary($(AREA)) | test(/^$(AREA)::|_about_$(AREA)_/))

ifdef AREA
test: area test-tools
	cargo build --workspace --bins --locked
	cargo nextest run --workspace --locked --lib $(addprefix --test ,$(AREA) $(TESTS_OF_ALL_AREAS)) -E '$(OF_AREA)'
else
test: browser all-targets test-tools docs console contracts ## Run all checks and tests (AREA=flags: the tests of one area, without end-to-end tests).
	target/debug/xtask generate --check
	target/debug/xtask prose --all
	@$(FUZZ_IS_LOCKED)
	cargo fmt --all --check
	$(if $(LINTED_BY_BUILD),,cargo clippy $(ALL_TARGETS) -- -D warnings)
	@# Tests start cargo, which must not look for the job server of `make --jobs`.
	env -u MAKEFLAGS cargo nextest run --workspace --locked
endif

# With this wrapper of the compiler, all-targets has reported the lints, as in `.ci/run`.
LINTED_BY_BUILD = $(filter clippy-driver,$(RUSTC_WORKSPACE_WRAPPER))

# `--all-targets` would also build a test program for each library and program with `test = false`.
ALL_TARGETS := --workspace --lib --bins --tests --examples --locked

# Targets of their own, so that `make --jobs=2 test` compiles while it installs tools and checks contracts.
.PHONY: all-targets contracts
all-targets: $(CONSOLE)
	cargo build $(ALL_TARGETS)

contracts: test-tools $(CONSOLE)
	npm run --silent --prefix console check
	$(VENV)/bin/cfn-lint --include-checks I --template template.yaml
	$(VENV)/bin/python tests/contract/check_template.py
	$(VENV)/bin/python -m unittest discover --start-directory tests/contract --quiet
	$(VENV)/bin/openapi-spec-validator openapi.yaml

.PHONY: area
area:
	@test -n "$(filter $(AREA),$(AREAS))" || { echo "error: no area has the name $(AREA); the areas are $(AREAS)" >&2; exit 1; }

# The randomized tests of docs/reliability.md, in their long form, one by one.
SOAKED := test(mixed_work) | test(schemathesis) | binary(writes) | test(many_writers) | test(kills::) | test(delays::) \
	| test(seven_emails) | test(noisy_neighbour) | test(unauthenticated::) | test(partition_limits) \
	| test(response_times) | test(concurrent_clients) | test(random_histories) | package(fuzz-targets)

soak: export SOAK_SECONDS ?= 600
soak: export SCHEMATHESIS_SECONDS ?= 240
soak: export WRITES ?= 3400
soak: export CHANGES ?= 1000
soak: export TRANSITIONS ?= 10000
soak: export STORM ?= 1
soak: export DELAYS ?= 1000
soak: export SIGN_IN_PAIRS ?= 1000
soak: export NEIGHBOUR_MINUTES ?= 20
soak: export STRANGERS_SECONDS ?= 120
soak: export PARTITION_LIMITS ?= long
soak: export MUTATION_SECONDS ?= 60
soak: test-tools ## Run the long form of all randomized tests: about an hour (ONLY=mixed_work for one, SEED=7).
	cargo build --workspace --bins --locked
	cargo nextest run --workspace --locked --profile soak --no-capture -E '$(if $(ONLY),test($(ONLY)) & )($(SOAKED))'

# Builds only the binaries of the earlier release with its console, not its tests.
EARLIER_BINARIES := $(CURDIR)/target/earlier/debug
.PHONY: earlier
earlier:
	@test -n "$(EARLIER)" || { echo "error: name the release: make versions EARLIER=a-tag-or-commit" >&2; exit 1; }
	rm -rf target/earlier/source && mkdir -p target/earlier/source
	git archive $(EARLIER) | tar -x -C target/earlier/source
	$(MAKE) -C target/earlier/source console
	cargo build --manifest-path target/earlier/source/Cargo.toml --workspace --bins --locked --target-dir target/earlier

versions: earlier test-tools ## Test functions of an earlier release (EARLIER=its commit) and of this one on shared tables.
	cargo build --workspace --bins --locked
	EARLIER_BINARIES=$(EARLIER_BINARIES) cargo nextest run --workspace --locked --profile soak -E 'package(tests) and test(/(^|::)kills::/)'

# Deploys the debug binaries of `make test`.
.PHONY: test-deployment
test-deployment: console $(SAM) $(MINISTACK) $(VENV)/sentry-sdk/installed $(if $(EARLIER),earlier) ## Test the deployment in an AWS emulator, with IAM enforced: deploy, use, update, roll back (EARLIER=a commit to update from).
	cargo build --workspace --bins --locked
	$(if $(EARLIER),EARLIER_BINARIES=$(EARLIER_BINARIES)) $(dir $(MINISTACK))python tests/deployment/run.py

# Compares with Unleash and Bugsink, installed from npm and PyPI. Needs PostgreSQL 15, on Debian: apt install postgresql.
.PHONY: comparison
comparison: test-tools ## Measure Waymark, Unleash and Bugsink on this machine, for docs/comparison.md.
	$(VENV)/sentry-sdk/bin/python bench/comparison/compare.py

# Without LTO the optimized test builds in minutes. Functions with LTO take less CPU time.
worst: ## Test that the most expensive requests of each operation take at most 250 ms of CPU and 128 MB.
	cargo nextest run --workspace --locked --cargo-profile worst --test worst --no-capture

# Limits on times are those of a release build.
.PHONY: console-times
console-times: FAST = 1
console-times: console test-tools ## Test that the pages of the console settle within 500 ms, with release binaries.
	$(WITHOUT_LTO) cargo build --workspace --bins --locked --release
	RELEASE=1 cargo nextest run --workspace --locked --test end_to_end --no-capture -E 'test(console_opens_within)'

# LLVM passes that report code coverage to libFuzzer; stable Rust has them too. libFuzzer is written in
# C++ and needs g++ or clang++.
COVERAGE := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
FUZZ_TARGETS := $(notdir $(wildcard fuzz/corpus/*))
SECONDS_OF_FUZZING = $(or $(filter-out 0,$(FUZZ_SECONDS)),60)

# An explicit target keeps RUSTFLAGS away from build scripts. Findings are written to target/fuzz.
fuzz: ## Fuzz, guided by coverage (TARGET=envelopes, without it all; FUZZ_SECONDS=60 for each).
	cd fuzz && RUSTFLAGS="$(COVERAGE)" cargo build --locked --target $(HOST) --target-dir ../target/fuzz
	@for target in $(or $(TARGET),$(FUZZ_TARGETS)); do \
		mkdir -p target/fuzz/corpus/$$target target/fuzz/found; \
		echo "$$target: $(SECONDS_OF_FUZZING) s"; \
		FUZZ_TARGET=$$target target/fuzz/$(HOST)/debug/fuzz target/fuzz/corpus/$$target fuzz/corpus/$$target \
			-max_total_time=$(SECONDS_OF_FUZZING) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
			-artifact_prefix=target/fuzz/found/$$target- \
			|| exit 1; \
	done

check: ## Lint without running tests: the fast half of `make test`.
	cargo --locked xtask generate --check
	cargo --locked xtask prose
	@$(FUZZ_IS_LOCKED)
	cargo fmt --all --check
	cargo clippy $(ALL_TARGETS) -- -D warnings

# The fuzzing workspace has its own lock file, which no other check reads.
FUZZ_IS_LOCKED := cargo metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml > /dev/null \
	|| { echo "error: fuzz/Cargo.lock does not match the crates; run make generate" >&2; exit 1; }

# The lock files list the workspace's crates and their dependencies.
generate: ## Update all generated texts from openapi.yaml and functions/*/Cargo.toml.
	cargo xtask generate
	cargo update --workspace --quiet
	cd fuzz && cargo update --workspace --quiet

# The harness lists the functions that it measures. They are built without the harness, because its
# dependencies would add features to theirs.
bench: ## Measure the release binaries against a bare function, and check the targets.
bench-all: ## Like bench, with a large project, a large load, and timeseries compared with PostgreSQL 15.
bench bench-all:
	cargo build --release --locked --package bench --bin bench
	functions=$$(target/release/bench --list) \
		&& cargo build --release --locked $$(printf -- '--package %s ' $$functions) --package bench --no-default-features
	target/release/bench $(if $(filter bench-all,$@),--all)

costs: ## Compute the costs of a month in docs/operations.md.
	python3 packaging/costs.py

eval: ## Test interpret-error-filters with queries and expected answers (FILE=queries.jsonl for your own).
	cargo build --workspace --locked --example eval
	@target/debug/examples/eval $(EVAL_FILES)

audit: audit-template ## Check licenses, duplicates and advisories of dependencies, and the template's security.
	@cargo deny --version > /dev/null 2>&1 || cargo install --locked cargo-deny --version $(DENY)
	cargo deny --locked --log-level error check licenses bans sources
	@if cargo deny fetch db > /dev/null 2>&1; then cargo deny --locked check advisories; else echo "SKIPPED: the advisory database is unreachable" >&2; fi

# The part of the audit that needs no cargo-deny, which takes long to build.
.PHONY: audit-template
audit-template: $(CHECKOV)
	$(CHECKOV) --config-file .checkov.yaml

# Without LTO a build takes less than half the time, but binaries are larger and start more slowly.
FAST ?=
WITHOUT_LTO = $(if $(filter 1,$(FAST)),CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16)

# Binaries contain no local paths, so that they are the same on every machine.
CARGO_LAMBDA_BUILD = $(WITHOUT_LTO) RUSTFLAGS="--remap-path-prefix=$(CURDIR)=/waymark --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo" \
	cargo lambda build --release --locked --target $(TARGET_$(ARCHITECTURE)).$(LAMBDA_GLIBC)

package: tools $(VENV)/packaging-tools $(CONSOLE_IF_POSSIBLE) ## Build the functions for Lambda, as zips (ARCHITECTURE=arm64, FUNCTION=name for one, FAST=1 without LTO).
	@test -n "$(TARGET_$(ARCHITECTURE))" || { echo "error: ARCHITECTURE must be arm64 or x86_64, not $(ARCHITECTURE)" >&2; exit 1; }
	@! command -v rustup > /dev/null || rustup target add $(TARGET_$(ARCHITECTURE))
	$(CARGO_LAMBDA_BUILD) $(addprefix --package ,$(or $(FUNCTION),$(FUNCTIONS)))
	@$(VENV)/bin/python packaging/zip_functions.py $(ARCHITECTURE) $(FUNCTION)
	@$(VENV)/bin/python packaging/list_components.py $(TARGET_$(ARCHITECTURE)) $(or $(FUNCTION),$(FUNCTIONS))

# A clean build of the last commit in another folder, with the same tools.
REPRODUCED := target/reproduced

reproduce: package ## Build all functions a second time and compare the zips (ARCHITECTURE=arm64).
	rm -rf $(REPRODUCED)
	mkdir -p $(REPRODUCED)
	git archive HEAD | tar -x -C $(REPRODUCED)
	$(MAKE) -C $(REPRODUCED) package VENV=../../$(VENV)
	@for zip in target/package/*.zip; do cmp $$zip $(REPRODUCED)/$$zip || exit 1; done
	@echo "The zips of both builds are identical."

# The waymark command is built alone: its features must not reach the functions.
release: $(CONSOLE) ## Pack zips for both processors, template, checksums and waymark-deploy into one archive.
	rm -rf target/release-archive
	$(MAKE) add-to-release ARCHITECTURE=arm64
	$(MAKE) add-to-release ARCHITECTURE=x86_64
	@$(VENV)/bin/python packaging/release.py pack

.PHONY: add-to-release
add-to-release: package
	$(CARGO_LAMBDA_BUILD) --package waymark
	@$(VENV)/bin/python packaging/release.py add $(ARCHITECTURE)

STACK = waymark$(if $(filter-out default,$(CONFIG)),-$(CONFIG))
WITH_REGION = $(if $(AWS_REGION),AWS_DEFAULT_REGION=$(AWS_REGION))
DEPLOY = $(dir $(SAM))python packaging/deploy.py
# SAM CLI tags all resources with the stage.
OF_STACK = --stack $(STACK) --stage $(STAGE) $(PARAMETERS)

doctor: $(SAM) ## Check the account, the region and this computer before a deployment; each finding has its remedy.
	@$(DEPLOY) doctor $(OF_STACK)

deploy: $(if $(UNCHECKED),,doctor) package $(SAM) ## Build the functions and deploy them (ARCHITECTURE=arm64, YES=1 without confirmation).
	@$(DEPLOY) deploy $(OF_STACK) --unchecked --architecture $(ARCHITECTURE) $(if $(YES),--yes) \
		$(if $(REGARDLESS_OF_ALARMS),--regardless-of-alarms)

roll-back: $(SAM) ## Deploy the previous release again, without a build (TO=1795234560 for another; see make releases).
	@$(DEPLOY) roll-back $(OF_STACK) $(addprefix --to ,$(TO))

restore-tables: $(SAM) ## Restore tables to a point in time, under new names (AT=2026-11-21T04:16:00Z TABLES=errors).
	@test -n "$(AT)" -a -n "$(TABLES)" || { echo "error: name the time and the tables: make restore-tables AT=2026-11-21T04:16:00Z TABLES=errors" >&2; exit 1; }
	@$(WITH_REGION) $(dir $(SAM))python packaging/restore_tables.py $(STACK) $(AT) $(TABLES)

releases: $(SAM) ## List the releases that make roll-back can deploy.
	@$(DEPLOY) releases --stack $(STACK)

# Installs cargo-lambda from PyPI. Before 1.9.1 a function with one process returned no responses.
tools: $(VENV)/tools
$(VENV)/tools: requirements.txt
	@command -v python3 > /dev/null || { echo "error: python3 is missing; install Python 3.9 or later" >&2; exit 1; }
	@command -v cargo > /dev/null || { echo "error: cargo is missing; install Rust from https://rustup.rs" >&2; exit 1; }
	@echo "Installing cargo-lambda into $(VENV) ..."
	@test -x $(VENV)/bin/pip || python3 -m venv $(VENV) || { echo "error: python3 cannot create a virtual environment; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.txt
	@touch $@

$(VENV)/packaging-tools: packaging/requirements.txt | tools
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement packaging/requirements.txt
	@touch $@

# uv resolves each *.in file to a *.txt file with hashes, for the oldest supported Python.
PYTHON_OF_requirements := 3.9
PYTHON_OF_tests/contract/moto := 3.11
PYTHON_OF_tests/contract/requirements := 3.11
PYTHON_OF_tests/contract/schemathesis := 3.11
PYTHON_OF_tests/deployment/ministack := 3.11
REQUIREMENTS := $(basename $(wildcard *.in packaging/*.in tests/contract/*.in tests/deployment/*.in tests/sdks/python/*.in))

.PHONY: requirements $(addprefix lock-,$(REQUIREMENTS))
requirements: $(addprefix lock-,$(REQUIREMENTS)) ## Pin all Python packages and their hashes from the *.in files.
$(addprefix lock-,$(REQUIREMENTS)): lock-%: $(UV)
	$(UV) pip compile --quiet --universal --generate-hashes --no-annotate --no-header \
		--python-version $(or $(PYTHON_OF_$*),3.10) $*.in --output-file $*.txt

# Checked before the build: a test opens the API reference in Chromium.
.PHONY: browser
browser:
	@for browser in chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable; do command -v $$browser > /dev/null && exit 0; done; \
		echo "error: no Chromium is on the PATH; on Debian: apt install chromium-headless-shell" >&2; exit 1

test-tools: tools $(VENV)/test-tools $(SCHEMATHESIS) $(MOTO) $(PYTHON_SDKS) $(NODE_SDKS) $(RUST_SDK)
# uv takes 1 CPU second for these packages, pip 39: it also compiles modules that no test imports.
$(VENV)/test-tools: tests/contract/requirements.txt | tools $(UV)
	$(UV) pip install --quiet --python $(VENV)/bin/python --require-hashes --requirement $<
	@cargo nextest --version > /dev/null 2>&1 || cargo install --locked cargo-nextest --version $(NEXTEST)
	@touch $@

# Separate environments: an SDK behaves differently if other packages are installed.
$(VENV)/%/installed: tests/sdks/python/%.txt | $(UV)
	python3 -m venv --clear $(@D)
	$(UV) pip install --quiet --python $(@D)/bin/python --require-hashes --requirement $<
	@touch $@

$(CHECKOV): tests/contract/checkov.txt
$(SAM): requirements-deploy.txt
$(SCHEMATHESIS): tests/contract/schemathesis.txt
$(MOTO): tests/contract/moto.txt
$(MINISTACK): tests/deployment/ministack.txt
# Installed by uv: pip before 23.3 rejects requirements-deploy.txt, because it finds no hash for a package with extras.
$(CHECKOV) $(SAM) $(SCHEMATHESIS) $(MOTO) $(MINISTACK): | $(UV)
	python3 -m venv --clear $(patsubst %/bin/,%,$(dir $@))
	$(UV) pip install --quiet --python $(dir $@)python --require-hashes --requirement $<
	@touch $@
$(UV): packaging/uv.txt
	python3 -m venv --clear $(patsubst %/bin/,%,$(dir $@))
	$(dir $@)pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@touch $@

# The SDK reads names of files from the debug information.
$(RUST_SDK): $(addprefix tests/sdks/rust/,Cargo.toml Cargo.lock src/main.rs)
	CARGO_PROFILE_DEV_DEBUG=line-tables-only cargo build --locked --manifest-path $< --target-dir target/sdks
	@touch $@

%/node_modules/.package-lock.json: %/package.json %/package-lock.json
	@command -v npm > /dev/null || { echo "error: npm is missing; install Node.js 20 or later from https://nodejs.org" >&2; exit 1; }
	npm ci --prefix $* --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

docs: $(API_REFERENCE) ## Render openapi.yaml as one page, which the local stack serves at /docs.
$(API_REFERENCE): openapi.yaml tests/api-reference/render.mjs $(API_REFERENCE_TOOLS)
	node tests/api-reference/render.mjs openapi.yaml $@

console: $(CONSOLE) ## Build the page that serve-console serves (for development, run npx vite in console/).
$(CONSOLE): openapi.yaml $(NODE_MODULES_OF_CONSOLE) $(shell find console -path '*/node_modules' -prune -o -type f -print)
	npm run --silent --prefix console build

.PHONY: no-console
no-console:
	@echo "note: npm is missing, so the console is not built; install Node.js 20 or later from https://nodejs.org" >&2
