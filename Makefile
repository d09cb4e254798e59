# Builds, tests and releases memcached-operator. "make" alone lists the targets.

# The version that the tree is developing; "make release" increments it.
VERSION ?= 0.4.0
# The registry to push images to.
REGISTRY ?= ghcr.io/example
# The images of the operator, its bundle, the catalog of all released bundles, and the scorecard tests.
IMG ?= $(REGISTRY)/memcached-operator:v$(VERSION)
BUNDLE_IMG ?= $(REGISTRY)/memcached-operator-bundle:v$(VERSION)
CATALOG_IMG ?= $(REGISTRY)/memcached-operator-catalog:latest
SCORECARD_IMG ?= $(REGISTRY)/memcached-operator-scorecard:v$(VERSION)
# The image of the agent, which has a version of its own: a change of it restarts nodes.
AGENT_VERSION := $(shell cat cmd/agent/VERSION)
AGENT_IMG ?= $(REGISTRY)/memcached-operator-agent:v$(AGENT_VERSION)
# Operand images, for clusters that cannot pull from docker.io; if empty, those in config/manager are used.
RELATED_IMAGE_MEMCACHED ?=
RELATED_IMAGE_NGINX ?=
RELATED_IMAGE_AGENT ?= $(AGENT_IMG)
# The channels that "make release" adds the version to.
CHANNELS ?= candidate stable
# The platforms that docker-buildx builds images for.
PLATFORMS ?= linux/amd64,linux/arm64
CONTAINER_TOOL ?= docker

# FOCUS selects specs by a regular expression; V=1 prints each; PROCS is the number of processes of the contract.
FOCUS ?=
V ?=
PROCS ?= 4
# A suite fails if FOCUS matches none of its specs, except in "make test": there it may match specs of one suite only.
FAIL_ON_EMPTY ?= yes

# scorecard: a namespace that the operator watches.
NAMESPACE ?= memcached-operator-system

# bench-cronjobs: the number of CronJobs, how often each controller is measured, and a file for all results.
COUNT ?= 1000
PAIRS ?= 1
BENCH_JSON ?=

# The directory for everything that is built.
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/memcached-operator
override CACHE := $(abspath $(CACHE))
ifneq ($(words $(CACHE)),1)
$(error CACHE is "$(CACHE)": name a directory without spaces)
endif
# The version of the control plane for tests, such as 1.30, of those in test/cluster/controlplane; by default, that of
# test/cluster/kubernetes.
KUBERNETES ?=
# The directory of etcd, kube-apiserver and kubectl for tests: KUBEBUILDER_ASSETS, or else they are built. setup-envtest
# does not install kube-controller-manager, so that has a variable of its own.
ASSETS := $(if $(KUBERNETES),$(CACHE)/bin/kubernetes-$(KUBERNETES),$(or $(KUBEBUILDER_ASSETS),$(CACHE)/bin))
CONTROLLER_MANAGER := $(if $(KUBERNETES),$(ASSETS)/kube-controller-manager,$(or $(KUBE_CONTROLLER_MANAGER),\
	$(wildcard $(ASSETS)/kube-controller-manager),$(CACHE)/bin/kube-controller-manager))
# The version of OLM in the cluster, such as 0.28.0, of those in test/cluster/olm; by default, the newest.
OLM ?=
# The kubectl in the PATH, or else the one that is built for tests.
KUBECTL ?= $(or $(shell command -v kubectl),$(CACHE)/bin/kubectl)

COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=v$(VERSION) -X main.commit=$(COMMIT)
CONTROLLER_GEN := cd test/tools && go tool controller-gen
GOLANGCI_LINT := $(CACHE)/bin/golangci-lint
OPERATOR_SDK := $(CACHE)/bin/operator-sdk
OPM := $(CACHE)/bin/opm
PROMTOOL := $(CACHE)/bin/promtool
# The work directory of image builds, and the settings of the cluster to test on. "make cluster" writes them to a file.
ifeq ($(origin KUBECONFIG)$(TEST_REGISTRY)$(filter e2e,$(MAKECMDGOALS)),command linee2e)
$(error KUBECONFIG is set: set TEST_REGISTRY too, to a registry that you can push to and the cluster can pull from)
endif
IMAGES := $(CACHE)/images
CLUSTER_ENV = $(if $(TEST_REGISTRY),export TEST_REGISTRY=$(TEST_REGISTRY),. $(CACHE)/cluster/env)
# As in test/cluster/build.sh.
CONTAINERS_TAGS := json1,containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper
# All Go modules of the repository.
MODULES := . cmd/agent test/cluster test/cluster/kubernetes test/cluster/containerd test/cluster/coredns \
	test/cluster/controlplane test/cluster/olm test/cluster/olmv1 test/bench/samplecontroller test/reliability/security \
	test/reliability/sequences test/tools test/tools/golangci-lint test/tools/operator-sdk test/tools/prometheus

