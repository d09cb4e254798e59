#!/bin/sh
# Builds programs from their Go modules into a directory. Go rebuilds only what has changed.
# Usage: test/cluster/build.sh DIRECTORY kubernetes|containerd|coredns|olm|operator-sdk|prometheus|cluster...
set -eu
out=$1
shift
command -v go >/dev/null || { echo "build.sh: no go in PATH; with sudo: sudo env \"PATH=\$PATH\" make ..." >&2; exit 1; }
mkdir -p "$out"
# One at a time: not everything is written atomically.
exec 9>"$out/.lock"
! command -v flock >/dev/null || flock 9
cd "$(dirname "$0")"

# build SET PACKAGES...: builds packages of the module in the working directory.
build() {
	set=$1
	shift
	[ -e "$out/.$set" ] || echo "Building $set from its Go module into $out; the first time takes minutes." >&2
	start=$(date +%s)
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags "$tags" -ldflags "-s -w $ldflags" -o "$out/" "$@"
	touch "$out/.$set"
	echo "$set is up to date after $(($(date +%s) - start)) s." >&2
}

# version MODULE: prints the version of a module in go.mod.
version() {
	go list -m -f '{{.Version}}' "$1"
}

for set in "$@"; do
	tags='' ldflags=''
	case $set in
	kubernetes)
		cd kubernetes
		version=$(version k8s.io/kubernetes)
		minor=${version#v1.} minor=${minor%%.*}
		# Without these the version is v0.0.0-master, on which the behavior of clients depends.
		for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
			ldflags="$ldflags -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=$minor"
		done
		build "$set" .
		for role in etcd kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubectl kubelet; do
			ln -sf kubernetes "$out/$role"
		done
		cd ..
		;;
	containerd)
		cd containerd
		ldflags="-X github.com/containerd/containerd/v2/version.Version=$(version github.com/containerd/containerd/v2)"
		build "$set" github.com/containerd/containerd/v2/cmd/containerd \
			github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2 github.com/containerd/containerd/v2/cmd/ctr
		cd ..
		;;
	coredns)
		cd coredns
		build "$set" .
		cd ..
		;;
	olm)
		cd olm
		tags=json1,containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper
		ldflags="-X github.com/operator-framework/operator-lifecycle-manager/pkg/version.OLMVersion=$(version github.com/operator-framework/operator-lifecycle-manager)"
		build "$set" github.com/grpc-ecosystem/grpc-health-probe \
			github.com/operator-framework/operator-lifecycle-manager/cmd/catalog \
			github.com/operator-framework/operator-lifecycle-manager/cmd/copy-content \
			github.com/operator-framework/operator-lifecycle-manager/cmd/olm \
			github.com/operator-framework/operator-lifecycle-manager/cmd/package-server \
			github.com/operator-framework/operator-lifecycle-manager/util/cpb \
			github.com/operator-framework/operator-registry/cmd/opm
		# The manifests of its releases. The files in the module cache are read-only, which a copy must not be.
		rm -rf "$out/olm-chart"
		cp -R --no-preserve=mode "$(go list -m -f '{{.Dir}}' github.com/operator-framework/operator-lifecycle-manager)/deploy/chart" "$out/olm-chart"
		cp --no-preserve=mode "$(go list -m -f '{{.Dir}}' github.com/operator-framework/operator-lifecycle-manager)/deploy/upstream/values.yaml" "$out/olm-chart/upstream-values.yaml"
		version github.com/operator-framework/operator-lifecycle-manager > "$out/.olm.version"
		version github.com/operator-framework/operator-registry > "$out/.opm.version"
		cd ..
		;;
	operator-sdk)
		cd ../tools/operator-sdk
		tags=json1,containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper
		version=$(version github.com/operator-framework/operator-sdk)
		package=github.com/operator-framework/operator-sdk/internal/version
		ldflags="-X $package.Version=$version -X $package.ImageVersion=$version"
		build "$set" github.com/operator-framework/operator-sdk/cmd/operator-sdk \
			github.com/operator-framework/operator-sdk/images/scorecard-test
		echo "$version" > "$out/.operator-sdk.version"
		cd ../../cluster
		;;
	prometheus)
		cd ../tools/prometheus
		tags=remove_all_sd,enable_kubernetes_sd # of the kinds of service discovery, only this one
		build "$set" github.com/prometheus/prometheus/cmd/prometheus github.com/prometheus/prometheus/cmd/promtool
		cd ../../cluster
		;;
	cluster)
		build "$set" . ./pause ./publish
		;;
	*)
		echo "build.sh: unknown set $set" >&2
		exit 2
		;;
	esac
done
