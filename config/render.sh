#!/bin/sh
# Prints the manifests of a kustomization with other images.
# Usage: config/render.sh DIRECTORY NAME=IMAGE...
# NAME is a placeholder image in the manifests (controller:latest, scorecard:latest), or a variable of the manager's
# environment (RELATED_IMAGE_NGINX). An empty IMAGE changes nothing. KUBECTL is the kubectl to use.
set -eu
directory=$1
shift
manifests=$("${KUBECTL:-kubectl}" kustomize "$directory")
for choice in "$@"; do
	name=${choice%%=*} image=${choice#*=}
	[ -n "$image" ] || continue
	case $name in
	RELATED_IMAGE_*) change="/ name: $name\$/{n;s|value: .*|value: $image|;}" ;;
	*) change="s|\([iI]mage: \)$name\$|\1$image|" ;;
	esac
	changed=$(printf '%s\n' "$manifests" | sed "$change")
	# Do not ignore an image that the user expects to be used.
	case $changed in
	*": $image"*) manifests=$changed ;;
	*)
		echo "render.sh: $directory does not contain $name, so the image $image cannot be set" >&2
		exit 1
		;;
	esac
done
printf '%s\n' "$manifests"