# Prints the manifests of the operator with IMG and the operand images.
RENDER = KUBECTL='$(KUBECTL)' config/render.sh config/default controller:latest='$(IMG)' \
	RELATED_IMAGE_MEMCACHED='$(RELATED_IMAGE_MEMCACHED)' RELATED_IMAGE_NGINX='$(RELATED_IMAGE_NGINX)' \
	RELATED_IMAGE_AGENT='$(RELATED_IMAGE_AGENT)'

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

##@ Help

.PHONY: help
help: ## List targets and variables.
	@awk 'BEGIN {FS = ":.*##"; printf "Usage: make TARGET [VARIABLE=value]\n"} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*##/ {printf "  %-24s%s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '%s\n' \
		'' \
		'Variables:' \
		'  FOCUS=regex     run only tests whose name matches (test, unit, contract, scorecard-selftest, e2e)' \
		'  V=1             print each test' \
		'  PROCS=4         number of processes that run the contract' \
		'  KUBERNETES=1.30 version of the control plane (contract, scorecard-selftest, reliability-short)' \
		'  OLM=0.28.0      version of OLM in the cluster (cluster, e2e, demo)' \
		'  MANAGER=program test this build of the manager (contract, scorecard-selftest, reliability-short)' \
		'  ARGS=flags      run a part of reliability with these flags (ARGS=--help lists them)' \
		'  NAMESPACE=name  namespace that the operator watches (scorecard)' \
		'  COUNT=1000, PAIRS=1, BENCH_JSON=file' \
		'                  bench-cronjobs: number of CronJobs, number of measurements, file for the results' \
		'  REGISTRY=name   registry to push images to ($(REGISTRY))' \
		'  IMG=image       image to build, push and deploy ($(IMG))' \
		'  RELATED_IMAGE_MEMCACHED=image, RELATED_IMAGE_NGINX=image, RELATED_IMAGE_AGENT=image' \
		'                  operand images, if those in config/manager cannot be pulled' \
		'  CACHE=dir       directory for everything that is built ($(CACHE))' \
		'' \
		'The map of the code is internal/README.md; test/README.md describes the tests.'

##@ Develop

.PHONY: generate
generate: ## Generate deep copies of the API types.
	@$(CONTROLLER_GEN) object paths=../../api/...

.PHONY: manifests
manifests: ## Generate the CustomResourceDefinitions and the ClusterRole from markers in the code.
	@$(CONTROLLER_GEN) crd:generateEmbeddedObjectMeta=true rbac:roleName=manager-role paths=../../api/... paths=../../internal/... \
		output:crd:artifacts:config=../../config/crd/bases output:rbac:artifacts:config=../../config/rbac
	@go run ./config/crd/slim config/crd/bases/batch.tutorial.kubebuilder.io_cronjobs.yaml spec.jobTemplate
	@for field in affinity securityContext tolerations topologySpreadConstraints; do go run ./config/crd/slim \
		config/crd/bases/cache.example.com_memcacheds.yaml spec.podTemplate.spec.$$field || exit 1; done

.PHONY: bundle
bundle: manifests kubectl $(OPERATOR_SDK) ## Generate the bundle for OLM (reproducible).
	@OPERATOR_SDK='$(OPERATOR_SDK)' KUBECTL='$(KUBECTL)' config/manifests/bundle.sh '$(VERSION)' '$(IMG)' '$(SCORECARD_IMG)'

