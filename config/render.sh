#!/bin/sh
# Prints the manifests of a kustomization with the images that somebody has chosen.
# Usage: config/render.sh DIRECTORY NAME=IMAGE...
# NAME is an image that the manifests have in place of the real one (controller:latest, scorecard:latest), or a variable of
# the manager's environment (RELATED_IMAGE_NGINX). Without IMAGE, nothing is changed. KUBECTL is the kubectl to use.
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
	# An image that goes nowhere is one that the user believes is used.
	case $changed in
	*": $image"*) manifests=$changed ;;
	*)
		echo "render.sh: $directory has no $name to put $image in" >&2
		exit 1
		;;
	esac
done
printf '%s\n' "$manifests"
