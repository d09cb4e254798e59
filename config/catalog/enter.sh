#!/bin/sh
# Adds a version to channels of the catalog template. All entries of a channel are rewritten in the order of their
# versions: each replaces the one before it, and any older version may skip to it. A patch of an old release is thus
# inserted at its place and never offered to a newer version.
# Usage: config/catalog/enter.sh TEMPLATE VERSION CHANNEL...
set -eu
template=$1 version=$2
shift 2
refuse() {
	echo "enter.sh: $*" >&2
	exit 1
}

# in_channel CHANNEL PROGRAM [VARIABLE=value...]: runs an awk program on the template. Its variable "inside" is true in
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
	# Rewriting the entries would lose any other line.
	other=$(in_channel "$channel" 'inside && !/^(- name: memcached-operator\.v|  replaces: |  skipRange: )/')
	[ -z "$other" ] || refuse "the entries of the channel $channel contain a line that would be lost: $other"
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
