# `make run` and `make test` set up everything they need (.venv, build/) and do nothing twice.
PYTHON ?= python3
DEV = @$(PYTHON) -B tools/dev

.PHONY: help run test check docs simulate soak bench compare peers guided build clean

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

run:  ## a small model answers four prompts at once
	$(DEV) run

test:  ## every test; SUITES=architecture,cpp,python,packaging picks some
	$(DEV) test --only "$(SUITES)"

check:  ## formatting, lint, types, import layers, documentation
	$(DEV) check

docs:  ## the documentation, in build/docs
	$(DEV) docs

simulate:  ## a million steps of seeded worlds with faults; ARGS="--first-seed 7 --steps 1" replays one
	$(DEV) simulate -- $(ARGS)

soak:  ## clients that come, read and leave for five minutes; ARGS="--seconds 60 --model FOLDER" for others
	$(DEV) soak -- $(ARGS)

bench:  ## speed, as ratios measured in one run
	$(DEV) bench -- $(ARGS)

compare:  ## six workloads on oga, or beside other engines: ARGS="CONFIG.json", ARGS="--model FOLDER --workloads W1,W4"
	$(DEV) compare -- $(ARGS)

peers:  ## other engines for `make compare`: ARGS="HF_FOLDER FOLDER"
	$(DEV) peers -- $(ARGS)

guided:  ## a small model answers in the form of 20 JSON schemas, 50 times each; every answer is checked
	$(DEV) guided -- $(ARGS)

build:  ## the library and the wheel, installed into .venv
	$(DEV) build

clean:  ## removes build/ and .venv/
	rm -rf build .venv
