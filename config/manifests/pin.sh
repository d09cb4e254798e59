#!/bin/sh
# Replaces the tags of images in a bundle by digests, so that a mirror that knows only digests can serve them, and tells
# the manager the tags (IMAGE_TAGS), so that it leaves pods alone that have them. The bundle then says that it supports
# disconnected clusters, which requires a digest of every related image.
# Usage: config/manifests/pin.sh DIGESTS BUNDLE
# DIGESTS has a line with IMAGE and DIGEST for each image, as test/cluster/digests prints them.
set -eu
digests=$1 bundle=$2
csv=$bundle/manifests/memcached-operator.clusterserviceversion.yaml
tags=
while read -r image digest; do
	grep -q " $image\$" "$csv" || { echo "pin.sh: $csv does not contain $image" >&2 && exit 1; }
	find "$bundle" -type f -exec sed -i "s,\([ \"]\)$image\([\" ]\|\$\),\1${image%:*}@$digest\2," {} +
	tags=$tags${tags:+,}${image%:*}@$digest=$image
done <"$digests"
open=$(sed -n '/^  relatedImages:/,/^  [a-z]/s/^  - image: //p' "$csv" | grep -v @sha256: || true)
[ -z "$open" ] || { echo "pin.sh: there is no digest of" $open >&2 && exit 1; }
sed -i -e 's|^\(    features.operators.openshift.io/disconnected: \)"false"$|\1"true"|' \
	-e "s|^\( *\)- name: RELATED_IMAGE_NGINX\$|\1- name: IMAGE_TAGS\n\1  value: $tags\n&|" "$csv"
