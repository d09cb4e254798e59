#!/bin/sh
# Generates bundle/ and bundle.Dockerfile from config/manifests. The output is reproducible.
# Usage: config/manifests/bundle.sh VERSION IMAGE SCORECARD_IMAGE
# The commit of a release has digests, which replace the tags of the images.
# OPERATOR_SDK and KUBECTL are the programs to use.
set -eu
sed --version 2>/dev/null | grep -q GNU || {
	echo "bundle.sh: GNU sed is required: put it first in the PATH" >&2
	exit 1
}
version=$1 image=$2 scorecard=$3
cd "$(dirname "$0")/../.."
base=config/manifests/bases/memcached-operator.clusterserviceversion.yaml
csv=bundle/manifests/memcached-operator.clusterserviceversion.yaml

# Update the descriptors in the base from the markers in api/.
"$OPERATOR_SDK" generate kustomize manifests --interactive=false -q
manifests=$(config/render.sh config/manifests controller:latest="$image")
# "generate bundle" does not delete files of earlier runs.
rm -rf bundle bundle.Dockerfile
log=$(printf '%s\n' "$manifests" | "$OPERATOR_SDK" generate bundle -q --overwrite --version "$version" \
	--channels candidate,stable --default-channel stable 2>&1) || { echo "$log" >&2 && exit 1; }
config/render.sh config/scorecard/custom scorecard:latest="$scorecard" >bundle/tests/scorecard/custom.yaml

# operator-sdk sets createdAt to the current time. Restore the value in the base, the time of the release.
createdAt=$(sed -n 's/^    createdAt: //p' "$base")
# It adds the operands' images to relatedImages, but not the operator's own, which mirrors need too.
sed -i -e "s|^    createdAt: .*|    createdAt: $createdAt|" \
	-e "s|^  relatedImages:\$|&\n  - image: $image\n    name: memcached-operator|" "$csv"
grep -q "^    createdAt: $createdAt\$" "$csv" && grep -q '^    name: memcached-operator$' "$csv" || {
	echo "bundle.sh: $csv has an unexpected format: createdAt or relatedImages was not found" >&2
	exit 1
}

# OpenShift's catalogs need the OpenShift versions that meet minKubeVersion (1.30): 4.17 and later.
comment='# The releases of OpenShift with the minKubeVersion of the ClusterServiceVersion.'
printf '\n  %s\n  com.redhat.openshift.versions: v4.17\n' "$comment" >>bundle/metadata/annotations.yaml
last='^LABEL operators.operatorframework.io.test.config.v1=.*'
sed -i "s|$last|&\\n\\n$comment\\nLABEL com.redhat.openshift.versions=v4.17|" bundle.Dockerfile
[ ! -e config/manifests/digests ] || config/manifests/pin.sh config/manifests/digests bundle
