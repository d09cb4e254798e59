#!/bin/sh
# Shows the main job on the cluster of "make cluster": the last release is installed from a catalog by Operator Lifecycle
# Manager, runs its samples, and is upgraded to the tree under their eyes; what that has more is run too. "make demo" builds and
# pushes all that is needed first. With --check, it only tells whether there is a release to begin with.
# Settings, besides those of the cluster (KUBECONFIG, TEST_REGISTRY, RELATED_IMAGE_..., BUSYBOX_IMAGE): KUBECTL; BEGAN, the
# seconds since 1970 when it all began.
set -eu
cd "$(dirname "$0")/../.."
[ -d config/catalog/released ] || {
	echo "demo: no release is frozen in this tree (config/catalog/released), so there is none to upgrade from: use main, or a later tag" >&2
	exit 1
}
[ "${1:-}" != --check ] || exit 0
: "${KUBECTL:=kubectl}" "${BEGAN:=$(date +%s)}"
system=memcached-operator-system
cronjob=cronjobs.batch.tutorial.kubebuilder.io/cronjob-sample
images=$TEST_REGISTRY/memcached-operator
tree=$(sed -n 's/^  version: //p' bundle/manifests/memcached-operator.clusterserviceversion.yaml)
last=$(ls config/catalog/released | sort -V | tail -n 1)

kubectl() {
	"$KUBECTL" "$@"
}

step() {
	printf '\n[%4ds] %s\n' $(($(date +%s) - BEGAN)) "$*"
}

# show COMMAND...: runs a command as a user would type it, and what it prints.
show() {
	printf '        $ %s\n' "$*"
	status=0
	out=$("$@" 2>&1) || status=$?
	printf '%s\n' "$out" | sed 's/^/          /'
	[ $status = 0 ] || { echo "demo: this failed, so the demonstration ends here" >&2 && exit 1; }
}

# installed VERSION: waits until OLM has installed it.
installed() {
	kubectl wait --namespace $system subscriptions.operators.coreos.com/memcached-operator --for=jsonpath='{.status.installedCSV}'=memcached-operator.v"$1" --timeout=300s >/dev/null &&
		kubectl wait --namespace $system clusterserviceversion/memcached-operator.v"$1" --for=jsonpath='{.status.phase}'=Succeeded --timeout=300s >/dev/null || {
		echo "demo: OLM has not installed $1:" >&2
		kubectl get --namespace $system catalogsources,subscriptions.operators.coreos.com,installplans,clusterserviceversions,pods >&2
		kubectl get --namespace $system subscriptions.operators.coreos.com/memcached-operator -o jsonpath='{.status.conditions}' >&2
		exit 1
	}
}

# settled: waits until the manager has the settings of the Subscription. OLM starts it without them first.
settled() {
	for _ in $(seq 120); do
		case $(kubectl get --namespace $system deployment/memcached-operator-controller-manager -o jsonpath='{.spec.template.spec.containers[0].env[*].value}') in
		*"${RELATED_IMAGE_MEMCACHED:-}"*) kubectl rollout status --namespace $system deployment/memcached-operator-controller-manager --timeout=180s >/dev/null && return ;;
		esac
		sleep 1
	done
	echo "demo: the manager has not got the Subscription's settings (spec.config)" >&2
	exit 1
}

# pods: name, restarts and time of start of what the samples run.
pods() {
	kubectl get pods --selector 'app in (nginx, memcached)' --sort-by=.metadata.name --no-headers \
		-o 'custom-columns=NAME:.metadata.name,RESTARTS:.status.containerStatuses[0].restartCount,STARTED:.status.startTime'
}

if kubectl get namespace $system >/dev/null 2>&1; then
	step "Clearing away an earlier demo."
	kubectl delete --ignore-not-found namespace $system >/dev/null
	kubectl delete --ignore-not-found -k config/crd >/dev/null
	# OLM remembers for some minutes what a catalog of this name had.
	kubectl rollout restart --namespace olm deployment/catalog-operator >/dev/null
	kubectl rollout status --namespace olm deployment/catalog-operator --timeout=120s >/dev/null
fi

