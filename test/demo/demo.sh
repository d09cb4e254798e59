#!/bin/sh
# Demonstrates an upgrade on the cluster of "make cluster": Operator Lifecycle Manager (OLM) installs the last release
# from a catalog and upgrades it to the version of this tree while the samples run. "make demo" builds and pushes the
# images first. With --check, the script only checks that a release exists.
# Environment: the settings of the cluster (KUBECONFIG, TEST_REGISTRY, RELATED_IMAGE_...); KUBECTL; BEGAN,
# the start of the demo in seconds since 1970.
set -eu
cd "$(dirname "$0")/../.."
[ -d config/catalog/released ] || {
	echo "demo: config/catalog/released contains no release to upgrade from: check out main or a later tag" >&2
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

# step TEXT: prints the number of the step, the time since the start, and what happens next.
number=0 total=9
step() {
	number=$((number + 1))
	printf '\n[%d/%d, %d s] %s\n' $number $total $(($(date +%s) - BEGAN)) "$*"
}

# show COMMAND...: prints a command as a user would type it, runs it and prints its output.
show() {
	printf '        $ %s\n' "$*"
	status=0
	out=$("$@" 2>&1) || status=$?
	printf '%s\n' "$out" | sed 's/^/          /'
	[ $status = 0 ] || { echo "demo: the command failed with exit code $status" >&2 && exit 1; }
}

# installed VERSION: waits until OLM has installed this version.
installed() {
	kubectl wait --namespace $system subscriptions.operators.coreos.com/memcached-operator --for=jsonpath='{.status.installedCSV}'=memcached-operator.v"$1" --timeout=300s >/dev/null &&
		kubectl wait --namespace $system clusterserviceversion/memcached-operator.v"$1" --for=jsonpath='{.status.phase}'=Succeeded --timeout=300s >/dev/null || {
		echo "demo: OLM has not installed $1:" >&2
		kubectl get --namespace $system catalogsources,subscriptions.operators.coreos.com,installplans,clusterserviceversions,pods >&2
		kubectl get --namespace $system subscriptions.operators.coreos.com/memcached-operator -o jsonpath='{.status.conditions}' >&2
		exit 1
	}
}

# settled: waits until the manager runs with the settings of the Subscription. OLM first starts it without them.
settled() {
	for _ in $(seq 120); do
		case $(kubectl get --namespace $system deployment/memcached-operator-controller-manager -o jsonpath='{.spec.template.spec.containers[0].env[*].value}') in
		*"${RELATED_IMAGE_MEMCACHED:-}"*) kubectl rollout status --namespace $system deployment/memcached-operator-controller-manager --timeout=180s >/dev/null && return ;;
		esac
		sleep 1
	done
	echo "demo: the manager's Deployment does not have the settings in spec.config of the Subscription" >&2
	exit 1
}

# pods: prints the names, restarts and start times of the pods of the samples.
pods() {
	kubectl get pods --selector 'app in (nginx, memcached)' --sort-by=.metadata.name --no-headers \
		-o 'custom-columns=NAME:.metadata.name,RESTARTS:.status.containerStatuses[0].restartCount,STARTED:.status.startTime'
}

step "Deleting the resources of an earlier demo, if any."
kubectl delete --ignore-not-found namespace $system >/dev/null
kubectl delete --ignore-not-found -k config/crd >/dev/null
# OLM caches the content of a catalog for some minutes, by the catalog's name: that of an earlier demo, or of "make e2e".
kubectl rollout restart --namespace olm deployment/catalog-operator >/dev/null
kubectl rollout status --namespace olm deployment/catalog-operator --timeout=120s >/dev/null

