#!/bin/sh
# Runs commands in order until one fails, and prints number, name, duration and result of each. The output of a command
# goes to a file in LOG-DIRECTORY, which is deleted first; if the command fails, the end of that file is printed. With
# V=1 the output goes to standard output instead, and no file is written.
# Usage: test/run-parts.sh LOG-DIRECTORY HEADING NAME COMMAND [NAME COMMAND]...
set -u
logs=$1 heading=$2
shift 2
total=$(($# / 2)) number=0 ticker=''
rm -rf "$logs"
mkdir -p "$logs" || exit 1
echo "$heading"

print_line() {
	printf '[%d/%d] %-34s %5d s' "$number" "$total" "$name" $(($(date +%s) - start))
}

stop_ticker() {
	[ -z "$ticker" ] || kill "$ticker" 2>/dev/null
	ticker=''
}
trap 'stop_ticker; exit 130' INT
trap 'stop_ticker; exit 143' TERM

while [ $# -gt 0 ]; do
	name=$1 command=$2
	shift 2
	number=$((number + 1))
	log=$logs/$number-$(echo "$name" | tr ' /' '--').log
	start=$(date +%s)
	status=0
	if [ -n "${V:-}" ]; then
		print_line && echo
		sh -c "$command" || status=$?
	else
		# On a terminal, update the duration every second.
		if [ -t 1 ]; then
			while :; do printf '\r' && print_line && sleep 1; done &
			ticker=$!
		fi
		sh -c "$command" >"$log" 2>&1 </dev/null || status=$?
		stop_ticker
		[ ! -t 1 ] || printf '\r'
	fi
	print_line
	if [ $status != 0 ]; then
		echo "  failed"
		[ -n "${V:-}" ] || { tail -n 60 "$log" && echo "$name failed. Full output: $log"; } >&2
		exit $status
	fi
	# The number of specs that ran, if the command is a Ginkgo suite and its output is in a file.
	result=$(sed -n 's/.*\(Ran [0-9]* of [0-9]* Specs\).*/\1/p' "$log" 2>/dev/null | tail -n 1) # colored
	echo "${result:+  $result}"
done
