# Commands of this repository. All of them need Go only, race and those for CUDA
# also a C compiler.

GO          ?= go
FUZZTIME    ?= 10s
BENCHTIME   ?= 1s
STATICCHECK  = honnef.co/go/tools/cmd/staticcheck@v0.7.0
MODULE       = $(shell $(GO) list -m)
GENERATED    = $(shell sed 's/\#.*//' internal/gen/generators.txt | awk '{ print $$2 }')

# Names are resolved by Go in every program, with and without cgo (CUDA, the race detector): the libraries of both
# are the same then, and are compiled once.
RESOLVERS = netgo,osusergo
export GOFLAGS := -tags=$(RESOLVERS) $(shell $(GO) env GOFLAGS)

# Tests are not vetted again for each way to build them: lint does it once, and more strictly.
NO_VET = -vet=off

# Packages with goroutines, those first whose tests take longest, and packages that reach assembly.
CONCURRENT = ./cmd/... . ./engine/... ./em/... ./kernels/cpu/tensor ./cluster/... ./dataset/... ./kernels ./kernels/cpu ./kernels/cpu/sliced ./kernels/emulator/... ./internal/atomicfile ./serve/...
ASSEMBLY   = . ./engine/... ./em/... ./kernels/cpu/... ./kernels/emulator/...

# Tests of clusters wait more than they compute, so two packages more than there are
# cores are tested at a time.
PACKAGES_AT_A_TIME := -p $(shell expr $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 2)

# Every package, those first whose tests take longest, so that no core waits for one of
# them at the end.
PACKAGES = ./cmd/pce ./kernels/cuda/tensor ./kernels/ptx/tensor ./cluster/natsbus ./run ./em ./engine ./kernels/cpu/tensor ./...

# Packages whose tests have code that checks itself under -tags invariants, in the same order. All others are the same
# with and without.
CHECKED = $(shell $(GO) list -test -f '{{if not .ForTest}}{{$$test := .ImportPath}}{{range .Deps}}{{if eq . "$(MODULE)/internal/invariants"}}{{$$test}}{{end}}{{end}}{{end}}' $(PACKAGES) | sed -n 's/\.test$$//p')

# Those whose tests check themselves under the race detector already, for UNRACED=1.
RACED = $(shell $(GO) list $(CONCURRENT))

# Packages of which tags of this module choose the files.
TAGGED = $(shell grep -lrE '^//go:build .*(noasm|invariants)' --include='*.go' --exclude-dir=gen . | xargs -n 1 dirname | sort -u)

.PHONY: build build-cuda bench-cuda test-cuda test test-short conformance race noasm invariants fuzz bench generate lint check isl

build: ## the program, as bin/pce
	CGO_ENABLED=0 $(GO) build -o bin/pce ./cmd/pce

build-cuda: ## the program with CUDA, as bin/pce-cuda; it starts without a driver too
	.ci/cuda $(GO) build -tags cuda,$(RESOLVERS) -o bin/pce-cuda ./cmd/pce

bench-cuda: ## what bench/gpu takes to a machine with a card, stripped: the program, the suite, the card's own measurements, itself
	.ci/cuda $(GO) build -tags cuda,$(RESOLVERS) -ldflags '-s -w' -o bin/pce-cuda ./cmd/pce
	.ci/cuda $(GO) test -tags cuda,$(RESOLVERS) -ldflags '-s -w' -c -o bin/cuda.test ./kernels/cuda/tensor
	.ci/cuda $(GO) build -tags cuda,$(RESOLVERS) -ldflags '-s -w' -o bin/bench-card ./bench/card
	CGO_ENABLED=0 $(GO) build -ldflags '-s -w' -o bin/bench-gpu ./bench/gpu
	tar -C bin -czf bin/bench-gpu.tgz pce-cuda cuda.test bench-card bench-gpu

test-cuda: ## vet and tests of the parts that are different with CUDA
	.ci/cuda $(GO) vet -tags cuda,$(RESOLVERS) ./kernels/cuda/... ./cmd/...
	.ci/cuda $(GO) test $(NO_VET) -tags cuda,$(RESOLVERS) -short ./kernels/cuda/...
	.ci/cuda $(GO) test $(NO_VET) -tags cuda,$(RESOLVERS) -count=1 -v -run '^TestCard$$' ./kernels/cuda

