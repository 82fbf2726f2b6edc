# One target per verb. Everything runs from the checkout. The Python environment is in .venv; caches and state are outside.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
INVENTORY ?= inventories/lab
PYTHON ?= $(firstword $(foreach python,python3.11 python3.12 python3.13,$(if $(shell $(python) -V 2>/dev/null),$(python))))
VENV := .venv
# A test run starts hundreds of Python processes. With this variable set, each one would compile the project's code again.
unexport PYTHONDONTWRITEBYTECODE
# Quoted, because the checkout's path may contain a space.
IN_VENV := PATH="$(CURDIR)/$(VENV)/bin:$$PATH"
ANSIBLE := $(IN_VENV) ansible-playbook

.PHONY: help env env-test lab lab-down verify check test proof gpu-proof gpu-proof-kit screenshots machines browser test-programs lock clean

help: ## List the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# One environment for running and testing, so that both use the same versions; pip checks every hash.
$(VENV)/.installed: requirements.txt
	$(if $(PYTHON),,$(error No Python from 3.11 to 3.13 is installed; install one with its venv package))
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	touch $@

# The code is imported from the checkout: `src` holds the package, `workloads` is on PYTHONPATH in the training image.
$(VENV)/bin/trainyard: Makefile $(VENV)/.installed
	printf '%s\n' "$(CURDIR)/src" "$(CURDIR)/workloads" > "$$(echo $(VENV)/lib/python3*/site-packages)/trainyard.pth"
	printf '#!/bin/sh\nexec "$$(dirname "$$(readlink -f "$$0")")/python" -I -m trainyard "$$@"\n' > $@
	chmod 755 $@

$(VENV)/.test-installed: $(VENV)/bin/trainyard requirements-test.txt
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-test.txt
	touch $@

env: $(VENV)/bin/trainyard ## Create the Python environment with the `trainyard` program

env-test: test-programs ## Add pytest, the linters and molecule to it, and the programs that build the lab

lab: env ## Build the lab on this machine and prove a training: site.yml
	$(ANSIBLE) site.yml -i $(INVENTORY)

lab-down: env ## Remove everything the lab put on this machine
	$(ANSIBLE) playbooks/lab_down.yml -i $(INVENTORY) -e 'lab_confirm={{ lab_name }}'

verify: env ## Verify the site and print JSON; the program itself exits 0 (pass), 1 (fail) or 2 (unknown)
	@$(VENV)/bin/trainyard -i $(INVENTORY) verify

check: $(VENV)/.test-installed ## Run linters and unit tests, two to four minutes
	$(IN_VENV) pytest -n auto --dist loadfile -m "not slow and not lab and not browser and not proof"

# A real registry and its web server for the push and pull tests, and promtool to check metrics. They are extracted from their
# packages, because installing them would start services on this machine.
$(VENV)/bin/docker-registry: PACKAGE := docker-registry
$(VENV)/bin/nginx: PACKAGE := nginx
$(VENV)/bin/promtool: PACKAGE := prometheus
TEST_SERVERS := $(addprefix $(VENV)/bin/,docker-registry nginx promtool)
$(TEST_SERVERS): | test-programs
	folder=$$(mktemp -d); trap "rm -r '$$folder'" EXIT; cd "$$folder"; get="apt-get -qq -o APT::Sandbox::User=root"; \
	$$get download $(PACKAGE) || { $$get update; $$get download $(PACKAGE); }; \
	dpkg-deb --extract *.deb .; install usr/*bin/$(@F) "$(CURDIR)/$@"

# Debian's browser, for tests and screenshots of the console.
browser:
	missing=; for each in chromium:chromium certutil:libnss3-tools npm:npm; do \
	command -v "$${each%:*}" > /dev/null || missing+=" $${each#*:}"; done; [[ -z $$missing ]] || { apt-get -qq update; \
	apt-get -qq install --yes --no-install-recommends fonts-liberation $$missing > /dev/null; }

test-programs: $(VENV)/.test-installed
	$(IN_VENV) ansible localhost -m ansible.builtin.include_role -a "name=bundle tasks_from=install"

test: $(VENV)/.test-installed test-programs $(TEST_SERVERS) ## Run the whole test suite
	$(IN_VENV) pytest -m "not proof and not browser" --durations=20 --durations-min=10

proof: $(VENV)/.test-installed test-programs browser ## Run the tests too long for `make test`; PART=NAME selects one part, PART=oldest the oldest
	@$(IN_VENV) python -m tests.lab.proof_page
	part="$(PART)"; [[ $$part != oldest ]] || part=$$($(IN_VENV) python -m tests.lab.proof_page oldest); \
	$(IN_VENV) pytest -m proof $${part:+-k "[$$part]"} tests/lab/test_proof.py

screenshots: $(VENV)/.test-installed browser ## Take new console screenshots; ADDRESS=, TOKEN_FILE=, AUTHORITY=
	PYTHONPATH="$(CURDIR)" $(IN_VENV) python tests/browser/screenshots.py --address "$(ADDRESS)" --token-file "$(TOKEN_FILE)" --authority "$(AUTHORITY)"

# Everything but TensorFlow is in one archive, because a host with GPUs may have neither network nor container engine.
gpu-proof-kit: KIT ?= $(VENV)/gpu-proof-kit.tar.gz
gpu-proof-kit: env ## Pack the acceptance of a GPU host into KIT=, by default .venv/gpu-proof-kit.tar.gz
	kit=$$(realpath --canonicalize-missing "$(KIT)"); \
	$(ANSIBLE) playbooks/gpu_proof_kit.yml -e "{\"gpu_proof_kit\": \"$$kit\"}"

gpu-proof: KIT ?= $(VENV)/gpu-proof-kit.tar.gz
gpu-proof: gpu-proof-kit ## Prove the GPUs of this host; STAGE=nvml is one stage, INVENTORY= the site of the stage pods
	folder=$$(mktemp -d); trap "rm -r '$$folder'" EXIT; tar --extract --file "$(KIT)" --directory "$$folder"; \
	GPU_PROOF_PROJECT="$(CURDIR)" GPU_PROOF_INVENTORY="$(if $(filter file,$(origin INVENTORY)),,$(INVENTORY))" \
	"$$folder/gpu-proof" $(if $(STAGE),--stage "$(STAGE)") $(if $(OUTPUT),--output "$(OUTPUT)")

machines: ## Join an emulated machine to the lab as a worker (part of `make proof`)
	$(MAKE) proof PART=machines

# A separate environment: locking does not need the locked packages, and pip-tools needs its own pip.
$(VENV)/lock/.installed: requirements-lock.txt
	$(if $(PYTHON),,$(error No Python from 3.11 to 3.13 is installed; install one with its venv package))
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-lock.txt
	touch $@

# In this order: requirements-test is constrained by the versions chosen for requirements.
lock: $(VENV)/lock/.installed ## Regenerate requirements*.txt from their .in files
	for name in requirements requirements-test requirements-lock; do \
	$(VENV)/lock/bin/pip-compile --quiet --generate-hashes --allow-unsafe --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
	--strip-extras -o $$name.txt $$name.in; done

clean: ## Remove the Python environment
	rm -rf $(VENV)
