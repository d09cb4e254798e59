#!/bin/sh
# Writes the catalog of all that is released, and the bundles in it, into a directory:
#   OUT/catalog/memcached-operator/catalog.yaml   what opm serves, as it is when catalog/ is the image's /configs
#   OUT/bundle-VERSION/                           what the image REGISTRY/memcached-operator-bundle:vVERSION is made of
# Usage: config/catalog/render.sh [--tree] OUT [REGISTRY]
# With --tree, the bundle of the tree is in it as well, at the head of every channel. With another registry than
# ghcr.io/example, the images of our own are looked for there. OPM is the opm to use; SCORECARD_TEST_IMAGE, if it is set, is
# the image of operator-sdk's own scorecard tests.
set -eu
sed --version 2>/dev/null | grep -q GNU || {
	echo "render.sh: this sed is not GNU's, which is needed: put GNU sed first in the PATH" >&2
	exit 1
}
tree=
[ "$1" != --tree ] || { tree=1 && shift; }
out=$1 registry=${2:-ghcr.io/example}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/../.."
rm -rf "$out"/bundle-* "$out/catalog"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# take VERSION DIRECTORY: copies a bundle, with the images where the registry has them.
take() {
	bundle=$out/bundle-$1
	mkdir -p "$bundle"
	cp -R "$2/manifests" "$2/metadata" "$2/tests" "$bundle/"
	[ "$registry" = ghcr.io/example ] ||
		find "$bundle" -type f -exec sed -i "s|ghcr.io/example/|$registry/|g" {} +
	[ -z "${SCORECARD_TEST_IMAGE:-}" ] ||
		find "$bundle" -type f -exec sed -i "s|quay.io/operator-framework/scorecard-test:[^ ]*|$SCORECARD_TEST_IMAGE|g" {} +
}

sed "s|config/manifests/icon.svg|$(base64 <config/manifests/icon.svg | tr -d '\n')|" config/catalog/template.yaml >"$work/template.yaml"
for released in config/catalog/released/*/; do
	[ -d "$released" ] || continue
	take "$(basename "$released")" "$released"
done
if [ -n "$tree" ]; then
	version=$(sed -n 's/^  version: //p' bundle/manifests/memcached-operator.clusterserviceversion.yaml)
	config/catalog/enter.sh "$work/template.yaml" "$version" candidate stable
	take "$version" bundle
fi
set -- "$out"/bundle-*
[ -d "$1" ] || { echo "render.sh: nothing is released yet, so there is no catalog" >&2 && exit 0; }

# What the console shows is in the catalog itself, not the whole of the manifests: the cluster reads those from the bundle.
mkdir -p "$out/catalog/memcached-operator"
"$OPM" render "$work" "$@" --output yaml --migrate-level bundle-object-to-csv-metadata \
	--alpha-image-ref-template "$registry/memcached-operator-bundle:v{{.Version}}" >"$out/catalog/memcached-operator/catalog.yaml"
"$OPM" validate "$out/catalog"
