# The targets need only Go, git and make; they fetch or build everything else.
GO_NEEDED := $(shell sed -n 's/^go //p' go.mod)
GO_FROM := Go $(GO_NEEDED) or newer from https://go.dev/dl/ and put its bin first in PATH (README.md, Install)
# Git refuses a clone that another user owns, and then go build fails; make runs the clone's own commands in any case. With a
# git that is too old for this option, or without git, the programs have no commit in them.
GIT := git -c safe.directory='$(CURDIR)'
ifeq ($(shell git status --porcelain >/dev/null 2>&1 && echo yes),)
ifneq ($(shell $(GIT) status --porcelain >/dev/null 2>&1 && echo yes),)
export GIT_CONFIG_COUNT := 1
export GIT_CONFIG_KEY_0 := safe.directory
export GIT_CONFIG_VALUE_0 := $(CURDIR)
else
export GOFLAGS := $(shell go env GOFLAGS 2>/dev/null) -buildvcs=false
endif
endif
VERSION ?= $(shell $(GIT) describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/corpus-agent/corpus-agent/cmd/cli.Version=$(VERSION)
LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
RELEASER := github.com/goreleaser/goreleaser/v2@v2.16.0
HUGO ?= $(or $(shell command -v hugo),go run github.com/gohugoio/hugo@v0.165.0)
export CGO_ENABLED ?= 0

# The packages that start goroutines; cmd/race_test.go compares the list with the code.
RACE := ./agent/delivery ./agent/fetch ./agent/fleet ./agent/fleet/pages ./agent/guests ./agent/health ./agent/journal ./agent/lock ./agent/members ./agent/rollout ./agent/watchdog ./artifact ./artifact/chunk ./artifact/process ./artifact/publish/blobs ./artifact/store/wire \
	./artifact/manifest ./artifact/publish/collect ./artifact/publish/recovery ./artifact/publish/refresh ./artifact/store ./artifact/trust ./artifact/unpack ./cmd/cli ./grains/custom \
	./packaging/oci ./state/ahead ./state/exec ./state/host ./state/host/dialog ./state/host/terminal ./state/host/units ./state/module/archive

.PHONY: help go build test race demo integration fleet hosts attack bench bench-fetch bench-delta bench-undo bench-peers bench-boot bench-growth lint fuzz generate generated snapshot picture site
help: ## this list; what make does without a target
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | awk -F '\t' '{printf "make %-12s %s\n", $$1, $$2}'
go: ## says what is missing where the Go that is there cannot build this
	@command -v go >/dev/null || { echo "make: there is no Go here; install $(GO_FROM)" >&2; exit 1; }
	@go list -m >/dev/null 2>&1 || { echo "make: $$(go version | cut -d' ' -f3) cannot build this; install $(GO_FROM)" >&2; exit 1; }
	@command -v git >/dev/null || { echo "make: there is no git here; install it, as with: apt-get install git" >&2; exit 1; }
build: go ## both programs, into bin/
	@echo "building corpus-agent and corpus into bin/"
	@go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/corpus-agent ./cmd/corpus
test: go ## everything that needs no server and no root; no network either, once the modules are there
	go vet ./...
	go test -vet=off $(if $(SHORT),-short) -timeout 40m -parallel 8 ./agent ./cmd ./... # the longest first; they wait for disks, locks and timeouts more than they compute
race: go ## the packages that start goroutines, with the race detector; needs gcc
	CGO_ENABLED=1 go test -race -short -timeout 20m -parallel 8 -run '^Test' $(RACE) # the long ones start no more goroutines
	CGO_ENABLED=1 go test -race -timeout 20m -parallel 8 -run 'AtOnce|SameTime|OneKeys' ./artifact/publish ./artifact/publish/proofs \
		./artifact/publish/releases
demo: build ## sign, publish, deploy, upgrade, break and roll back, below demo/
	testdata/demo/run bin demo
integration: ## the stores, a whole deploy and 1,000 agents against a real MinIO server; states with real programs; services, packages and images in Debian roots to throw away
	go test -tags integration -timeout 40m ./agent/bucket ./artifact/store/... ./cmd/... ./state/module/... ./agent/fleet/pages
	go test -tags integration -timeout 25m -v -run 'Thousand|StoreDies|PacketLoss' ./agent
fleet: ## rollouts to 1,000 agents, each a process, from a real MinIO server, and 20 times to real agents in one process while they are killed and the store fails; 10,000 simulated seeds, and 100,000 simulated hosts
	CORPUS_TEST_HOSTS=1000 go test -tags integration -timeout 60m -count 1 -v -run '^TestRolloutToManyHosts$$' ./cmd
	CORPUS_TEST_HOSTS=20 CORPUS_TEST_RUNS=20 go test -timeout 60m -count 1 -v -run '^TestRolloutsOnAVirtualClock$$' ./agent
	CORPUS_SEEDS=10000 go test -timeout 20m -count 1 -v -run 'Invariants|HundredThousand' ./artifact/rollout/simulate
hosts: build snapshot ## the packages, on real systemd hosts; needs root
	go test -tags hosts -timeout 60m -count 1 -v ./packaging/hosttest/...
attack: ## a local user's programs against everything the agent does as root, in hosts to throw away; needs root, and half an hour of two cores
	go test -tags attack -timeout 60m -count 1 -v ./agent/attack
bench: ## benchmarks
	go test -run '^$$' -bench . -benchmem ./...
bench-fetch: ## a deploy from MinIO beside curl, tar and sync; TMPDIR names the disk
	go test -tags peers -timeout 60m -count 1 -v -run '^TestFetchBesideCurl$$' ./cmd
bench-delta: ## what upgrades of real trees fetch, beside casync; needs Debian's apt-get, python3 and root; ROWS='virtualenv|two bytes' chooses
	CORPUS_BENCH_ROWS='$(ROWS)' go test -tags peers -timeout 120m -count 1 -v -run '^TestDeltas$$' ./cmd
bench-undo: ## what the journal costs: a first deploy, and its states by themselves, with it and without; undoing
	go test -tags peers -timeout 20m -count 1 -v -run '^TestDeployWithJournal$$' ./cmd
	go test -run '^$$' -bench 159 -benchtime 20x ./agent/undo
bench-peers: ## beside puppet, ansible and salt-call, in a root to throw away; needs root and Debian's packages
	go test -tags peers -timeout 120m -count 1 -v -run '^TestPeers$$' ./cmd
bench-boot: build ## from a host's first start to its service answering, beside ansible-pull and salt-call, on real systemd hosts; CORPUS_PEERS_SALT names the sources of Salt; needs root
	go test -tags 'hosts peers' -timeout 60m -count 1 -v -run '^TestBootToServing$$' ./packaging/hosttest
bench-growth: ## what 1, 10, 100 and 1,000 times the users take, as counts: allocations, system calls, processes
	CORPUS_BENCH_LARGE=1 go test -count 1 -v -run '^TestGrowth|^TestCounts' ./state/session
lint: ## style, floors, known mistakes, workflow files, and functions that nothing calls
	go run $(LINT) run
	go run $(ACTIONLINT) -shellcheck= -pyflakes= packaging/ci/github.yml .github/workflows/ci.yml
	.ci/deadcode
fuzz: ## every fuzz target for FUZZTIME each
	testdata/fuzz-all $(or $(FUZZTIME),30s)
generate: ## man pages, completions, licences
	packaging/generate $(VERSION)
generated: ## files of the repository that follow from others: lists of functions and states, tables and files of settings, the schema of agent.yaml
	go generate ./state/function/manual ./state/python
	CORPUS_WRITE_FUNCTIONS=1 go test -count 1 -run 'TestListOf(Host)?Functions' ./state/session
	go test -count 1 -run TestStatesDocument ./state/session -args -write-docs
	go test -count 1 -run 'TestDocumentationListsAllSettings|TestSchemaAndExampleArePublished' ./agent/config -args -update
	go test -count 1 -run 'Schema|Table|Documented' ./artifact/recipe -args -update
	go test -count 1 -run '^TestMessagesAreListed$$' ./cmd -args -update-messages
snapshot: ## packages and archives, as a release has them; one at a time, since archives hold programs in the order they were built
	go run $(RELEASER) release --snapshot --clean --parallelism 1
picture: ## docs/picture.svg, from a run of the demo
	go test ./cmd -count 1 -run '^TestPictureShowsARealRun$$' -args -update-picture
site: go ## the documents as a site, into bin/site, with its links checked, and looked at in Chromium where there is one
	$(HUGO) --config packaging/site/hugo.toml --destination bin/site --cleanDestinationDir --quiet
	@rm -f .hugo_build.lock
	go test -count 1 -tags site ./packaging/site
