#!/bin/sh
# Writes the catalog of all releases, and their bundles, into a directory:
#   OUT/catalog/memcached-operator/catalog.yaml   the catalog; catalog/ becomes /configs of the catalog image
#   OUT/bundle-VERSION/                           the content of REGISTRY/memcached-operator-bundle:vVERSION
# Usage: config/catalog/render.sh [--tree [--digests FILE] [--next DIRECTORY]] OUT [REGISTRY]
# With --tree, the catalog also contains the bundle of the tree, at the head of every channel, with digests of a file as
# pin.sh takes it; with --next, also one that follows it, for tests. REGISTRY replaces ghcr.io/example in the names of
# this project's images. OPM is the opm to use; SCORECARD_TEST_IMAGE, if set, replaces the image of operator-sdk's own
# scorecard tests.
set -eu
sed --version 2>/dev/null | grep -q GNU || {
	echo "render.sh: GNU sed is required: put it first in the PATH" >&2
	exit 1
}
tree='' digests='' next=''
[ "$1" != --tree ] || { tree=1 && shift; }
[ "$1" != --digests ] || { digests=$2 && shift 2; }
[ "$1" != --next ] || { next=$2 && shift 2; }
out=$1 registry=${2:-ghcr.io/example}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/../.."
rm -rf "$out"/bundle-* "$out/catalog"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# take VERSION DIRECTORY: copies a bundle and replaces the registry of its images. A copy of an image has another digest
# if it is built for fewer platforms, so its tag names it again.
take() {
	bundle=$out/bundle-$1
	mkdir -p "$bundle"
	cp -R "$2/manifests" "$2/metadata" "$2/tests" "$bundle/"
	if [ "$registry" != ghcr.io/example ]; then
		[ ! -e "$2/digests" ] || while read -r image digest; do
			find "$bundle" -type f -exec sed -i "s|${image%:*}@$digest|$image|g" {} +
		done <"$2/digests"
		find "$bundle" -type f -exec sed -i "s|ghcr.io/example/|$registry/|g" {} +
	fi
	[ -z "${SCORECARD_TEST_IMAGE:-}" ] ||
		find "$bundle" -type f -exec sed -i "s|quay.io/operator-framework/scorecard-test:[^ ]*|$SCORECARD_TEST_IMAGE|g" {} +
}

sed "s|config/manifests/icon.svg|$(base64 <config/manifests/icon.svg | tr -d '\n')|" config/catalog/template.yaml >"$work/template.yaml"
for released in config/catalog/released/*/; do
	[ -d "$released" ] || continue
	take "$(basename "$released")" "$released"
done
for added in ${tree:+bundle} ${next:+"$next"}; do
	version=$(sed -n 's/^  version: //p' "$added/manifests/memcached-operator.clusterserviceversion.yaml")
	config/catalog/enter.sh "$work/template.yaml" "$version" candidate stable
	take "$version" "$added"
	[ "$added" != bundle ] || [ -z "$digests" ] || config/manifests/pin.sh "$digests" "$out/bundle-$version"
done
set -- "$out"/bundle-*
[ -d "$1" ] || { echo "render.sh: no version has been released, so there is no catalog" >&2 && exit 0; }

# The catalog contains the metadata that consoles show, and not the manifests: OLM reads those from the bundle image.
mkdir -p "$out/catalog/memcached-operator"
catalog=$out/catalog/memcached-operator/catalog.yaml
"$OPM" render "$work" "$@" --output yaml --migrate-level bundle-object-to-csv-metadata \
	--alpha-image-ref-template "$registry/memcached-operator-bundle:v{{.Version}}" >"$catalog"
# "make bundle-digest" has added the digests of bundles to those of the images in them.
cat config/catalog/released/*/digests 2>/dev/null | grep "^$registry/memcached-operator-bundle:" |
	while read -r image digest; do
		sed -i "s|$image\$|${image%:*}@$digest|" "$catalog"
	done
"$OPM" validate "$out/catalog"
