# memcached-operator. "make" alone tells what there is.

# The version in the making; a release moves it on.
VERSION ?= 0.2.0
# Where images are pushed to.
REGISTRY ?= ghcr.io/example
# The image of the operator, and those of its bundle, of the catalog with all its bundles, and of the scorecard's tests.
IMG ?= $(REGISTRY)/memcached-operator:v$(VERSION)
BUNDLE_IMG ?= $(REGISTRY)/memcached-operator-bundle:v$(VERSION)
CATALOG_IMG ?= $(REGISTRY)/memcached-operator-catalog:latest
SCORECARD_IMG ?= $(REGISTRY)/memcached-operator-scorecard:v$(VERSION)
# The images of what the operator runs, where a cluster cannot reach docker.io; empty for those in config/manager.
RELATED_IMAGE_MEMCACHED ?=
RELATED_IMAGE_NGINX ?=
# The channels that a release goes to.
CHANNELS ?= candidate stable
# Where images are built for, by docker-buildx.
PLATFORMS ?= linux/amd64,linux/arm64
CONTAINER_TOOL ?= docker

# Only specs whose text matches FOCUS; V=1 tells of each; PROCS is how many processes share those of the contract.
FOCUS ?=
V ?=
PROCS ?= 4
# A FOCUS that matches nothing is a mistake, but not of "make test": there it has to match something of one suite only.
FAIL_ON_EMPTY ?= yes

# How many CronJobs bench-cronjobs makes, how many times it measures each side, and a file for all that it has measured.
COUNT ?= 1000
PAIRS ?= 1
BENCH_JSON ?=

# All that is built goes here, and nowhere else.
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/memcached-operator
override CACHE := $(abspath $(CACHE))
ifneq ($(words $(CACHE)),1)
$(error CACHE is "$(CACHE)": name a directory without spaces)
endif
# Where the programs of the tests' control plane are: what the environment names, or else what is built here. The
# controller manager is not among those that setup-envtest brings.
ASSETS := $(or $(KUBEBUILDER_ASSETS),$(CACHE)/bin)
CONTROLLER_MANAGER := $(or $(KUBE_CONTROLLER_MANAGER),$(wildcard $(ASSETS)/kube-controller-manager),$(CACHE)/bin/kube-controller-manager)
# The kubectl of the machine, or else the one that is built for the tests.
KUBECTL ?= $(or $(shell command -v kubectl),$(CACHE)/bin/kubectl)

COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=v$(VERSION) -X main.commit=$(COMMIT)
CONTROLLER_GEN := cd test/tools && go tool controller-gen
GOLANGCI_LINT := $(CACHE)/bin/golangci-lint
OPERATOR_SDK := $(CACHE)/bin/operator-sdk
OPM := $(CACHE)/bin/opm
# Where images are made of, and how the programs that use the cluster are told of it: ours tells it in a file.
ifeq ($(origin KUBECONFIG)$(TEST_REGISTRY)$(filter e2e,$(MAKECMDGOALS)),command linee2e)
$(error KUBECONFIG names a cluster of yours: set TEST_REGISTRY too, to a registry that it can pull from and you can push to)
endif
IMAGES := $(CACHE)/images
CLUSTER_ENV = $(if $(TEST_REGISTRY),export TEST_REGISTRY=$(TEST_REGISTRY),. $(CACHE)/cluster/env)
# The modules of the repository.
MODULES := . test/cluster test/cluster/kubernetes test/cluster/containerd test/cluster/coredns test/cluster/olm \
	test/bench/samplecontroller test/reliability/security test/reliability/sequences test/tools test/tools/golangci-lint test/tools/operator-sdk

# The manifests of the operator, with the images that have been chosen.
RENDER = KUBECTL='$(KUBECTL)' config/render.sh config/default controller:latest='$(IMG)' \
	RELATED_IMAGE_MEMCACHED='$(RELATED_IMAGE_MEMCACHED)' RELATED_IMAGE_NGINX='$(RELATED_IMAGE_NGINX)'

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

##@ Look

