# What a person or CI does with a checkout. Needs python3 (3.11 or later) and make; uv makes the set-up quicker.
# `make proto` and the gRPC half of `make accept` need mvn as well. Everything is installed into .venv and nowhere else.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
PYTHON_IN_VENV := $(VENV)/bin/python
# Stamps: what the locks name is installed. A changed lock or pyproject.toml installs again; without a change nothing is asked.
RUN := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
CODE := $(wildcard client server tests bench scripts)
# The tools of the development lock find each other (buf its plug-ins) on the path.
TOOLS := PATH="$(CURDIR)/$(VENV)/bin:$$PATH"
COMPILE := uv pip compile -q pyproject.toml --extra server --extra postgresql --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	$(if $(UPGRADE),--upgrade)

# Read by scripts/serve.py, so that a path with blanks arrives whole.
export IMPORT DATA PORT GRPC_PORT

.PHONY: help serve demo test check lint types imports generated breaking locks accept faults image-check proto docs lock format dev clean

help: ## Lists the targets.
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

serve: $(RUN) ## Serves the examples in the foreground; IMPORT=~/.claude serves one's own, DATA=, PORT=, GRPC_PORT= as well.
	@exec $(PYTHON_IN_VENV) -m scripts.serve

demo: $(RUN) ## Serves the examples on free ports, searches them with curl, shows the hits and who read whom, and ends.
	@$(PYTHON_IN_VENV) -m scripts.demo

test: $(DEV) ## Runs the tests; ARGS="-k word" goes to pytest.
	$(PYTHON_IN_VENV) -m pytest $(ARGS)

check: lint types imports locks generated breaking ## Runs everything that CI runs, but for `accept`.
	$(PYTHON_IN_VENV) -m pytest $(ARGS)

lint: $(DEV) ## Checks format and lint rules, of Python, proto and the Dockerfile.
	$(TOOLS) ruff format --check $(CODE)
	$(TOOLS) ruff check $(CODE)
	$(PYTHON_IN_VENV) scripts/fetch_validate_proto.py
	$(TOOLS) buf lint
	$(TOOLS) buf format --diff --exit-code proto
	$(TOOLS) hadolint Dockerfile

types: $(DEV) ## Checks types, strictly.
	$(TOOLS) mypy $(CODE)

imports: $(DEV) ## Checks that imports point one way.
	$(TOOLS) lint-imports --no-logo

locks: $(DEV) ## Checks that the locks answer pyproject.toml.
	$(PYTHON_IN_VENV) -m scripts.check_locks

generated: $(DEV) ## Checks that the generated code is what proto/ says.
	$(PYTHON_IN_VENV) scripts/fetch_validate_proto.py
	$(TOOLS) $(PYTHON_IN_VENV) -m scripts.check_generated

breaking: $(DEV) ## Checks that proto/ breaks no caller of an earlier commit.
	$(PYTHON_IN_VENV) scripts/fetch_validate_proto.py
	$(TOOLS) $(PYTHON_IN_VENV) -m scripts.check_breaking

accept: $(DEV) ## Runs the acceptance suite of ../shared against a server of its own; ARGS="--seed=7 --turns=5000".
	@$(PYTHON_IN_VENV) scripts/fetch_validate_proto.py || [ -z "$$CI" ]
	@$(PYTHON_IN_VENV) -m scripts.accept $(ARGS)

image-check: $(DEV) ## Builds the Dockerfile and runs the image; as root on Debian, with buildah and debootstrap installed.
	$(PYTHON_IN_VENV) -m scripts.image_check

faults: $(DEV) ## Runs the long form of tests/faults, hours of it; AFORESAID_KILLS=, AFORESAID_REQUESTS= bound it, AFORESAID_SEED= repeats it.
	AFORESAID_LONG=1 $(PYTHON_IN_VENV) -m pytest -rA tests/faults $(ARGS)

proto: $(DEV) ## Generates the code in client/aforesaid/agent from proto/; fetches validate.proto with mvn.
	$(PYTHON_IN_VENV) scripts/fetch_validate_proto.py
	$(TOOLS) buf format -w proto
	$(TOOLS) buf lint
	$(TOOLS) buf generate

docs: $(DEV) ## Writes the pages and tables of docs/ that are derived from the code.
	$(PYTHON_IN_VENV) -m scripts.write_docs

format: $(DEV) ## Formats the Python files and mends what ruff can.
	$(TOOLS) ruff check --fix $(CODE)
	$(TOOLS) ruff format $(CODE)

lock: ## Writes the locks from pyproject.toml, keeping the pins that still answer; UPGRADE=1 takes the newest. Needs uv.
	$(COMPILE) --group build -o requirements.lock >/dev/null
	$(COMPILE) --group dev -c requirements.lock -o requirements-dev.lock >/dev/null

dev: $(DEV) ## Installs what development needs into .venv.

clean: ## Removes .venv, what was fetched and caches; never the data in .aforesaid.
	rm -rf $(VENV) .proto-deps dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUN): requirements.lock pyproject.toml scripts/set-up.sh
	@scripts/set-up.sh requirements.lock
	@touch $@

# The development lock holds the whole of the other one.
$(DEV): requirements-dev.lock requirements.lock pyproject.toml scripts/set-up.sh
	@scripts/set-up.sh requirements-dev.lock
	@touch $(RUN) $@
