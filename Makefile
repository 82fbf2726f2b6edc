# One command per verb. Everything runs from the checkout; the Python environment lies in .venv, caches and state outside.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
INVENTORY ?= inventories/lab
PYTHON ?= $(firstword $(foreach python,python3.11 python3.12 python3.13,$(if $(shell $(python) -V 2>/dev/null),$(python))))
VENV := .venv
# Hundreds of Python programs start in a test run; where this is set, each would compile the project's code anew.
unexport PYTHONDONTWRITEBYTECODE
# With quotes: the checkout's path may have a space.
IN_VENV := PATH="$(CURDIR)/$(VENV)/bin:$$PATH"
ANSIBLE := $(IN_VENV) ansible-playbook

.PHONY: help env lab lab-down verify check test proof screenshots machines browser test-programs lock clean

help: ## List the verbs
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# One environment for running and testing, so that both use the same versions; pip checks every hash.
$(VENV)/.installed: requirements.txt
	$(if $(PYTHON),,$(error No Python from 3.11 to 3.13 is installed; install one with its venv package))
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	touch $@

# The code is read from the checkout: `src` is the package, `workloads` what the image of trainings has as PYTHONPATH.
$(VENV)/bin/trainyard: Makefile $(VENV)/.installed
	printf '%s\n' "$(CURDIR)/src" "$(CURDIR)/workloads" > "$$(echo $(VENV)/lib/python3*/site-packages)/trainyard.pth"
	printf '#!/bin/sh\nexec "$$(dirname "$$(readlink -f "$$0")")/python" -I -m trainyard "$$@"\n' > $@
	chmod 755 $@

$(VENV)/.test-installed: $(VENV)/bin/trainyard requirements-test.txt
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-test.txt
	touch $@

env: $(VENV)/bin/trainyard ## Make the Python environment, with the program `trainyard`

lab: env ## From this machine to a proven training: site.yml on the lab
	$(ANSIBLE) site.yml -i $(INVENTORY)

lab-down: env ## Remove everything that the lab put on this machine
	$(ANSIBLE) playbooks/lab_down.yml -i $(INVENTORY) -e 'lab_confirm={{ lab_name }}'

verify: env ## Verify the site; JSON on stdout, the program itself ends 0 pass, 1 fail, 2 cannot tell
	@$(VENV)/bin/trainyard -i $(INVENTORY) verify

check: $(VENV)/.test-installed ## Lint and unit tests, two to four minutes
	$(IN_VENV) pytest -n auto --dist loadfile -m "not slow and not lab and not browser and not proof"

# A real registry with the web server before it for the tests of pushing and pulling, and the judge of metrics; out of their packages,
# because installed these would become services of this machine.
$(VENV)/bin/docker-registry: PACKAGE := docker-registry
$(VENV)/bin/nginx: PACKAGE := nginx
$(VENV)/bin/promtool: PACKAGE := prometheus
TEST_SERVERS := $(addprefix $(VENV)/bin/,docker-registry nginx promtool)
$(TEST_SERVERS): | test-programs
	folder=$$(mktemp -d); trap "rm -r '$$folder'" EXIT; cd "$$folder"; get="apt-get -qq -o APT::Sandbox::User=root"; \
	$$get download $(PACKAGE) || { $$get update; $$get download $(PACKAGE); }; \
	dpkg-deb --extract *.deb .; install usr/*bin/$(@F) "$(CURDIR)/$@"

# Debian's browser, for tests of the console's pages and for their pictures.
browser:
	missing=; for each in chromium:chromium certutil:libnss3-tools npm:npm; do \
	command -v "$${each%:*}" > /dev/null || missing+=" $${each#*:}"; done; [[ -z $$missing ]] || { apt-get -qq update; \
	apt-get -qq install --yes --no-install-recommends fonts-liberation $$missing > /dev/null; }

test-programs: $(VENV)/.test-installed
	$(IN_VENV) ansible localhost -m ansible.builtin.include_role -a "name=bundle tasks_from=install"

test: $(VENV)/.test-installed test-programs $(TEST_SERVERS) ## The whole test suite
	$(IN_VENV) pytest -m "not proof and not browser" --durations=20 --durations-min=10

proof: $(VENV)/.test-installed test-programs browser ## What is too long for `make test`; PART=NAME for one part
	$(IN_VENV) pytest -m proof $(if $(PART),-k "[$(PART)]") tests/lab/test_proof.py

screenshots: $(VENV)/.test-installed browser ## Take the console's pictures anew; ADDRESS=, TOKEN_FILE=, AUTHORITY=
	PYTHONPATH="$(CURDIR)" $(IN_VENV) python tests/browser/screenshots.py --address "$(ADDRESS)" --token-file "$(TOKEN_FILE)" --authority "$(AUTHORITY)"

machines: ## An emulated machine joins the lab as a worker; the part of `make proof`
	$(MAKE) proof PART=machines

# An environment of its own: the locked packages are not needed to lock them, and pip-tools brings a pip.
$(VENV)/lock/.installed: requirements-lock.txt
	$(if $(PYTHON),,$(error No Python from 3.11 to 3.13 is installed; install one with its venv package))
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-lock.txt
	touch $@

# One after another: the second is bound to what the first has chosen.
lock: $(VENV)/lock/.installed ## Make requirements*.txt anew from their .in files
	for name in requirements requirements-test requirements-lock; do \
	$(VENV)/lock/bin/pip-compile --quiet --generate-hashes --allow-unsafe --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
	--strip-extras -o $$name.txt $$name.in; done

clean: ## Remove the Python environment
	rm -rf $(VENV)
