#!/bin/sh
# Demonstrates an upgrade on the cluster of "make cluster": Operator Lifecycle Manager installs the last release from a
# catalog and upgrades it to the tree while its samples run. "make demo" builds and pushes the images first. With --check,
# it only checks that there is a release.
# Settings, besides those of the cluster (KUBECONFIG, TEST_REGISTRY, RELATED_IMAGE_..., BUSYBOX_IMAGE): KUBECTL; BEGAN, the
# start of "make demo" in seconds since 1970.
set -eu
cd "$(dirname "$0")/../.."
[ -d config/catalog/released ] || {
	echo "demo: this tree has no release to upgrade from (config/catalog/released): use main, or a later tag" >&2
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

# show COMMAND...: prints a command as a user would type it, runs it and prints its output.
show() {
	printf '        $ %s\n' "$*"
	status=0
	out=$("$@" 2>&1) || status=$?
	printf '%s\n' "$out" | sed 's/^/          /'
	[ $status = 0 ] || { echo "demo: this command failed" >&2 && exit 1; }
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

# settled: waits until the manager runs with the settings of the Subscription. OLM starts it without them first.
settled() {
	for _ in $(seq 120); do
		case $(kubectl get --namespace $system deployment/memcached-operator-controller-manager -o jsonpath='{.spec.template.spec.containers[0].env[*].value}') in
		*"${RELATED_IMAGE_MEMCACHED:-}"*) kubectl rollout status --namespace $system deployment/memcached-operator-controller-manager --timeout=180s >/dev/null && return ;;
		esac
		sleep 1
	done
	echo "demo: the manager does not have the settings of the Subscription (spec.config)" >&2
	exit 1
}

# pods: prints the names, restarts and start times of the pods of the samples.
pods() {
	kubectl get pods --selector 'app in (nginx, memcached)' --sort-by=.metadata.name --no-headers \
		-o 'custom-columns=NAME:.metadata.name,RESTARTS:.status.containerStatuses[0].restartCount,STARTED:.status.startTime'
}

if kubectl get namespace $system >/dev/null 2>&1; then
	step "Deleting an earlier demo."
	kubectl delete --ignore-not-found namespace $system >/dev/null
	kubectl delete --ignore-not-found -k config/crd >/dev/null
	# OLM caches the content of a catalog by name for some minutes.
	kubectl rollout restart --namespace olm deployment/catalog-operator >/dev/null
	kubectl rollout status --namespace olm deployment/catalog-operator --timeout=120s >/dev/null
fi

step "Subscribing to release $last: config/catalog/install.yaml, with the catalog's image from this cluster's registry."
show sh -c "sed 's|image: .*|image: $images-catalog:released|; s|channel: .*|channel: candidate|' config/catalog/install.yaml | $KUBECTL apply -f -"
# Docker Hub may not be reachable: use the images of Debian's memcached and nginx in the registry of the cluster.
[ -z "${RELATED_IMAGE_MEMCACHED:-}" ] || kubectl patch --namespace $system subscriptions.operators.coreos.com/memcached-operator --type=merge --patch "{\"spec\": {\"config\": {\"env\": [
	{\"name\": \"RELATED_IMAGE_MEMCACHED\", \"value\": \"$RELATED_IMAGE_MEMCACHED\"},
	{\"name\": \"RELATED_IMAGE_NGINX\", \"value\": \"$RELATED_IMAGE_NGINX\"}]}}}" >/dev/null
installed "$last"
settled
step "OLM has installed it."
show kubectl get --namespace $system clusterserviceversions,pods

step "Applying the samples of this release: a Memcached and a Foo."
show kubectl apply -f config/samples/cache_v1alpha1_memcached.yaml -f config/samples/samplecontroller_v1alpha1_foo.yaml
kubectl wait --for=condition=Available --timeout=180s memcached/memcached-sample foo/foo-sample >/dev/null
kubectl wait --for=condition=Progressing=false --timeout=180s memcached/memcached-sample foo/foo-sample >/dev/null
step "They are available."
show kubectl get memcacheds,foos,deployments,pods

step "Storing and reading a value at every node of the Memcached, by its DNS name."
kubectl delete pod ask --ignore-not-found >/dev/null
show kubectl run ask --image="$images-probe:v$tree" --restart=Never -- memcached memcached-sample.default.svc
kubectl wait pod/ask --for=jsonpath='{.status.phase}'=Succeeded --timeout=60s >/dev/null || {
	kubectl logs ask >&2
	exit 1
}
show kubectl logs ask
kubectl delete pod ask >/dev/null

step "Upgrading to $tree: the catalog offers it, and OLM upgrades the operator."
before=$(pods)
kubectl patch --namespace $system catalogsource/memcached-operator --type=merge --patch "{\"spec\": {\"image\": \"$images-catalog:tree\"}}" >/dev/null
installed "$tree"
settled
step "The operator is upgraded; the pods of its operands are the same."
show kubectl get --namespace $system clusterserviceversions,pods
show kubectl get pods --selector 'app in (nginx, memcached)'
[ "$before" = "$(pods)" ] || {
	printf 'demo: the pods of the operands were, before the upgrade:\n%s\n' "$before" >&2
	exit 1
}

step "The upgrade adds the kind CronJob: all samples, with Jobs every five seconds and an image of this registry."
show sh -c "$KUBECTL kustomize config/samples | sed 's|image: .*busybox.*|image: ${BUSYBOX_IMAGE:-docker.io/library/busybox:1.37}|; s|schedule: .*|schedule: \"@every 5s\"|' | $KUBECTL apply -f -"
kubectl wait --for=jsonpath='{.status.lastSuccessfulTime}' --timeout=60s $cronjob >/dev/null || {
	kubectl describe $cronjob >&2
	exit 1
}
show kubectl patch $cronjob --type=merge -p '{"spec":{"suspend": true}}'
show kubectl get cronjobs.batch.tutorial.kubebuilder.io,jobs
show kubectl logs --selector=batch.kubernetes.io/job-name="$(kubectl get jobs --field-selector=status.successful=1 -o jsonpath='{.items[0].metadata.name}')"

step "Scaling with the new operator."
show kubectl scale memcached/memcached-sample --replicas=4
kubectl wait --for=jsonpath='{.status.readyNodes}'=4 --timeout=180s memcached/memcached-sample >/dev/null
show kubectl get memcached/memcached-sample

step "Done: release $last was installed from a catalog and upgraded to $tree, without a restart of the operands' pods."
cat <<EOF

The cluster stays up. To use it:
  export KUBECONFIG=$KUBECONFIG
Try next:
  $KUBECTL describe memcached memcached-sample
  $KUBECTL patch memcached memcached-sample --type=merge -p '{"spec":{"size": 2}}'
  $KUBECTL delete deployment memcached-sample        # the operator recreates it
  $KUBECTL explain memcached.status
  $KUBECTL patch $cronjob --type=merge -p '{"spec":{"suspend": false}}'
To delete it and its files:
  make cluster-down
EOF
