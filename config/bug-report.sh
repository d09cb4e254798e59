#!/bin/sh
# Prints what a bug report needs: versions, and the objects, events and logs of the operator and of the resources in
# some namespaces. It reads no Secret and no ConfigMap. It changes nothing, and goes on if something cannot be read.
# Usage: config/bug-report.sh NAMESPACE... >bug-report.txt
# The operator is looked for in memcached-operator-system, or in OPERATOR_NAMESPACE; KUBECTL is the kubectl to use.
set -u
: "${KUBECTL:=kubectl}" "${OPERATOR_NAMESPACE:=memcached-operator-system}"
[ $# -gt 0 ] || {
	echo "bug-report.sh: name the namespaces of the resources that do not work" >&2
	exit 2
}

# show ARGUMENTS...: prints a command of kubectl and its output.
show() {
	printf '\n$ kubectl %s\n' "$*"
	"$KUBECTL" "$@" 2>&1
}

# pods ARGUMENTS...: prints the names of pods.
pods() {
	"$KUBECTL" get pods --output=name "$@" 2>/dev/null
}

manager=app.kubernetes.io/name=memcached-operator,control-plane=controller-manager
show version
show get nodes --output=wide
show get customresourcedefinitions memcacheds.cache.example.com foos.samplecontroller.k8s.io cronjobs.batch.tutorial.kubebuilder.io

in=--namespace=$OPERATOR_NAMESPACE
show get "$in" deployments --selector=$manager --output=yaml
show get "$in" leases memcached-operator.example.com --output=yaml
show describe "$in" pods --selector=$manager
show get "$in" events --sort-by=.lastTimestamp
for pod in $(pods "$in" --selector=$manager); do
	show logs "$in" "$pod" --tail=5000
	show logs "$in" "$pod" --previous --tail=200
done
show get "$in" catalogsources,clusterserviceversions,installplans --output=wide
show get "$in" operatorgroups,subscriptions.operators.coreos.com --output=yaml
show get "$in" clusterserviceversions --output='jsonpath={range .items[*]}{.metadata.name}: {.status}{"\n"}{end}'
show get clusterextensions,clustercatalogs --output=yaml

for namespace; do
	in=--namespace=$namespace
	for kind in memcacheds foos cronjobs.batch.tutorial.kubebuilder.io; do
		show get "$in" $kind --output=yaml
	done
	children=deployments,statefulsets,replicasets,services,poddisruptionbudgets,jobs
	show get "$in" $children,pods --output=wide
	show get "$in" $children --selector=app.kubernetes.io/managed-by=memcached-operator --output=yaml
	show describe "$in" pods --selector='app in (memcached, nginx)'
	show get "$in" events --sort-by=.lastTimestamp
	for pod in $(pods "$in" --selector=app=memcached); do
		show logs "$in" "$pod" --all-containers --tail=100
	done
done
exit 0
