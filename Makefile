# Everything a developer or CI runs. Needs Python 3.11 or newer (with venv) and make, nothing else.
# `make` alone lists the targets.

PYTHON ?= python3
VENV ?= .venv
SLOW_VENV ?= .venv-slow
BIN := $(VENV)/bin
RUN := .demo/make

# The tests start many processes of one program: its modules are compiled once, whatever the machine's setting.
unexport PYTHONDONTWRITEBYTECODE

# Nothing here asks a model hub, a price list or a telemetry service; two threads a library suffice.
OFFLINE := HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1 LITELLM_LOCAL_MODEL_COST_MAP=True OMP_NUM_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help venv demo test check slow demo-llm serve-llm lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(VENV)/made ## make or renew the environment in .venv (locked versions, project editable)

# Made anew only when what it is made from has changed.
$(VENV)/made: pyproject.toml requirements-ci.txt .ci/make-venv
	bash .ci/make-venv "$(PYTHON)" "$(VENV)"

demo: venv ## two evaluations on the bundled data: a baseline, and the reference as the upper anchor
	rm -rf $(RUN)
	$(OFFLINE) $(BIN)/awb run --model baseline/copy-last --data mini --output $(RUN)/copy-last
	$(OFFLINE) $(BIN)/awb run --model baseline/reference --data mini --output $(RUN)/reference
	@echo
	@echo "Next: . $(BIN)/activate    then: awb run --model openai-api/NAME --base-url http://127.0.0.1:8000/v1"

test: venv ## tests: pure Python, loopback only, no root
	$(OFFLINE) $(BIN)/python -m pytest -n 2 --dist loadfile

check: venv ## lint, format, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	$(BIN)/lint-imports

slow: $(SLOW_VENV)/made ## slow tests: a real model server (installed into .demo), engines in the process (torch), long simulations
	$(OFFLINE) $(SLOW_VENV)/bin/python -m pytest -m "slow or browser"

# The same versions, with torch, transformers and lm-eval: the other tests show that nothing needs them unasked.
$(SLOW_VENV)/made: pyproject.toml requirements-hf.txt .ci/torch.txt .ci/make-venv
	bash .ci/make-venv "$(PYTHON)" "$(SLOW_VENV)" requirements-hf.txt

demo-llm: venv ## a small language model predicts and judges over the bundled data (Linux x86_64)
	$(BIN)/python tools/demo_llm.py

serve-llm: venv ## that model alone, at http://127.0.0.1:8000/v1 until Ctrl-C: something to try `awb` on
	$(BIN)/python tools/demo_llm.py --serve

lock: venv ## renew the three locks (requirements-*.txt, .ci/readers.txt) within the bounds of pyproject.toml
	bash .ci/lock "$(BIN)"

clean: ## remove the environment, demo runs and caches
	rm -rf "$(VENV)" "$(SLOW_VENV)" .demo .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