.PHONY: help
help: ## Tell what there is.
	@awk 'BEGIN {FS = ":.*##"; printf "Usage: make TARGET [VARIABLE=value]\n"} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*##/ {printf "  %-24s%s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nVariables:\n  FOCUS=text      only tests whose name matches (test, unit, contract, scorecard-selftest, e2e)\n  V=1             tell of each test\n  PROCS=4         how many processes share the specs of the contract; MANAGER=program has the suites test that one\n  ARGS=flags      play a part of the faults (reliability)\n  COUNT=1000, PAIRS=1, BENCH_JSON=file\n                  how many CronJobs bench-cronjobs compares, how many times, and a file for all it finds\n  REGISTRY=name   where images are pushed to (%s)\n  IMG=image       the image to build, push and deploy (%s)\n  RELATED_IMAGE_MEMCACHED=image, RELATED_IMAGE_NGINX=image\n                  what the deployed operator runs, where docker.io is out of reach\n  CACHE=dir       where all that is built goes (%s)\n\nThe map of the code is internal/README.md.\n' '$(REGISTRY)' '$(IMG)' '$(CACHE)'

##@ Change

.PHONY: generate
generate: ## Generate deep copies of the API types.
	@$(CONTROLLER_GEN) object paths=../../api/...

.PHONY: manifests
manifests: ## Generate CustomResourceDefinitions and the operator's ClusterRole from markers in the code.
	@$(CONTROLLER_GEN) crd:generateEmbeddedObjectMeta=true rbac:roleName=manager-role paths=../../api/... paths=../../internal/... \
		output:crd:artifacts:config=../../config/crd/bases output:rbac:artifacts:config=../../config/rbac
	@go run ./config/crd/slim config/crd/bases/batch.tutorial.kubebuilder.io_cronjobs.yaml spec.jobTemplate

.PHONY: bundle
bundle: manifests kubectl $(OPERATOR_SDK) ## Generate the bundle for OLM; the same sources give the same files.
	@OPERATOR_SDK='$(OPERATOR_SDK)' KUBECTL='$(KUBECTL)' config/manifests/bundle.sh '$(VERSION)' '$(IMG)' '$(SCORECARD_IMG)'

