#!/bin/sh
# Puts a version at the head of channels: it replaces what has been the head, and who has any older one may skip to it.
# Usage: config/catalog/enter.sh TEMPLATE VERSION CHANNEL...
set -eu
template=$1 version=$2
shift 2
entered=$(awk -v version="$version" -v channels="$*" '
	# The entry, at the end of the document that has just been read.
	function enter() {
		if (schema != "olm.channel" || !(channel in wanted)) return
		print "- name: memcached-operator.v" version
		if (head != "") print "  replaces: " head "\n  skipRange: \x27>=0.1.0 <" version "\x27"
		delete wanted[channel]
	}
	BEGIN { n = split(channels, names, " "); for (i = 1; i <= n; i++) wanted[names[i]] }
	/^---/ { enter(); schema = channel = head = "" }
	/^schema: / { schema = $2 }
	/^name: / { channel = $2 }
	/^- name: / { head = $3 }
	channel in wanted && head == "memcached-operator.v" version { print "enter.sh: " head " is in the channel " channel " already" > "/dev/stderr"; failed = 1; exit 1 }
	{ print }
	END {
		if (failed) exit 1
		enter()
		for (channel in wanted) { print "enter.sh: there is no channel " channel > "/dev/stderr"; exit 1 }
	}' "$template")
printf '%s\n' "$entered" >"$template"
