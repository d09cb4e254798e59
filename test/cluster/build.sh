#!/bin/sh
# Builds the control plane that tests run on and prints the directory of its programs, for KUBEBUILDER_ASSETS.
# Usage: test/cluster/build.sh DIRECTORY
#
# What was built before is not built again: Go knows what has changed.
set -eu
out=$1
cd "$(dirname "$0")"

kubernetes=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
etcd=$(go list -m -f '{{.Version}}' go.etcd.io/etcd/server/v3)
minor=${kubernetes#v1.} minor=${minor%%.*}
component=k8s.io/component-base/version
mkdir -p "$out"

[ -x "$out/cluster" ] || echo "Building etcd $etcd and Kubernetes $kubernetes from their Go modules into $out; the first time takes some minutes." >&2
start=$(date +%s)
# Without these the programs call themselves v0.0.0-master, and clients draw conclusions from that.
CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$out/cluster" -ldflags "-s -w \
	-X $component.gitVersion=$kubernetes -X $component.gitMajor=1 -X $component.gitMinor=$minor \
	-X k8s.io/client-go/pkg/version.gitVersion=$kubernetes" .
for role in etcd kube-apiserver kube-controller-manager kubectl; do
	ln -sf cluster "$out/$role"
done
echo "Control plane: etcd $etcd, Kubernetes $kubernetes, built or found up to date in $(($(date +%s) - start)) s." >&2
echo "$out"