step "Subscribing to release $last: config/catalog/install.yaml, with the catalog's image from this cluster's registry."
show sh -c "sed 's|image: .*|image: $images-catalog:released|; s|channel: .*|channel: candidate|' config/catalog/install.yaml | $KUBECTL apply -f -"
# Docker Hub is out of reach here; Debian's memcached and nginx are not.
[ -z "${RELATED_IMAGE_MEMCACHED:-}" ] || kubectl patch --namespace $system subscriptions.operators.coreos.com/memcached-operator --type=merge --patch "{\"spec\": {\"config\": {\"env\": [
	{\"name\": \"RELATED_IMAGE_MEMCACHED\", \"value\": \"$RELATED_IMAGE_MEMCACHED\"},
	{\"name\": \"RELATED_IMAGE_NGINX\", \"value\": \"$RELATED_IMAGE_NGINX\"}]}}}" >/dev/null
installed "$last"
settled
step "OLM has installed it."
show kubectl get --namespace $system clusterserviceversions,pods

step "Applying the samples of what this release has: a Memcached and a Foo."
show kubectl apply -f config/samples/cache_v1alpha1_memcached.yaml -f config/samples/samplecontroller_v1alpha1_foo.yaml
kubectl wait --for=condition=Available --timeout=180s memcached/memcached-sample foo/foo-sample >/dev/null
kubectl wait --for=condition=Progressing=false --timeout=180s memcached/memcached-sample foo/foo-sample >/dev/null
step "They work."
show kubectl get memcacheds,foos,deployments,pods

step "Asking every node of the Memcached to keep a value and to give it back, by its DNS name."
kubectl delete pod ask --ignore-not-found >/dev/null
show kubectl run ask --image="$images-probe:v$tree" --restart=Never -- memcached memcached-sample.default.svc
kubectl wait pod/ask --for=jsonpath='{.status.phase}'=Succeeded --timeout=60s >/dev/null || {
	kubectl logs ask >&2
	exit 1
}
show kubectl logs ask
kubectl delete pod ask >/dev/null

step "Upgrading to $tree: the catalog offers it from now on, and OLM does the rest."
before=$(pods)
kubectl patch --namespace $system catalogsource/memcached-operator --type=merge --patch "{\"spec\": {\"image\": \"$images-catalog:tree\"}}" >/dev/null
installed "$tree"
settled
step "The operator is upgraded; its operands have not noticed."
show kubectl get --namespace $system clusterserviceversions,pods
show kubectl get pods --selector 'app in (nginx, memcached)'
[ "$before" = "$(pods)" ] || {
	printf 'demo: the pods of the operands were, before the upgrade:\n%s\n' "$before" >&2
	exit 1
}

step "The upgrade has brought a kind, CronJob: all samples, the Jobs with a shell from this cluster's registry, and every five seconds."
show sh -c "$KUBECTL kustomize config/samples | sed 's|image: .*busybox.*|image: ${BUSYBOX_IMAGE:-docker.io/library/busybox:1.37}|; s|schedule: .*|schedule: \"@every 5s\"|' | $KUBECTL apply -f -"
kubectl wait --for=jsonpath='{.status.lastSuccessfulTime}' --timeout=60s $cronjob >/dev/null || {
	kubectl describe $cronjob >&2
	exit 1
}
show kubectl patch $cronjob --type=merge -p '{"spec":{"suspend": true}}'
show kubectl get cronjobs.batch.tutorial.kubebuilder.io,jobs
show kubectl logs --selector=batch.kubernetes.io/job-name="$(kubectl get jobs --field-selector=status.successful=1 -o jsonpath='{.items[0].metadata.name}')"

step "The new operator at work: kubectl scale memcached/memcached-sample --replicas=4"
show kubectl scale memcached/memcached-sample --replicas=4
kubectl wait --for=jsonpath='{.status.readyNodes}'=4 --timeout=180s memcached/memcached-sample >/dev/null
show kubectl get memcached/memcached-sample

step "Done: release $last was installed from a catalog, ran a Memcached and a Foo, and was upgraded to $tree, which runs CronJobs too, without a restart of theirs."
cat <<EOF

The cluster stays up. To use it:
  export KUBECONFIG=$KUBECONFIG
Try next:
  $KUBECTL describe memcached memcached-sample
  $KUBECTL patch memcached memcached-sample --type=merge -p '{"spec":{"size": 2}}'
  $KUBECTL delete deployment memcached-sample        # and look at it again
  $KUBECTL explain memcached.status
  $KUBECTL patch $cronjob --type=merge -p '{"spec":{"suspend": false}}'
To remove it and all it keeps:
  make cluster-down
EOF
