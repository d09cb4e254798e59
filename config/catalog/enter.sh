#!/bin/sh
# Enters a version into channels. What a channel has is written anew, in the order of versions: each replaces the one before it,
# and who has any older one may skip to it. So a fix of an old release goes where it belongs, and nobody is led back to it.
# Usage: config/catalog/enter.sh TEMPLATE VERSION CHANNEL...
set -eu
template=$1 version=$2
shift 2
refuse() {
	echo "enter.sh: $*" >&2
	exit 1
}

# in_channel CHANNEL PROGRAM [VARIABLE=value...]: runs a program of awk on the template, in which "inside" tells which lines are
# the entries of the channel.
in_channel() {
	channel=$1 program=$2
	shift 2
	printf '%s\n' "$entered" | awk "$@" -v channel="$channel" '
		/^---/ { schema = name = inside = "" }
		/^schema: / { schema = $2 }
		/^name: / { name = $2 }
		'"$program"'
		/^entries:/ { inside = schema == "olm.channel" && name == channel }'
}

entered=$(cat "$template")
for channel in "$@"; do
	in_channel "$channel" '/^entries:/ && schema == "olm.channel" && name == channel { found = 1 } END { exit !found }' ||
		refuse "there is no channel $channel"
	# Anything else would be lost.
	other=$(in_channel "$channel" 'inside && !/^(- name: memcached-operator\.v|  replaces: |  skipRange: )/')
	[ -z "$other" ] || refuse "among the entries of the channel $channel is what cannot be kept: $other"
	versions=$(in_channel "$channel" 'inside && sub(/^- name: memcached-operator\.v/, "")')
	! printf '%s\n' "$versions" | grep -qxF "$version" || refuse "memcached-operator.v$version is in the channel $channel already"
	versions=$(printf '%s\n' $versions "$version" | sort -V)
	entered=$(in_channel "$channel" '
		!inside { print }
		/^entries:/ && schema == "olm.channel" && name == channel {
			n = split(versions, version, " ")
			for (i = 1; i <= n; i++) {
				print "- name: memcached-operator.v" version[i]
				if (i > 1) print "  replaces: memcached-operator.v" version[i-1] "\n  skipRange: \047>=0.1.0 <" version[i] "\047"
			}
		}' -v versions="$(echo $versions)")
done
printf '%s\n' "$entered" >"$template"