step "Subscribing to release $last: config/catalog/install.yaml with the catalog image in the cluster's registry."
show sh -c "sed 's|image: .*|image: $images-catalog:released|; s|channel: .*|channel: candidate|' config/catalog/install.yaml | $KUBECTL apply -f -"
# The cluster may not reach Docker Hub: use the images in its registry, built from Debian's memcached and nginx.
[ -z "${RELATED_IMAGE_MEMCACHED:-}" ] || kubectl patch --namespace $system subscriptions.operators.coreos.com/memcached-operator --type=merge --patch "{\"spec\": {\"config\": {\"env\": [
	{\"name\": \"RELATED_IMAGE_MEMCACHED\", \"value\": \"$RELATED_IMAGE_MEMCACHED\"},
	{\"name\": \"RELATED_IMAGE_AGENT\", \"value\": \"$images-agent:v$(cat cmd/agent/VERSION)\"},
	{\"name\": \"RELATED_IMAGE_NGINX\", \"value\": \"$RELATED_IMAGE_NGINX\"}]}}}" >/dev/null
step "Waiting until OLM has installed release $last."
installed "$last"
settled
show kubectl get --namespace $system clusterserviceversions,pods

step "Applying the samples of this release: a Memcached and a Foo."
show kubectl apply -f config/samples/cache_v1alpha1_memcached.yaml -f config/samples/samplecontroller_v1alpha1_foo.yaml
step "Waiting until the samples are available and rolled out."
kubectl wait --for=condition=Available --timeout=180s memcached/memcached-sample foo/foo-sample >/dev/null
kubectl wait --for=condition=Progressing=false --timeout=180s memcached/memcached-sample foo/foo-sample >/dev/null
show kubectl get memcacheds,foos,deployments,pods

step "Storing and reading a value on every node of the Memcached, found by its DNS name."
kubectl delete pod ask --ignore-not-found >/dev/null
show kubectl run ask --image="$images-probe:v$tree" --restart=Never -- memcached memcached-sample.default.svc
kubectl wait pod/ask --for=jsonpath='{.status.phase}'=Succeeded --timeout=60s >/dev/null || {
	kubectl logs ask >&2
	exit 1
}
show kubectl logs ask
kubectl delete pod ask >/dev/null

step "Upgrading to $tree: the catalog now contains it, and OLM upgrades the operator."
before=$(pods)
kubectl patch --namespace $system catalogsource/memcached-operator --type=merge --patch "{\"spec\": {\"image\": \"$images-catalog:tree\"}}" >/dev/null
installed "$tree"
settled
show kubectl get --namespace $system clusterserviceversions,pods
show kubectl get pods --selector 'app in (nginx, memcached)'
[ "$before" = "$(pods)" ] || {
	printf 'demo: the upgrade changed the pods of the operands. Before the upgrade:\n%s\n' "$before" >&2
	exit 1
}
echo "        The operator is upgraded, and the pods of its operands were not restarted."

step "Applying more samples: a Memcached whose nodes have stable names, and a CronJob, here with a Job every 5 seconds."
show sh -c "sed 's|schedule: .*|schedule: \"@every 5s\"|' config/samples/batch_v1_cronjob.yaml | $KUBECTL apply -f - -f config/samples/cache_v1alpha1_memcached_statefulset.yaml"
kubectl wait --for=jsonpath='{.status.lastSuccessfulTime}' --timeout=60s $cronjob >/dev/null || {
	kubectl describe $cronjob >&2
	exit 1
}
show kubectl patch $cronjob --type=merge -p '{"spec":{"suspend": true}}'
show kubectl get cronjobs.batch.tutorial.kubebuilder.io,jobs
show kubectl logs --selector=batch.kubernetes.io/job-name="$(kubectl get jobs --field-selector=status.successful=1 -o jsonpath='{.items[0].metadata.name}')"

step "Scaling the Memcached with the new operator."
show kubectl scale memcached/memcached-sample --replicas=4
kubectl wait --for=jsonpath='{.status.readyNodes}'=4 --timeout=180s memcached/memcached-sample >/dev/null
show kubectl get memcached/memcached-sample

cat <<EOF

Done in $(($(date +%s) - BEGAN)) s: OLM installed release $last from a catalog and upgraded it to $tree.
No operand pod was restarted.

The cluster keeps running. To use it:
  export KUBECONFIG=$KUBECONFIG
Try next:
  $KUBECTL describe memcached memcached-sample
  $KUBECTL patch memcached memcached-sample --type=merge -p '{"spec":{"size": 2}}'
  $KUBECTL delete deployment memcached-sample        # the operator recreates it
  $KUBECTL explain memcached.status
  $KUBECTL patch $cronjob --type=merge -p '{"spec":{"suspend": false}}'
To delete the cluster and its files:
  make cluster-down
EOF
