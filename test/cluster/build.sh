#!/bin/sh
# Builds programs from their Go modules into a directory. Go rebuilds only what has changed.
# Usage: test/cluster/build.sh DIRECTORY kubernetes|kubernetes-VERSION|containerd|coredns|olm|olm-VERSION|olmv1|operator-sdk|prometheus|cluster...
set -eu
out=$1
shift
command -v go >/dev/null || { echo "build.sh: no go in PATH; with sudo: sudo env \"PATH=\$PATH\" make ..." >&2; exit 1; }
mkdir -p "$out"
# One at a time: not everything is written atomically.
exec 9>"$out/.lock"
! command -v flock >/dev/null || flock 9
cd "$(dirname "$0")"

# Without libraries for local storage and signatures, which need C.
containers_tags=json1,containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper

# build SET PACKAGES...: builds packages of the module in the working directory.
build() {
	set=$1
	shift
	[ -e "$out/.$set" ] || echo "Building $set from its Go module into $into; the first time takes minutes." >&2
	start=$(date +%s)
	mkdir -p "$into"
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags "$tags" -ldflags "-s -w $ldflags" -o "$into/" "$@"
	touch "$out/.$set"
	echo "$set is up to date after $(($(date +%s) - start)) s." >&2
}

# version MODULE: prints the version of a module in go.mod.
version() {
	go list -m -f '{{.Version}}' "$1"
}

# set_kubernetes_version: adds the version to ldflags. Without it the version is v0.0.0-master, on which the behavior of
# clients depends.
set_kubernetes_version() {
	version=$(version k8s.io/kubernetes)
	minor=${version#v1.} minor=${minor%%.*}
	for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		ldflags="$ldflags -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=$minor"
	done
}

# copy_chart SET MODULE DIRECTORY: copies the chart in a module, and writes the module's version.
copy_chart() {
	rm -rf "$out/$1-chart"
	# The files in the module cache are read-only, which a copy must not be.
	cp -R --no-preserve=mode "$(go list -m -f '{{.Dir}}' "$2")/$3" "$out/$1-chart"
	version "$2" >"$out/.$1.version"
}

for set in "$@"; do
	tags='' ldflags='' into=$out
	case $set in
	kubernetes)
		cd kubernetes
		set_kubernetes_version
		build "$set" .
		for role in etcd kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubectl kubelet; do
			ln -sf kubernetes "$out/$role"
		done
		cd ..
		;;
	kubernetes-*)
		# A control plane of another version, with the etcd and kubectl of the set kubernetes.
		cd controlplane
		modfile=${set#kubernetes-}.mod
		[ "$modfile" != 1.30.mod ] || modfile=go.mod
		[ -e "$modfile" ] || { echo "build.sh: unknown set $set: kubernetes-1.30 and" ./*.mod "are known" >&2 && exit 2; }
		export GOFLAGS="-modfile=$modfile"
		set_kubernetes_version
		into=$out/$set
		build "$set" .
		unset GOFLAGS
		for role in kube-apiserver kube-controller-manager; do
			ln -sf controlplane "$into/$role"
		done
		for program in etcd kubectl; do
			ln -sf "../$program" "$into/$program"
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
	olm | olm-*)
		# olm-0.28.0 is an older version, which uses the opm of the set olm.
		cd olm
		tags=$containers_tags
		module=github.com/operator-framework/operator-lifecycle-manager
		programs='github.com/grpc-ecosystem/grpc-health-probe github.com/operator-framework/operator-registry/cmd/opm'
		if [ "$set" != olm ]; then
			[ -e "${set#olm-}.mod" ] || { echo "build.sh: unknown set $set: there are" ./*.mod >&2 && exit 2; }
			export GOFLAGS="-modfile=${set#olm-}.mod"
			into=$out/$set programs=
		fi
		ldflags="-X $module/pkg/version.OLMVersion=$(version $module)"
		# shellcheck disable=SC2086 # programs is a list
		build "$set" $programs $module/cmd/catalog $module/cmd/copy-content $module/cmd/olm $module/cmd/package-server \
			$module/util/cpb
		copy_chart "$set" $module deploy/chart
		cp --no-preserve=mode "$(go list -m -f '{{.Dir}}' $module)/deploy/upstream/values.yaml" "$out/$set-chart/upstream-values.yaml"
		[ "$set" != olm ] || version github.com/operator-framework/operator-registry >"$out/.opm.version"
		unset GOFLAGS
		cd ..
		;;
	olmv1)
		cd olmv1
		tags=$containers_tags
		build "$set" github.com/operator-framework/operator-controller/cmd/catalogd \
			github.com/operator-framework/operator-controller/cmd/operator-controller
		copy_chart "$set" github.com/operator-framework/operator-controller helm/olmv1
		cd ..
		;;
	operator-sdk)
		cd ../tools/operator-sdk
		tags=$containers_tags
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
		build "$set" . ./digests ./pause ./publish
		;;
	*)
		echo "build.sh: unknown set $set" >&2
		exit 2
		;;
	esac
done