.PHONY: docs
docs: manifests ## Generate the API reference, docs/api.md.
	@reference=$$(go run ./config/crd/reference config/crd/bases/*.yaml) && echo "$$reference" > docs/api.md

.PHONY: catalog
catalog: $(OPM) ## Render the catalog of all that is released, and validate it.
	@out=$$(mktemp -d) && trap 'rm -rf "$$out"' EXIT && OPM='$(OPM)' config/catalog/render.sh "$$out" && \
		if [ -d "$$out/catalog" ]; then cp -R "$$out/catalog/." config/catalog/; fi

.PHONY: golden
golden: ## Write the golden files of the tests anew; the diff is the change of behaviour.
	@go test ./internal/controller/... -run Golden -update

.PHONY: fmt
fmt: ## Format the code.
	@gofmt -w cmd api config internal test

.PHONY: tidy
tidy: ## Tidy the go.mod of every module.
	@for module in $(MODULES); do (cd $$module && go mod tidy) || exit 1; done

##@ Check

# How long commands take on 2 cores, said in their first line: cold with empty caches, warm without.
RUN_PARTS = V='$(V)' test/run-parts.sh '$(CACHE)/log/$@'
SUB = $(MAKE) --no-print-directory

.PHONY: test
test: ## Check everything: vet, lint, unit tests, and on a real API server the contract, the scorecard tests and a sample of faults.
	@$(RUN_PARTS) 'make test: about 30 minutes the first time, about 6 minutes later. Logs: $(CACHE)/log/test' \
		'build linter and control plane' '$(SUB) $(GOLANGCI_LINT) control-plane kubectl' \
		'build the manager' '$(SUB) suite-manager' \
		'vet' '$(SUB) vet' \
		'lint' '$(SUB) lint' \
		'unit tests' '$(SUB) unit' \
		'contract' '$(SUB) contract FAIL_ON_EMPTY=' \
		'tests of the scorecard' '$(SUB) scorecard-selftest FAIL_ON_EMPTY=' \
		$(if $(FOCUS),,'faults and transitions' '$(SUB) reliability-short')

# With the flags that the code is built with elsewhere, so that nothing is compiled twice.
.PHONY: vet
vet: ## Look for mistakes with go vet.
	@go vet -race ./...
	@for module in test/cluster test/cluster/kubernetes test/cluster/coredns test/reliability/security test/reliability/sequences; do (cd $$module && CGO_ENABLED=0 go vet -trimpath ./...) || exit 1; done

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Look for mistakes with golangci-lint.
	@$(GOLANGCI_LINT) run
	@for module in test/cluster test/reliability/security test/reliability/sequences; do (cd $$module && $(GOLANGCI_LINT) run) || exit 1; done

.PHONY: unit
unit: kubectl ## Test what needs no cluster.
	@KUBECTL='$(KUBECTL)' go test -race $(if $(V),-v) $(if $(FOCUS),-run '$(FOCUS)') $$(go list ./... | grep -v -e /test/contract -e /test/e2e -e /test/scorecard)
	@cd test/cluster && CGO_ENABLED=0 go test -trimpath $(if $(V),-v) $(if $(FOCUS),-run '$(FOCUS)') ./...
	@cd test/reliability/security && KUBECTL='$(KUBECTL)' CGO_ENABLED=0 go test -trimpath $(if $(V),-v) $(if $(FOCUS),-run '$(FOCUS)') ./...
	@cd test/reliability/sequences && CGO_ENABLED=0 go test -trimpath $(if $(V),-v) -run '^TestPage' .

# The manager is built once for all suites, unless MANAGER names one. They run it with the race detector, but for the YAML parser: each
# start parses Kubernetes' schemas, which would take more than a second.
SUITE_MANAGER := $(or $(abspath $(MANAGER)),$(CURDIR)/bin/manager-race)
.PHONY: suite-manager
suite-manager:
	@$(if $(MANAGER),,go build -race -gcflags=go.yaml.in/yaml/v2=-race=false -buildvcs=false -ldflags '-X main.version=v9.9.9 -X main.commit=abcdef' -o '$(SUITE_MANAGER)' ./cmd)

WITH_PLANE = KUBEBUILDER_ASSETS='$(ASSETS)' KUBE_CONTROLLER_MANAGER='$(CONTROLLER_MANAGER)'

# Most of the time specs wait, so there are more processes than cores. Each has a control plane of its own. Less garbage
# collection saves CPU time in all programs; "make vet" vets the tests.
.PHONY: contract
contract: control-plane suite-manager ## Test the contract, on real API servers.
	@$(WITH_PLANE) MANAGER='$(SUITE_MANAGER)' GOGC='$(or $(GOGC),400)' go tool ginkgo run --race --vet=off --procs='$(PROCS)' --timeout=25m $(if $(V),-v) \
		$(if $(FOCUS),--focus='$(FOCUS)' $(FAIL_ON_EMPTY:%=--fail-on-empty)) ./test/contract

# Without the race detector, which runs in the other suites: here many programs share the machine.
.PHONY: scorecard-selftest
scorecard-selftest: control-plane ## Show that each test of the scorecard passes on the operator, and fails on a defect.
	@$(WITH_PLANE) MANAGER='$(abspath $(MANAGER))' \
		go test -v -count=1 -timeout 10m ./test/scorecard $(if $(V),-ginkgo.v) $(if $(FOCUS),-ginkgo.focus '$(FOCUS)' $(FAIL_ON_EMPTY:%=-ginkgo.fail-on-empty))

.PHONY: reliability
reliability: control-plane kubectl ## Show what faults, changes and seeded bugs come to, and write docs/proof. Takes hours; ARGS="--campaign=pairs" plays a part, ARGS=--help tells which.
	@export $(WITH_PLANE); $(if $(ARGS),go run ./test/reliability $(ARGS),status=0; \
		go run ./test/reliability --proof=docs/proof || status=1; \
		go run ./test/reliability/schema/transitions --proof=docs/proof || status=1; \
		(cd test/reliability/sequences && go test -count=1 -v -timeout 30m . -rapid.checks=100 -proof='$(CURDIR)/docs/proof') || status=1; \
		(cd test/reliability/security && KUBECTL='$(KUBECTL)' CGO_ENABLED=0 go test -trimpath -count=1 -v .) || status=1; \
		go run ./test/reliability --mutants=. --proof=docs/proof || status=1; \
		exit $$status)

.PHONY: reliability-short
reliability-short: control-plane suite-manager ## Run a sample of it, in less than 100 seconds.
	@export $(WITH_PLANE); go build -o bin/ ./test/reliability ./test/reliability/schema/transitions && \
		{ bin/transitions --short --manager='$(SUITE_MANAGER)' & bin/reliability --short --manager='$(SUITE_MANAGER)'; \
		status=$$?; wait $$! && exit $$status; }

.PHONY: control-plane
control-plane: ## Build the control plane of the tests and print where it is, for KUBEBUILDER_ASSETS.
	@case '$(ASSETS) $(CONTROLLER_MANAGER)' in *'$(CACHE)/bin'*) test/cluster/build.sh '$(CACHE)/bin' kubernetes;; esac
	@echo '$(ASSETS)'

.PHONY: bundle-validate
bundle-validate: $(OPERATOR_SDK) ## Check the bundle as the catalogs do: no error, no warning.
	@out=$$('$(OPERATOR_SDK)' bundle validate bundle --select-optional suite=operatorframework -o json-alpha1 2>&1) || { echo "$$out" >&2; exit 1; }; \
	case "$$out" in *'"type"'*) echo "$$out" >&2; exit 1;; esac

.PHONY: verify
verify: kubectl bundle-validate ## Check that all that is generated, formatted or tidied is as its sources say.
	@state() { { git diff HEAD; git ls-files -o --exclude-standard -z | xargs -0 cat -- /dev/null; } | git hash-object --stdin; }; \
	before=$$(state); \
	$(MAKE) --no-print-directory generate manifests docs bundle catalog golden fmt tidy || exit 1; \
	[ "$$before" = "$$(state)" ] || { git --no-pager status --short >&2; \
		echo "verify: these files were not as their sources say; they are now. Look at them and commit. (make generate manifests docs bundle catalog golden fmt tidy)" >&2; exit 1; }
	@echo "verify: everything is as its sources say."

.PHONY: e2e
e2e: ## Test everything end to end: on the cluster that "make cluster" brings up, or on yours (KUBECONFIG, TEST_REGISTRY).
	@$(RUN_PARTS) 'make e2e: about 50 minutes the first time, about 40 minutes later. Logs: $(CACHE)/log/e2e' $(IMAGE_PARTS)
	@$(CLUSTER_ENV); TEST_WORK='$(IMAGES)' OPERATOR_SDK='$(OPERATOR_SDK)' KUBECTL='$(KUBECTL)' \
		go test -v -count=1 -timeout 80m ./test/e2e -ginkgo.timeout=75m -ginkgo.v=$(if $(V),true,false) $(if $(FOCUS),-ginkgo.focus '$(FOCUS)' -ginkgo.fail-on-empty)

##@ Cluster

# What the cluster is made of, in the order in which it is built, and what brings it up.
PROGRAM_PARTS = 'build the cluster program' 'test/cluster/build.sh $(CACHE)/bin cluster' \
	$(if $(TEST_REGISTRY),,'check this machine' '$(CACHE)/bin/cluster check') \
	$(foreach set,$(if $(TEST_REGISTRY),kubernetes olm operator-sdk,kubernetes containerd coredns olm operator-sdk),'build $(set)' 'test/cluster/build.sh $(CACHE)/bin $(set)')
CLUSTER_PARTS = $(PROGRAM_PARTS) \
	$(if $(TEST_REGISTRY),,'start the cluster' '$(CACHE)/bin/cluster --bin=$(CACHE)/bin --dir=$(CACHE)/cluster up')
IMAGE_PARTS = $(CLUSTER_PARTS) \
	'build and push the images' '$(CLUSTER_ENV); $(CACHE)/bin/publish --registry="$$TEST_REGISTRY" --bin=$(CACHE)/bin --work=$(IMAGES)'

# Images and clusters are made on Linux only.
.PHONY: linux
linux:
	@[ "$$(uname)" = Linux ] || { echo "Images and clusters need Linux; 'make test' works elsewhere too." >&2; exit 1; }

.PHONY: demo
demo: override TEST_REGISTRY := # always the cluster of "make cluster"
demo: linux ## Show the main job: a cluster, the last release installed from a catalog by OLM, the samples, the upgrade to this tree. Needs root.
	@test/demo/demo.sh --check
	@$(RUN_PARTS) 'make demo: about 15 minutes the first time, about 3 minutes later. Logs: $(CACHE)/log/demo' $(IMAGE_PARTS)
	@. '$(CACHE)/cluster/env' && KUBECTL='$(KUBECTL)' test/demo/demo.sh

.PHONY: cluster
cluster: linux ## Bring up a cluster with real pods and OLM on this machine, or bring it up to date. Needs root.
	@$(RUN_PARTS) 'make cluster: about 12 minutes the first time, about 1 minute later. Logs: $(CACHE)/log/cluster' $(CLUSTER_PARTS)

.PHONY: cluster-down
cluster-down: ## Stop the cluster and delete what it kept.
	@[ ! -x '$(CACHE)/bin/cluster' ] || '$(CACHE)/bin/cluster' --bin='$(CACHE)/bin' --dir='$(CACHE)/cluster' down

.PHONY: cluster-status
cluster-status: ## Tell how the cluster is.
	@[ -x '$(CACHE)/bin/cluster' ] || { echo "There is no cluster; 'make cluster' brings one up." >&2; exit 1; }
	@'$(CACHE)/bin/cluster' --bin='$(CACHE)/bin' --dir='$(CACHE)/cluster' status

.PHONY: cluster-test
cluster-test: programs ## Test the cluster itself: killed, started twice, taken away. Needs root, and no cluster that is up.
	@cd test/cluster && CLUSTER_BIN='$(CACHE)/bin' CGO_ENABLED=0 go test -trimpath -count=1 -timeout 15m $(if $(V),-v) .

BENCH = KUBEBUILDER_ASSETS='$(ASSETS)' go run ./test/bench/foos --programs='$(CACHE)/bench'

.PHONY: bench
bench: control-plane ## Compare the operator with the sample-controller, and write docs/proof/bench.md. Takes hours on an idle machine.
	@$(BENCH) --proof=docs/proof

.PHONY: bench-short
bench-short: control-plane ## Count the requests of the operator, with few objects; fails if there are too many.
	@$(BENCH) --short

.PHONY: bench-cronjobs
bench-cronjobs: control-plane ## Compare our CronJobs with those of Kubernetes, COUNT due in the same minute: start skew, requests, CPU time.
	@$(WITH_PLANE) go run ./test/bench/cronjobs --count='$(COUNT)' --pairs='$(PAIRS)' --json='$(BENCH_JSON)'

.PHONY: images
images: linux ## Build the images of the tree and of all releases, and push them to the cluster's registry or to TEST_REGISTRY.
	@$(RUN_PARTS) 'make images: as long as make cluster, and a minute more. Logs: $(CACHE)/log/images' $(IMAGE_PARTS)

.PHONY: programs
programs: linux
	@$(RUN_PARTS) 'Building the programs of the cluster. Logs: $(CACHE)/log/programs' $(PROGRAM_PARTS)

##@ Try

.PHONY: build
build: ## Build the manager into bin/manager.
	@CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/manager ./cmd

.PHONY: run
run: build ## Run the manager here, against the cluster that KUBECONFIG names.
	@bin/manager --metrics-bind-address=0 --log-format=text

.PHONY: install
install: kubectl ## Install the CustomResourceDefinitions into the cluster that KUBECONFIG names.
	@$(KUBECTL) apply -k config/crd
	@$(KUBECTL) wait --for=condition=Established --timeout=60s -f config/crd/bases

.PHONY: uninstall
uninstall: kubectl ## Remove the CustomResourceDefinitions, and with them every CronJob, Foo and Memcached.
	@$(KUBECTL) delete --ignore-not-found -k config/crd

.PHONY: deploy
deploy: kubectl ## Deploy the operator with the image IMG into the cluster that KUBECONFIG names.
	@manifests=$$($(RENDER)) && echo "$$manifests" | $(KUBECTL) apply -f -

.PHONY: undeploy
undeploy: kubectl ## Remove the operator, the CustomResourceDefinitions, and with them every CronJob, Foo and Memcached.
	@$(KUBECTL) delete --ignore-not-found -k config/default

##@ Ship

.PHONY: docker-build
docker-build: ## Build the image IMG.
	$(CONTAINER_TOOL) build --build-arg VERSION=v$(VERSION) --build-arg COMMIT=$(COMMIT) -t $(IMG) .

.PHONY: docker-build-scorecard
docker-build-scorecard: ## Build the image SCORECARD_IMG of the scorecard's tests.
	$(CONTAINER_TOOL) build --target scorecard -t $(SCORECARD_IMG) .

.PHONY: docker-push
docker-push: ## Push the image IMG.
	$(CONTAINER_TOOL) push $(IMG)

.PHONY: docker-buildx
docker-buildx: ## Build and push the images IMG and SCORECARD_IMG for PLATFORMS.
	$(CONTAINER_TOOL) buildx build --push --platform $(PLATFORMS) --build-arg VERSION=v$(VERSION) --build-arg COMMIT=$(COMMIT) -t $(IMG) .
	$(CONTAINER_TOOL) buildx build --push --platform $(PLATFORMS) --target scorecard -t $(SCORECARD_IMG) .

.PHONY: build-installer
build-installer: kubectl ## Write all manifests with the image IMG into dist/install.yaml.
	@mkdir -p dist
	@manifests=$$($(RENDER)) && echo "$$manifests" > dist/install.yaml

# One for all platforms: files only, and nothing in it runs.
.PHONY: bundle-build
bundle-build: ## Build the image BUNDLE_IMG of the bundle.
	$(CONTAINER_TOOL) build -f bundle.Dockerfile -t $(BUNDLE_IMG) .

.PHONY: bundle-push
bundle-push: ## Push the image BUNDLE_IMG.
	$(CONTAINER_TOOL) push $(BUNDLE_IMG)

.PHONY: catalog-buildx
catalog-buildx: ## Build and push the image CATALOG_IMG of the catalog for PLATFORMS.
	$(CONTAINER_TOOL) buildx build --push --platform $(PLATFORMS) -t $(CATALOG_IMG) config/catalog

.PHONY: catalog-build
catalog-build: ## Build the image CATALOG_IMG of the catalog, for this machine's platform.
	$(CONTAINER_TOOL) build -t $(CATALOG_IMG) config/catalog

.PHONY: catalog-push
catalog-push: ## Push the image CATALOG_IMG.
	$(CONTAINER_TOOL) push $(CATALOG_IMG)

.PHONY: release
release: releasable test verify kubectl $(OPERATOR_SDK) $(OPM) ## Check everything and release VERSION to CHANNELS; docs/releasing.md tells what that does.
	@MAKE='$(MAKE)' KUBECTL='$(KUBECTL)' config/catalog/release.sh '$(VERSION)' $(CHANNELS)

# Whether it can be released at all is found out before the minutes of the tests. That VERSION is typed is the intent.
.PHONY: releasable
releasable:
	@$(if $(filter command line,$(origin VERSION)),,echo "release: name the version that is meant: make release VERSION=$(VERSION)" >&2; exit 1;) \
		config/catalog/release.sh --check '$(VERSION)' $(CHANNELS)

# Tools that are built when they are missing or their version has changed.

$(GOLANGCI_LINT): $(addprefix test/tools/golangci-lint/,main.go go.mod go.sum)
	@echo "Building golangci-lint with kube-api-linter from their Go modules; the first time takes some minutes." >&2
	@cd test/tools/golangci-lint && CGO_ENABLED=0 go build -trimpath -o $@ .

$(OPERATOR_SDK): test/tools/operator-sdk/go.mod test/tools/operator-sdk/go.sum
	@test/cluster/build.sh '$(CACHE)/bin' operator-sdk && touch $@

$(OPM): test/cluster/olm/go.mod test/cluster/olm/go.sum
	@test/cluster/build.sh '$(CACHE)/bin' olm && touch $@

.PHONY: kubectl
kubectl:
	@command -v '$(KUBECTL)' >/dev/null || test/cluster/build.sh '$(CACHE)/bin' kubernetes
