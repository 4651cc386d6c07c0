VENV ?= .venv
CLIENTS_VENV ?= .venv-clients
PORT ?= 8000
HOST ?= 127.0.0.1
# Address of PyTorch's index of CPU wheels; needed only where pip finds no CPU build by itself.
TORCH_INDEX ?=
# What to serve: a model's name or a checkpoint folder; empty is the embedded voice.
MODEL ?=

BIN := $(VENV)/bin
export TORCH_INDEX

.DEFAULT_GOAL := help
.PHONY: help install demo serve say test test-fast fuzz test-clients lint format bench train-voice eval-voice doctor lock clean

help: ## Explain every target.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

install: $(VENV)/.runtime ## Make the virtual environment and install what serving needs.

$(VENV)/.runtime: pyproject.toml requirements/cpu.txt scripts/bootstrap.sh
	scripts/bootstrap.sh $(VENV)
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements/dev.txt
	scripts/bootstrap.sh $(VENV) dev
	@touch $@

demo: install ## Install, start the server with the embedded voice, and print the address of its page.
	$(BIN)/cantata serve --host $(HOST) --port $(PORT)

serve: install ## Start the server (MODEL=name-or-folder, HOST=, PORT=).
	$(BIN)/cantata serve --host $(HOST) --port $(PORT) $(if $(MODEL),--model $(MODEL))

say: install ## Speak TEXT="..." into speech.wav.
	$(BIN)/cantata say "$(TEXT)" -o speech.wav

test: $(VENV)/.dev ## Run every test: unit, stage processes on vLLM, and a real browser.
	scripts/browser-packages.sh $(BIN)/python
	$(BIN)/python -m pytest

test-fast: $(VENV)/.dev ## Run the unit tests alone (no processes, no weights, no browser).
	$(BIN)/python -m pytest -m "not integration and not e2e"

fuzz: $(VENV)/.dev ## Put five times as many made-up requests as `make test` does (minutes).
	CANTATA_FUZZ_CASES=10000 $(BIN)/python -m pytest backend/tests/unit/api/test_schema_fuzz.py \
	  --timeout=3600

test-clients: $(VENV)/.runtime $(CLIENTS_VENV)/.installed ## Run other people's clients, unmodified, against the server.
	CANTATA_PYTHON=$(BIN)/python $(CLIENTS_VENV)/bin/python -m pytest e2e/clients \
	  --confcutdir=e2e/clients -o filterwarnings=default

$(CLIENTS_VENV)/.installed: requirements/clients.txt
	python3 -m venv $(CLIENTS_VENV)
	$(CLIENTS_VENV)/bin/pip --disable-pip-version-check --quiet install --no-deps -r $<
	@touch $@

lint: $(VENV)/.dev ## Check style and types.
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(VENV)/.dev ## Format the code and fix what can be fixed.
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: install ## Measure TTFP, RTF, start-up and memory at 1 and 8 streams.
	$(BIN)/python -m benchmarks

train-voice: $(VENV)/.dev ## Train the embedded voice from Debian's synthesisers (hours; resumes).
	$(BIN)/python -m cantata_models.solo.training all

eval-voice: $(VENV)/.dev ## Measure the voice against its teachers (PUBLISH=1 updates card and docs).
	$(BIN)/python -m cantata_models.solo.training evaluate $(if $(PUBLISH),--publish)

doctor: install ## Check this machine and the installation.
	$(BIN)/cantata doctor

lock: $(VENV)/.dev ## Write the pinned requirement files from what is installed.
	$(BIN)/python requirements/lock.py

clean: ## Remove caches and what tests left behind; the virtual environment stays.
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis artifacts dist
