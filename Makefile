# What contributors and CI run. `make` lists the targets.

GO      ?= go
TOOL    := $(GO) tool -modfile=tools/go.mod
BIN     := bin/rollcall
# Time that each fuzz target runs in `make fuzz`.
FUZZTIME ?= 10s
# What `make bench` runs, how long and how often, and what it compares with.
BENCH     ?= .
BENCHTIME ?= 1s
COUNT     ?= 6
BASELINE  ?= test/bench/baseline.txt
# The drivers that `make compat` runs.
SDK      ?= all

.DEFAULT_GOAL := help
.PHONY: help check build run test golden fuzz bench bench-baseline bench-e2e compat compat-config generate vuln tidy fmt vet lint arch fmt-check generate-check tidy-check

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

check: fmt-check vet lint test arch golden generate-check tidy-check ## everything that CI runs
	@echo "check: all passed"

# Without the tables of debuggers, nearly a third of the file. Stack traces and profiles
# keep their names. `make build LDFLAGS=` keeps the tables, for delve and perf.
LDFLAGS ?= -s -w

# Without the pages of gRPC's own traces, which nothing here serves: 0.1 MB of the file.
build: ## build bin/rollcall
	CGO_ENABLED=0 $(GO) build -trimpath -tags grpcnotrace -ldflags "$(LDFLAGS)" -o $(BIN) ./cmd/rollcall

run: ## run a server in this folder (ARGS="--listen 127.0.0.1:0")
	$(GO) run ./cmd/rollcall serve $(ARGS)

test: ## run all tests with the race detector (needs a C compiler)
	$(GO) test -race -timeout 20m ./...

golden: ## replay the recordings of real servers
	$(GO) test -count=1 -parallel 8 ./test/golden/...

fuzz: ## run each fuzz target for FUZZTIME
	@set -e; for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; \
	done

bench: ## run the benchmarks (BENCH, COUNT) and compare them with BASELINE
	@mkdir -p bin
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime $(BENCHTIME) -count $(COUNT) -timeout 60m ./... | tee bin/bench.txt
	@if [ -f $(BASELINE) ]; then $(TOOL) benchstat $(BASELINE) bin/bench.txt; fi

# Times are those of one machine and one hour, so the baseline has none: it keeps
# what is allocated, and what benchmarks report of themselves in bytes.
bench-baseline: bench ## run the benchmarks and make their allocations the BASELINE
	sed -E 's/[ \t]+[0-9.e+-]+ (ns\/op|MB\/s)//g' bin/bench.txt | grep -E '^(goos|goarch|pkg|Benchmark.* (B|allocs)\/)' > $(BASELINE)

bench-e2e: build ## measure bin/rollcall from outside (takes 25 minutes) and write docs/performance.md
	$(GO) run ./bench/e2e -server $(BIN) -write docs/performance.md

compat: ## drive the built binary with the official client SDKs (SDK=go-v1,java-1.4)
	$(GO) test -count=1 -v -timeout 60m -parallel 12 ./test/compat -sdk $(SDK)

compat-config: ## ten minutes of all client SDKs at once, their configuration half on
	$(GO) test -count=1 -v -timeout 60m -parallel 40 ./test/compat -sdk $(SDK) -run 'TestSDKs/each/.*/config' -config-for 10m

generate: ## write the generated files anew (docs/config.md)
	$(GO) generate ./...

vuln: ## look for known vulnerabilities (needs the internet)
	$(TOOL) govulncheck ./...

tidy: ## make go.mod and go.sum complete and minimal
	$(GO) mod tidy
	cd tools && $(GO) mod tidy

fmt: ## format the code
	$(TOOL) golangci-lint fmt

vet: ## run go vet
	$(GO) vet ./...

lint: ## run the linters of .golangci.yml
	$(TOOL) golangci-lint run

arch: ## check the import rules
	$(GO) test -count=1 ./internal/arch

# The checks below change nothing that is in order.

fmt-check:
	$(TOOL) golangci-lint fmt --diff

# Compares the tracked files before and after, so that it works with changes
# that are not committed yet.
generate-check:
	@set -e; sum() { git ls-files -z | xargs -0 sha256sum 2>/dev/null | sha256sum; }; \
	before=$$(sum); $(MAKE) --no-print-directory generate; \
	[ "$$before" = "$$(sum)" ] || { git status --short; echo "generated files were out of date: commit what 'make generate' wrote"; exit 1; }

tidy-check:
	$(GO) mod tidy -diff
