# What to run before a change is done: make lint verify test.
# On a machine with Go, git and make, everything else is installed where it can be.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: pictures world soak walk deps lint verify test prove fuzz bench load audit sbom release clients conformance help

# The modules of the workspace. In a workspace ./... is the root module alone.
MODULES  := $(shell sed -nE 's/^\t(\.[^ ]*)$$/\1/p' go.work)
ALL      := $(MODULES:%=%/...)
PKG      ?= work
FUZZTIME ?= 30s
BENCH    ?= .
RATE     ?=
DURATION ?=
COUNT    ?= 1
CITUS    ?=
RUN      ?=

# The linter is pinned: what passes today passes tomorrow. It is kept apart from the
# modules of the library, so that no host inherits its dependencies.
LINT_VERSION := v2.15.0
LINTER       ?= .bin/golangci-lint-$(LINT_VERSION)/golangci-lint

# Programs of make audit and make sbom, pinned and kept apart in the same way. GOVULNDB is the
# database of vulnerabilities: an address, or file:///DIR for a copy.
VULN_VERSION := v1.1.4
VULNCHECK    ?= .bin/govulncheck-$(VULN_VERSION)/govulncheck
GOVULNDB     ?= https://vuln.go.dev
SBOM_VERSION := v1.9.0
SBOM         ?= .bin/cyclonedx-gomod-$(SBOM_VERSION)/cyclonedx-gomod

# SQLite as Go code, made from C by a tool: 4.6 MB of arithmetic on one slice. The race detector finds
# nothing of ours in it and makes a test of it twice as slow. No module that uses generics or atomics
# may stand here: the linker would take its uninstrumented instances for the whole program, and the
# detector would report races that are none.
UNRACED := github.com/ncruces/go-sqlite3-wasm

# -race needs cgo and a C compiler. Evaluated in the recipe, after deps.
race = $$(if [ "$$(go env CGO_ENABLED)" = 1 ] && command -v "$$(go env CC)" >/dev/null; then echo -race $(UNRACED:%=-gcflags=%/...=-race=false); \
	else echo "no C compiler: the tests run WITHOUT the race detector" >&2; fi)

help: ## list the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 10

deps: ## install what the tests use, where possible; otherwise say what is missing
	@.ci/deps

lint: $(LINTER) ## gofmt, go vet, golangci-lint: nothing to say
	@files=$$(gofmt -l .); \
	if [ -n "$$files" ]; then echo "gofmt would change:"; echo "$$files"; exit 1; fi
	go vet work
	$(LINTER) run $(ALL)

$(LINTER):
	@echo "installing golangci-lint $(LINT_VERSION) into $(@D); the first time takes about two minutes"
	GOBIN=$(CURDIR)/$(@D) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

audit: ## direct modules are within 12 months of their newest release, and have no known vulnerability
	go run ./internal/audit
	@case "$(GOVULNDB)" in \
	file://*) [ -d "$(patsubst file://%,%,$(GOVULNDB))" ] ;; \
	*) command -v curl >/dev/null && curl --silent --fail --max-time 10 --output /dev/null "$(GOVULNDB)/index/db.json" ;; \
	esac || { echo "audit: no govulncheck: there is no vulnerability database at $(GOVULNDB); set GOVULNDB to one, or to file:///DIR"; exit 0; }; \
	$(MAKE) --no-print-directory $(VULNCHECK) && $(VULNCHECK) -db "$(GOVULNDB)" $(ALL)

$(VULNCHECK):
	GOBIN=$(CURDIR)/$(@D) go install golang.org/x/vuln/cmd/govulncheck@$(VULN_VERSION)

sbom: $(SBOM) ## write the modules of the server as a CycloneDX document to sbom.json
	$(SBOM) app -json -licenses -main server -output sbom.json examples

$(SBOM):
	GOBIN=$(CURDIR)/$(@D) go install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(SBOM_VERSION)

# release stamps the commit, so two builds of one commit are the same bytes.
DIST      ?= dist
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64

release: $(SBOM) ## build the server for Linux, macOS and Windows into dist, with checksums and an SBOM
	@rm -rf "$(DIST)"; mkdir -p "$(DIST)"; \
	version=$$(sed -nE 's/^const Version = "(.*)"/\1/p' doc.go); commit=$$(git rev-parse HEAD); \
	date=$$(TZ=UTC0 git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ); \
	if [ -n "$$(git status --porcelain)" ]; then commit="$$commit, changed"; fi; \
	for p in $(PLATFORMS); do \
		file="$(DIST)/healthlab_$${version}_$${p%/*}_$${p#*/}"; if [ "$${p%/*}" = windows ]; then file="$$file.exe"; fi; \
		echo "$$file"; \
		CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build -trimpath -buildvcs=false \
			-ldflags="-s -w -X 'main.commit=$$commit' -X main.commitDate=$$date" -o "$$file" ./examples/server; \
	done; \
	$(SBOM) app -json -licenses -main server -output "$(DIST)/healthlab_$$version.sbom.json" examples; \
	cd "$(DIST)"; if command -v sha256sum >/dev/null; then sha256sum healthlab_* >SHA256SUMS; else shasum -a 256 healthlab_* >SHA256SUMS; fi