.PHONY: docs
docs: manifests ## Generate the API reference docs/api.md.
	@reference=$$(go run ./config/crd/reference config/crd/bases/*.yaml) && echo "$$reference" > docs/api.md

.PHONY: community
community: ## Write what the community catalogs need of a release: VERSION=0.3.0 OUT=directory.
	@[ -n '$(OUT)' ] || { echo "community: name a directory: make community VERSION=0.3.0 OUT=directory" >&2; exit 2; }
	@go run ./config/catalog/community '$(VERSION)' '$(OUT)'

.PHONY: catalog
catalog: $(OPM) ## Render and validate the catalog of all releases.
	@out=$$(mktemp -d) && trap 'rm -rf "$$out"' EXIT && OPM='$(OPM)' config/catalog/render.sh "$$out" && \
		if [ -d "$$out/catalog" ]; then cp -R "$$out/catalog/." config/catalog/; fi

.PHONY: golden
golden: ## Update the golden files of unit tests; their diff shows the change of behavior.
	@go test ./internal/controller/... -run Golden -update

.PHONY: fmt
fmt: ## Format the code.
	@gofmt -w cmd api config internal test

.PHONY: tidy
tidy: ## Tidy the go.mod of every module.
	@for module in $(MODULES); do (cd $$module && go mod tidy) || exit 1; done
	@for directory in test/cluster/controlplane test/cluster/olm; do (cd $$directory && for file in [0-9]*.mod; do \
		go mod tidy -modfile="$$file" || exit 1; done) || exit 1; done

##@ Test

# The first line of a long command contains its duration on 2 cores, with empty caches and with filled ones.
RUN_PARTS = V='$(V)' test/run-parts.sh '$(CACHE)/log/$@'
SUB = $(MAKE) --no-print-directory

.PHONY: test
test: ## Run vet, lint, unit, contract, scorecard-selftest and reliability-short.
	@$(RUN_PARTS) 'make test: about an hour the first time, about 18 minutes later. Logs: $(CACHE)/log/test' \
		'build linter and control plane' '$(SUB) $(GOLANGCI_LINT) control-plane kubectl' \
		'build the manager' '$(SUB) suite-manager' \
		'vet' '$(SUB) vet' \
		'lint' '$(SUB) lint' \
		'unit tests' '$(SUB) unit' \
		'contract' '$(SUB) contract FAIL_ON_EMPTY=' \
		'tests of the scorecard' '$(SUB) scorecard-selftest FAIL_ON_EMPTY=' \
		$(if $(FOCUS),,'faults and transitions' '$(SUB) reliability-short')

# The build flags are those of other targets, so that nothing is compiled twice.
.PHONY: vet
vet: ## Run go vet in all modules.
	@go vet -race ./...
	@for module in cmd/agent test/cluster test/cluster/kubernetes test/cluster/coredns test/reliability/security \
		test/reliability/sequences; do (cd $$module && CGO_ENABLED=0 go vet -trimpath ./...) || exit 1; done

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run golangci-lint.
	@$(GOLANGCI_LINT) run
	@for module in cmd/agent test/cluster test/reliability/security test/reliability/sequences; do \
		(cd $$module && $(GOLANGCI_LINT) run) || exit 1; done

.PHONY: unit
unit: kubectl ## Run the tests that need no API server.
	@KUBECTL='$(KUBECTL)' go test -race -short $(if $(V),-v) $(if $(FOCUS),-run '$(FOCUS)') $$(go list ./... | grep -v -e /test/contract -e /test/e2e -e /test/scorecard)
	@go test $(if $(V),-v) -run '$(or $(FOCUS),^TestSimulation$$)' ./internal/controller/cronjob # has no goroutines
	@cd cmd/agent && CGO_ENABLED=0 go test -trimpath $(if $(V),-v) $(if $(FOCUS),-run '$(FOCUS)') ./...
	@cd test/cluster && CGO_ENABLED=0 go test -trimpath $(if $(V),-v) $(if $(FOCUS),-run '$(FOCUS)') ./...
	@cd test/reliability/security && KUBECTL='$(KUBECTL)' CGO_ENABLED=0 go test -trimpath $(if $(V),-v) $(if $(FOCUS),-run '$(FOCUS)') ./...
	@cd test/reliability/sequences && CGO_ENABLED=0 go test -trimpath $(if $(V),-v) -run '^TestPage' .

# The manager is built once for contract and reliability-short, unless MANAGER is set. It has the race detector
# everywhere except in the YAML parser, which parses Kubernetes' schemas at every start: that would take more than a
# second.
SUITE_MANAGER := $(or $(abspath $(MANAGER)),$(CURDIR)/bin/manager-race)
.PHONY: suite-manager
suite-manager:
	@$(if $(MANAGER),,go build -race -gcflags=go.yaml.in/yaml/v2=-race=false -buildvcs=false -ldflags '-X main.version=v9.9.9 -X main.commit=abcdef' -o '$(SUITE_MANAGER)' ./cmd)

WITH_PLANE = KUBEBUILDER_ASSETS='$(ASSETS)' KUBE_CONTROLLER_MANAGER='$(CONTROLLER_MANAGER)'

# Specs mostly wait, so there are more processes than cores. Each process has its own control plane. GOGC=400 reduces
# the CPU time of all programs for garbage collection. "make vet" vets the tests, so --vet=off.
.PHONY: contract
contract: control-plane suite-manager ## Test the manager's behavior on a real API server.
	@$(WITH_PLANE) MANAGER='$(SUITE_MANAGER)' GOGC='$(or $(GOGC),400)' go tool ginkgo run --race --vet=off --procs='$(PROCS)' --timeout=25m $(if $(V),-v) \
		$(if $(FOCUS),--focus='$(FOCUS)' $(FAIL_ON_EMPTY:%=--fail-on-empty)) ./test/contract

# Without the race detector, as many programs run here at the same time.
.PHONY: scorecard-selftest
scorecard-selftest: control-plane ## Test the scorecard tests: each passes on the operator and fails on a defect.
	@$(WITH_PLANE) MANAGER='$(abspath $(MANAGER))' \
		go test -v -count=1 -timeout 10m ./test/scorecard $(if $(V),-ginkgo.v) $(if $(FOCUS),-ginkgo.focus '$(FOCUS)' $(FAIL_ON_EMPTY:%=-ginkgo.fail-on-empty))

.PHONY: scorecard
scorecard: kubectl $(OPERATOR_SDK) ## Run the scorecard tests of the bundle against the operator in your cluster. NAMESPACE=name
	@rbac() { '$(KUBECTL)' kustomize config/scorecard/rbac | sed 's|namespace: .*|namespace: $(NAMESPACE)|' | '$(KUBECTL)' "$$@" -f -; }; \
	trap 'rbac delete --ignore-not-found' EXIT; rbac apply && \
		'$(OPERATOR_SDK)' scorecard bundle --namespace='$(NAMESPACE)' --pod-security=restricted && \
		'$(OPERATOR_SDK)' scorecard bundle --namespace='$(NAMESPACE)' --pod-security=restricted --wait-time=10m \
		--config=bundle/tests/scorecard/custom.yaml

.PHONY: reliability
reliability: control-plane kubectl ## Inject faults, change fields, seed bugs; write docs/proof (4 hours).
	@export $(WITH_PLANE); $(if $(ARGS),go run ./test/reliability $(ARGS),status=0; \
		go run ./test/reliability --proof=docs/proof || status=1; \
		go run ./test/reliability/schema/transitions --proof=docs/proof || status=1; \
		(cd test/reliability/sequences && go test -count=1 -v -timeout 30m . -rapid.checks=100 -proof='$(CURDIR)/docs/proof') || status=1; \
		(cd test/reliability/security && KUBECTL='$(KUBECTL)' CGO_ENABLED=0 go test -trimpath -count=1 -v .) || status=1; \
		go run ./test/reliability --mutants=. --proof=docs/proof || status=1; \
		exit $$status)

.PHONY: reliability-short
reliability-short: control-plane suite-manager ## Run a sample of reliability (about 2 minutes).
	@export $(WITH_PLANE); go build -o bin/ ./test/reliability ./test/reliability/schema/transitions && \
		{ bin/transitions --short --manager='$(SUITE_MANAGER)' & bin/reliability --short --manager='$(SUITE_MANAGER)'; \
		status=$$?; wait $$! && exit $$status; }

.PHONY: control-plane
control-plane: ## Build the control plane for tests and print its directory, for KUBEBUILDER_ASSETS.
	@case '$(ASSETS) $(CONTROLLER_MANAGER)' in *'$(CACHE)/bin'*) \
		test/cluster/build.sh '$(CACHE)/bin' kubernetes $(KUBERNETES:%=kubernetes-%);; esac
	@echo '$(ASSETS)'

.PHONY: bundle-validate
bundle-validate: $(OPERATOR_SDK) ## Validate the bundle as community catalogs do; warnings fail.
	@out=$$('$(OPERATOR_SDK)' bundle validate bundle --select-optional suite=operatorframework -o json-alpha1 2>&1) || { echo "$$out" >&2; exit 1; }; \
	case "$$out" in *'"type"'*) echo "$$out" >&2; exit 1;; esac
	@cd test/tools/operator-sdk && CGO_ENABLED=0 go test -trimpath -count=1 -tags '$(CONTAINERS_TAGS)' .

.PHONY: verify
verify: kubectl bundle-validate ## Check that generated files, formatting and go.mod files are up to date.
	@state() { { git diff HEAD; git ls-files -o --exclude-standard -z | xargs -0 cat -- /dev/null; } | git hash-object --stdin; }; \
	before=$$(state); \
	$(MAKE) --no-print-directory generate manifests docs bundle catalog golden fmt tidy || exit 1; \
	[ "$$before" = "$$(state)" ] || { git --no-pager status --short >&2; \
		echo "verify: these files were out of date and have been regenerated: review and commit them" \
		"(make generate manifests docs bundle catalog golden fmt tidy)" >&2; exit 1; }
	@echo "verify: all generated files are up to date."

.PHONY: e2e
e2e: ## Run the end-to-end tests, on the cluster of "make cluster" or on yours (KUBECONFIG, TEST_REGISTRY).
	@$(RUN_PARTS) 'make e2e: about 80 minutes the first time, about an hour later. Logs: $(CACHE)/log/e2e' \
		'build prometheus' 'test/cluster/build.sh $(CACHE)/bin prometheus' $(IMAGE_PARTS) $(OLMV1_PARTS)
	@$(CLUSTER_ENV); TEST_WORK='$(IMAGES)' OPERATOR_SDK='$(OPERATOR_SDK)' KUBECTL='$(KUBECTL)' \
		go test -v -count=1 -timeout 80m ./test/e2e -ginkgo.timeout=75m -ginkgo.label-filter='!bench-rollout' -ginkgo.v=$(if $(V),true,false) $(if $(FOCUS),-ginkgo.focus '$(FOCUS)' -ginkgo.fail-on-empty)

.PHONY: bench-rollout
bench-rollout: ## Measure what the users of a cache notice; write docs/proof/rollout.md (an hour, root).
	@$(RUN_PARTS) 'Building what bench-rollout needs. Logs: $(CACHE)/log/bench-rollout' $(IMAGE_PARTS)
	@$(CLUSTER_ENV); TEST_WORK='$(IMAGES)' OPERATOR_SDK='$(OPERATOR_SDK)' KUBECTL='$(KUBECTL)' PROOF='$(CURDIR)/docs/proof' \
		go test -v -count=1 -timeout 150m ./test/e2e -ginkgo.timeout=145m -ginkgo.label-filter=bench-rollout

##@ Cluster

# The programs of the cluster, in the order in which they are built, and the command that starts it.
PROGRAM_PARTS = 'build the cluster program' 'test/cluster/build.sh $(CACHE)/bin cluster' \
	$(if $(TEST_REGISTRY),,'check this machine' '$(CACHE)/bin/cluster check') \
	$(if $(TEST_REGISTRY),,'fetch memcached' 'test/cluster/memcached.sh $(CACHE)/bin') \
	$(foreach set,$(if $(TEST_REGISTRY),kubernetes olm operator-sdk,kubernetes containerd coredns olm $(OLM:%=olm-%) operator-sdk),'build $(set)' 'test/cluster/build.sh $(CACHE)/bin $(set)')
CLUSTER_PARTS = $(PROGRAM_PARTS) \
	$(if $(TEST_REGISTRY),,'start the cluster' '$(CACHE)/bin/cluster --bin=$(CACHE)/bin --dir=$(CACHE)/cluster $(OLM:%=--olm=%) up')
IMAGE_PARTS = $(CLUSTER_PARTS) \
	'build and push the images' '$(CLUSTER_ENV); $(CACHE)/bin/publish --registry="$$TEST_REGISTRY" --bin=$(CACHE)/bin --work=$(IMAGES)'

OLMV1_PARTS = $(if $(TEST_REGISTRY),,'build olmv1' 'test/cluster/build.sh $(CACHE)/bin olmv1' \
	'install OLM v1' '$(CACHE)/bin/cluster --bin=$(CACHE)/bin --dir=$(CACHE)/cluster olmv1')

# Building images and running the cluster require Linux.
.PHONY: linux
linux:
	@[ "$$(uname)" = Linux ] || { echo "Images and clusters need Linux; 'make test' works elsewhere too." >&2; exit 1; }

.PHONY: demo
demo: override TEST_REGISTRY := # always the cluster of "make cluster"
demo: linux ## Start a cluster, install the last release with OLM, apply the samples, upgrade to this tree (root).
	@test/demo/demo.sh --check
	@$(RUN_PARTS) 'make demo: about 25 minutes the first time, about 4 minutes later. Logs: $(CACHE)/log/demo' $(IMAGE_PARTS)
	@. '$(CACHE)/cluster/env' && KUBECTL='$(KUBECTL)' test/demo/demo.sh

.PHONY: cluster
cluster: linux ## Start or update a cluster with real pods and OLM on this machine (root).
	@$(RUN_PARTS) 'make cluster: about 20 minutes the first time, about 1 minute later. Logs: $(CACHE)/log/cluster' $(CLUSTER_PARTS)

.PHONY: cluster-down
cluster-down: ## Stop the cluster and delete its data.
	@[ ! -x '$(CACHE)/bin/cluster' ] || '$(CACHE)/bin/cluster' --bin='$(CACHE)/bin' --dir='$(CACHE)/cluster' down

.PHONY: cluster-status
cluster-status: ## Print the status of the cluster.
	@[ -x '$(CACHE)/bin/cluster' ] || { echo "There is no cluster; 'make cluster' starts one." >&2; exit 1; }
	@'$(CACHE)/bin/cluster' --bin='$(CACHE)/bin' --dir='$(CACHE)/cluster' status

.PHONY: cluster-test
cluster-test: programs ## Test the cluster program: kill, start twice, delete (root; no cluster may be running).
	@cd test/cluster && CLUSTER_BIN='$(CACHE)/bin' CGO_ENABLED=0 go test -trimpath -count=1 -timeout 15m $(if $(V),-v) .

# With memcached in the PATH, and with that of Debian sid, which has its own loader and libraries.
SID := $(CACHE)/bin/memcached
EACH_MEMCACHED = for memcached in memcached $$(cd '$(SID)' 2>/dev/null && echo "$$PWD"/lib*/ld-linux-*); do \
	case $$memcached in /*) memcached="$$memcached --library-path $(SID)/usr/lib $(SID)/usr/bin/memcached";; esac; \
	echo && $$memcached --version &&
.PHONY: agent-test
agent-test: linux ## Test the agent of nodes with TLS or metrics with real memcached (root).
	@test/cluster/memcached.sh '$(CACHE)/bin'
	@work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT && cp -R cmd/agent "$$work/elsewhere" && \
		for source in cmd/agent "$$work/elsewhere"; do (cd "$$source" && CGO_ENABLED=0 go build -trimpath -buildvcs=false \
			-o "$$work/agent-$$(basename "$$source")" .) || exit 1; done && cmp "$$work/agent-agent" "$$work/agent-elsewhere" && \
		echo "The agent is reproducible: two builds in different directories are equal."
	@$(EACH_MEMCACHED) (cd cmd/agent && CGO_ENABLED=0 go test -trimpath -count=1 $(if $(V),-v) . -memcached="$$memcached") || exit 1; done

.PHONY: monitoring-test
monitoring-test: $(PROMTOOL) ## Test the rules and alerts of config/prometheus with promtool.
	@go test -count=1 $(if $(V),-v) ./test/monitoring -promtool='$(PROMTOOL)'

.PHONY: images
images: linux ## Build the images of the tree and all releases; push to the cluster's registry or TEST_REGISTRY.
	@$(RUN_PARTS) 'make images: as long as make cluster, plus about a minute. Logs: $(CACHE)/log/images' $(IMAGE_PARTS)

.PHONY: programs
programs: linux
	@$(RUN_PARTS) 'Building the cluster programs. Logs: $(CACHE)/log/programs' $(PROGRAM_PARTS)

##@ Benchmark

BENCH = KUBEBUILDER_ASSETS='$(ASSETS)' go run ./test/bench/foos --programs='$(CACHE)/bench'

.PHONY: bench
bench: control-plane ## Compare the operator with the sample-controller; write docs/proof/bench.md (up to 2 hours).
	@$(BENCH) --proof=docs/proof

.PHONY: bench-short
bench-short: control-plane ## Count the operator's requests with few objects; too many fail.
	@$(BENCH) --short

.PHONY: bench-cronjobs
bench-cronjobs: control-plane ## Compare this CronJob controller with that of Kubernetes: start delays, requests, CPU time.
	@$(WITH_PLANE) go run ./test/bench/cronjobs --count='$(COUNT)' --pairs='$(PAIRS)' --json='$(BENCH_JSON)'

.PHONY: bench-memory
bench-memory: linux ## Measure the memory of full memcached nodes with busy connections (root, 10 minutes).
	@test/cluster/memcached.sh '$(CACHE)/bin'
	@$(EACH_MEMCACHED) \
		go test ./internal/controller/memcached -run TestMemoryHolds -count=1 -v -timeout 30m -memcached="$$memcached" || exit 1; done

##@ Build and deploy

.PHONY: build
build: ## Build the manager into bin/manager.
	@CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/manager ./cmd

.PHONY: run
run: build ## Run the manager on this machine, against the cluster in KUBECONFIG.
	@bin/manager --metrics-bind-address=0 --log-format=text

.PHONY: install
install: kubectl ## Install the CustomResourceDefinitions in the cluster in KUBECONFIG.
	@$(KUBECTL) apply -k config/crd
	@$(KUBECTL) wait --for=condition=Established --timeout=60s -f config/crd/bases

.PHONY: uninstall
uninstall: kubectl ## Delete the CustomResourceDefinitions and all CronJobs, Foos and Memcacheds.
	@$(KUBECTL) delete --ignore-not-found -k config/crd

.PHONY: deploy
deploy: kubectl ## Deploy the operator with the image IMG to the cluster in KUBECONFIG.
	@manifests=$$($(RENDER)) && echo "$$manifests" | $(KUBECTL) apply -f -

.PHONY: undeploy
undeploy: kubectl ## Delete the operator, the CustomResourceDefinitions and all CronJobs, Foos and Memcacheds.
	@$(KUBECTL) delete --ignore-not-found -k config/default

##@ Release

.PHONY: docker-build
docker-build: ## Build the image IMG.
	$(CONTAINER_TOOL) build --build-arg VERSION=v$(VERSION) --build-arg COMMIT=$(COMMIT) -t $(IMG) .

.PHONY: docker-build-scorecard
docker-build-scorecard: ## Build the image SCORECARD_IMG of the scorecard tests.
	$(CONTAINER_TOOL) build --target scorecard -t $(SCORECARD_IMG) .

.PHONY: docker-build-agent
docker-build-agent: ## Build the image AGENT_IMG of the sidecar of nodes.
	$(CONTAINER_TOOL) build -f cmd/agent/Dockerfile --build-arg VERSION=v$(AGENT_VERSION) -t $(AGENT_IMG) .

.PHONY: docker-push
docker-push: ## Push the image IMG.
	$(CONTAINER_TOOL) push $(IMG)

.PHONY: docker-push-agent
docker-push-agent: ## Push the image AGENT_IMG.
	$(CONTAINER_TOOL) push $(AGENT_IMG)

.PHONY: docker-buildx
docker-buildx: ## Build and push the images IMG and SCORECARD_IMG for PLATFORMS.
	$(CONTAINER_TOOL) buildx build --push --platform $(PLATFORMS) --build-arg VERSION=v$(VERSION) --build-arg COMMIT=$(COMMIT) -t $(IMG) .
	$(CONTAINER_TOOL) buildx build --push --platform $(PLATFORMS) --target scorecard -t $(SCORECARD_IMG) .

.PHONY: docker-buildx-agent
docker-buildx-agent: ## Build and push the image AGENT_IMG for PLATFORMS, once for each version of the agent.
	$(CONTAINER_TOOL) buildx build --push --platform $(PLATFORMS) -f cmd/agent/Dockerfile --build-arg VERSION=v$(AGENT_VERSION) -t $(AGENT_IMG) .

.PHONY: build-installer
build-installer: kubectl ## Write all manifests with the image IMG into dist/install.yaml.
	@mkdir -p dist
	@manifests=$$($(RENDER)) && echo "$$manifests" > dist/install.yaml

# One image for all platforms: it contains files only.
.PHONY: bundle-build
bundle-build: ## Build the image BUNDLE_IMG of the bundle.
	$(CONTAINER_TOOL) build -f bundle.Dockerfile -t $(BUNDLE_IMG) .

.PHONY: bundle-push
bundle-push: ## Push the image BUNDLE_IMG.
	$(CONTAINER_TOOL) push $(BUNDLE_IMG)

.PHONY: bundle-digest
bundle-digest: ## Name the pushed image BUNDLE_IMG of a release by its digest in the catalog.
	@test/cluster/build.sh '$(CACHE)/bin' cluster
	@digest=$$('$(CACHE)/bin/digests' '$(BUNDLE_IMG)') && echo "$$digest" >> 'config/catalog/released/$(VERSION)/digests'
	@$(SUB) catalog

.PHONY: catalog-buildx
catalog-buildx: ## Build and push the image CATALOG_IMG of the catalog for PLATFORMS.
	$(CONTAINER_TOOL) buildx build --push --platform $(PLATFORMS) -t $(CATALOG_IMG) config/catalog

.PHONY: catalog-build
catalog-build: ## Build the image CATALOG_IMG of the catalog for this machine's platform.
	$(CONTAINER_TOOL) build -t $(CATALOG_IMG) config/catalog

.PHONY: catalog-push
catalog-push: ## Push the image CATALOG_IMG.
	$(CONTAINER_TOOL) push $(CATALOG_IMG)

.PHONY: release
release: releasable test verify kubectl $(OPERATOR_SDK) $(OPM) ## Test, verify and release VERSION to CHANNELS; see docs/releasing.md.
	@MAKE='$(MAKE)' KUBECTL='$(KUBECTL)' DIGESTS='$(CACHE)/bin/digests' config/catalog/release.sh '$(VERSION)' $(CHANNELS)

# Checks before the tests that a release is possible. VERSION must be given on the command line to confirm the release.
.PHONY: releasable
releasable:
	@$(if $(filter command line,$(origin VERSION)),,echo "release: confirm the version: make release VERSION=$(VERSION)" >&2; exit 1;) \
		test/cluster/build.sh '$(CACHE)/bin' cluster && \
		DIGESTS='$(CACHE)/bin/digests' config/catalog/release.sh --check '$(VERSION)' $(CHANNELS)

# Tools are built if they are missing or their version has changed.

$(GOLANGCI_LINT): $(addprefix test/tools/golangci-lint/,main.go go.mod go.sum)
	@echo "Building golangci-lint with kube-api-linter; this takes some minutes the first time." >&2
	@cd test/tools/golangci-lint && CGO_ENABLED=0 go build -trimpath -o $@ .

$(OPERATOR_SDK): test/tools/operator-sdk/go.mod test/tools/operator-sdk/go.sum
	@test/cluster/build.sh '$(CACHE)/bin' operator-sdk && touch $@

$(OPM): test/cluster/olm/go.mod test/cluster/olm/go.sum
	@test/cluster/build.sh '$(CACHE)/bin' olm && touch $@

$(PROMTOOL): test/tools/prometheus/go.mod test/tools/prometheus/go.sum
	@test/cluster/build.sh '$(CACHE)/bin' prometheus && touch $@

.PHONY: kubectl
kubectl:
	@command -v '$(KUBECTL)' >/dev/null || test/cluster/build.sh '$(CACHE)/bin' kubernetes