# Tests live for seconds or minutes and hold little: they, and the linker, collect garbage when the heap is five times
# what was in use, not twice, or has 2 GiB.
TESTS := test test-short conformance race noasm invariants
$(TESTS): export GOGC ?= 400
$(TESTS): export GOMEMLIMIT ?= 2GiB

test: ## every test
	$(GO) test $(NO_VET) $(PACKAGES_AT_A_TIME) $(PACKAGES)

# Files of short tests live in memory where 2 GiB of it are offered and programs may run there, because syncing
# files on a disk costs more than what is tested; the disk is for make test.
MEMORY = $(shell f=$$(mktemp /dev/shm/pce.XXXXXX 2>/dev/null) && echo : >$$f && chmod +x $$f && $$f 2>/dev/null && \
	df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 >= 2097152 { print "/dev/shm" }'; [ -z "$$f" ] || rm -f $$f)

test-short: ## what a change is most likely to break, in a minute on two cores
	TMPDIR=$${TMPDIR:-$(or $(MEMORY),/tmp)} $(GO) test $(NO_VET) $(PACKAGES_AT_A_TIME) -short $(PACKAGES)

conformance: ## the whole conformance suite of devices, and a record that it passed
	GO="$(GO)" .ci/conformance -record

# These have no goroutines, write nothing that goroutines share, and take up to twenty times as long under the race detector.
# What it checks of pointers in the innermost loops is an option of the compiler.
NO_GOROUTINES = $(foreach p,circuit/reference kernels/cpu/micro kernels/emulator/lanes,-gcflags=$(MODULE)/$(p)=-race=false)

# The detector waits before a process ends, for a second unless it is told.
race: export GORACE ?= atexit_sleep_ms=50

race: ## tests of concurrent packages under the race detector, the program checking itself
	$(GO) test $(NO_VET) $(PACKAGES_AT_A_TIME) -race -tags invariants,$(RESOLVERS) $(NO_GOROUTINES) -short $(CONCURRENT)
	$(GO) test $(NO_VET) -gcflags=-d=checkptr -short ./kernels/cpu/micro
	$(GO) test $(NO_VET) -race -tags invariants,$(RESOLVERS) $(NO_GOROUTINES) -run '^TestKill$$' ./em ./cluster/natsbus
	$(GO) test $(NO_VET) -race -tags invariants,$(RESOLVERS) $(NO_GOROUTINES) -run '^TestSchedules$$/^hclt$$' ./kernels/cuda/tensor

noasm: ## tests without assembly, as on other processors
	$(GO) test $(NO_VET) -tags noasm,$(RESOLVERS) -short $(ASSEMBLY)

invariants: ## tests with the program checking itself; UNRACED=1: those that make race leaves
	$(GO) test $(NO_VET) $(PACKAGES_AT_A_TIME) -tags invariants,$(RESOLVERS) -short $(or $(filter-out $(if $(UNRACED),$(RACED)),$(CHECKED)),$(error no test has $(MODULE)/internal/invariants))

fuzz: ## every fuzz target for FUZZTIME
	GO="$(GO)" .ci/fuzz $(FUZZTIME)

bench: ## every benchmark, ten times each, for benchstat
	$(GO) test -run '^$$' -bench . -benchtime $(BENCHTIME) -count 10 ./...

isl: ## the answers of libisl (libisl-dev) that tests of compile/reduction compare with, anew
	@mkdir -p bin
	cc -O2 compile/reduction/polyhedron/testdata/isl.c -o bin/isl -lisl
	$(GO) test -count=1 ./compile/reduction/polyhedron ./compile/reduction/schedule -run ISL -isl="$(CURDIR)/bin/isl"

generate: ## delete and rebuild generated code
	$(GO) generate ./...

lint: ## formatting, vet, staticcheck and the plan of the house
	@files=$$(gofmt -l $$(find . -name '*.go' -not -path './.git/*')); \
	 if [ -n "$$files" ]; then echo "gofmt differs, run gofmt -w on:"; echo "$$files"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags noasm,invariants,$(RESOLVERS) $(or $(TAGGED),$(error no file has tags))
	$(GO) test -count=1 ./internal/layout
	$(GO) run $(STATICCHECK) ./...

check: generate lint test ## what must hold before a commit
	@if ! git diff --quiet -- $(GENERATED); then echo "generated code changed:"; git diff --stat -- $(GENERATED); exit 1; fi
