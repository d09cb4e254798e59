#!/bin/sh
# Writes bundle/ and bundle.Dockerfile from config/manifests: the same sources give the same files, at any time.
# Usage: config/manifests/bundle.sh VERSION IMAGE SCORECARD_IMAGE
# OPERATOR_SDK and KUBECTL are the programs to use.
set -eu
sed --version 2>/dev/null | grep -q GNU || {
	echo "bundle.sh: this sed is not GNU's, which is needed: put GNU sed first in the PATH" >&2
	exit 1
}
version=$1 image=$2 scorecard=$3
cd "$(dirname "$0")/../.."
base=config/manifests/bases/memcached-operator.clusterserviceversion.yaml
csv=bundle/manifests/memcached-operator.clusterserviceversion.yaml

# The descriptors of the fields, from the markers in api/ into the base.
"$OPERATOR_SDK" generate kustomize manifests --interactive=false -q
manifests=$(config/render.sh config/manifests controller:latest="$image" scorecard:latest="$scorecard")
# It leaves files of earlier runs where they are.
rm -rf bundle bundle.Dockerfile
log=$(printf '%s\n' "$manifests" | "$OPERATOR_SDK" generate bundle -q --overwrite --version "$version" \
	--channels candidate,stable --default-channel stable 2>&1) || { echo "$log" >&2 && exit 1; }

# It stamps the time of the run on the ClusterServiceVersion; the time of the release is in the base.
createdAt=$(sed -n 's/^    createdAt: //p' "$base")
# And it finds the images of the operands, but not the operator's own, which a mirror needs as well.
sed -i -e "s|^    createdAt: .*|    createdAt: $createdAt|" \
	-e "s|^  relatedImages:\$|&\n  - image: $image\n    name: memcached-operator|" "$csv"
grep -q "^    createdAt: $createdAt\$" "$csv" && grep -q '^    name: memcached-operator$' "$csv" || {
	echo "bundle.sh: $csv does not look as it used to: nowhere to put the time and the image" >&2
	exit 1
}

# OpenShift asks for the releases that minKubeVersion (1.30) means: 4.17 and later.
printf '\n  # The releases of OpenShift with the minKubeVersion of the ClusterServiceVersion.\n  com.redhat.openshift.versions: v4.17\n' >>bundle/metadata/annotations.yaml
sed -i 's|^LABEL operators.operatorframework.io.test.config.v1=.*|&\n\n# The releases of OpenShift with the minKubeVersion of the ClusterServiceVersion.\nLABEL com.redhat.openshift.versions=v4.17|' bundle.Dockerfile
