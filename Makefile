# "make help" lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export PATH := $(CURDIR)/.cache/bin:$(PATH)
# What the tests compile does not depend on its folder, so packages are compiled once.
export GOFLAGS := $(GOFLAGS) -trimpath

# The longest packages come first; otherwise they would run alone at the end.
TESTS ?= ./tests ./trainer ./distributed ./kernel ./tests/... ./...
# How many tests of a package run at once, if they mostly wait.
WAITING ?= 4

# How tests are run: runner ends with make, with all that it has started, and gotestsum tells it how
# far the tests are.
define run_tests
@go build -o .cache/bin/ ./tests/runner
@GOTESTSUM_JSONFILE="$(CURDIR)/.cache/tests.json" exec .cache/bin/runner $$PPID gotestsum --format pkgname-and-test-fails -- -parallel $(WAITING)
endef

.PHONY: help build test test-all setup lint bench gpu-kit notebooks clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 10

build: ## build bin/submit
	go build -o bin/ ./cmd/submit

setup: ## install what the tests need: SLURM, MPI, a Jupyter client, GoNB
	@tests/setup.sh tests

test: setup ## run the tests, on a real SLURM cluster and in a real Jupyter client (TESTS=./pkg/... for only some)
	$(run_tests) -short -timeout 60m $(TESTS)

test-all: setup ## run these and those that take longer: race detector, installations, full-size notebooks, all seeds
	$(run_tests) -timeout 80m $(TESTS)

lint: ## run golangci-lint with gofmt, go vet and the rules of .golangci.yml, as the tests do
	@tests/setup.sh lint
	golangci-lint run

bench: ## compare with PyTorch and JAX, write bench/results
	@tests/setup.sh bench
	go run ./bench

gpu-kit: ## make bin/gpu-kit.tar.xz, which checks gonbatch on a machine with GPUs that needs no Go
	scripts/gpu-kit.sh --archive

notebooks: ## run all notebooks in full size, write docs/notebooks.md
	nice -n 19 go run ./bench/notebooks

clean: ## remove what was built, but keep .cache with its Python environments
	rm -rf bin
	go clean -testcache