verify: ## generated files and each go.mod are what they would be made again
	@state() { git status --porcelain; git diff; }; \
	before=$$(state); go generate -skip oapi-codegen $(ALL); \
	if [ "$$before" != "$$(state)" ]; then \
		echo "go generate changes files; run it and commit:"; git status --short; exit 1; fi
	go mod verify
	for m in $(MODULES); do (cd $$m && GOWORK=off go mod tidy -diff); done

test: deps ## all tests, with the race detector, on a real PostgreSQL; CITUS=DIR: on a cluster, of the build in DIR, without the detector
	@if [ -n "$(CITUS)" ]; then \
		if [ ! -x "$(CITUS)/install" ]; then echo "no Citus in $(CITUS): skipped"; exit; fi; \
		"$(CITUS)/install"; export TEST_CITUS=1; race=; \
	else race=$(race); fi; set -x; go test $$race -timeout $(if $(CITUS),60m,30m) $(if $(RUN),-run '$(RUN)') $(PKG)

prove: deps ## the same tests at their full counts; up to an hour
	@race=$(race); set -x; HEALTHLABTEST_PROVE=1 go test $$race -timeout 60m $(PKG)
	@if [ -n "$(race)" ]; then set -x; cd internal/bench && GOWORK=off go test -timeout 15m ./...; fi # other engines need cgo

clients: ## generate Go clients from the contract with oapi-codegen and ogen, and vet them; check the types of adapters/client; fetches the generators
	go test ./adapters/httpapi -run '^TestContract_generatedGoClientsCompile$$' -count 1 -v -args -clients
	go test ./adapters/client/internal/api -count 1 -v -args -clients

# The package of scenarios is pinned. It needs node 22, which npm has as a package where node is older.
MCP_VERSION := 0.1.16
MCP         ?= .bin/mcp-conformance-$(MCP_VERSION)

conformance: ## the public scenarios of the Model Context Protocol against the server and against fixtures behind adapters/operations/mcp; fetches them with npm
	npm install --prefix "$(MCP)" --no-audit --no-fund @modelcontextprotocol/conformance@$(MCP_VERSION) node@22
	export PATH="$(abspath $(MCP))/node_modules/.bin:$$PATH"; \
	go test ./examples/server -run '^TestMCP_passesTheConformanceScenarios$$' -count 1 -v -args -conformance "$(abspath $(MCP))/node_modules/.bin/conformance"; \
	go test ./adapters/operations/mcp -run '^TestServer_passesTheMCPConformanceScenarios$$' -count 1 -v -args -conformance "$(abspath $(MCP))/node_modules/.bin/conformance"

pictures: ## take the pictures of docs/console.md anew in headless Chromium
	HEALTHLABTEST_SCREENSHOTS=$(CURDIR)/docs/console go test ./examples/server -run '^TestConsole_takesThePicturesOfTheDocs$$' -count 1

fuzz: ## each fuzz target in turn, FUZZTIME=30s each
	@grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sort | \
	while IFS=: read -r file line target; do \
		target=$${target#func }; echo "$$target ($$(dirname "$$file"))"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" </dev/null; \
	done

bench: ## benchmarks: BENCH=regex, COUNT=1; never a pass or a fail
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PKG)
	@if [ -f internal/bench/go.mod ]; then cd internal/bench && \
		GOWORK=off go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...; fi

load: ## a mix of requests against the server with PostgreSQL, then beside a plain handler: RATE=500, DURATION=1m; report in load.html
	go run ./examples/load -bare -duration $(or $(DURATION),1m)
	go run ./examples/load -rate $(or $(RATE),500) -duration $(or $(DURATION),1m) -report load.html

walk: ## the functions and files that an upload, the delivery of its event and an order run; V=-v lists them
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	go build -cover -covermode=atomic -coverpkg=github.com/healthlab-dev/healthlab/... -o "$$dir/walk" ./examples/internal/walk && \
	GOCOVERDIR="$$dir" "$$dir/walk" $(V)

soak: ## the mix against two servers while one of them and PostgreSQL are killed: RATE=100, DURATION=30m; report in soak.html
	go run ./examples/load soak -rate $(or $(RATE),100) -duration $(or $(DURATION),30m) -report soak.html

world: ## populations that live for a year with the service on a fake clock: HEALTHLABTEST_SEED=1, HEALTHLABTEST_PEOPLE=10000 in all, HEALTHLABTEST_POPULATIONS=2, HEALTHLABTEST_DAYS=365
	HEALTHLABTEST_PROVE=1 HEALTHLABTEST_PEOPLE=$${HEALTHLABTEST_PEOPLE:-10000} go test -run '^TestWorld_everyEventArrivesOnceAndTotalsEqualTheTruth$$' -v -timeout 60m ./adapters/service
