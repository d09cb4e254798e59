#!/bin/sh
# Runs the parts of a long command one after the other and prints one line for each: number, name, time, result. The output of
# a part goes to a log file, whose end is printed if the part fails. With V=1 it goes to standard output as well.
# Usage: test/run-parts.sh LOG-DIRECTORY FIRST-LINE NAME COMMAND [NAME COMMAND]...
set -u
logs=$1 first=$2
shift 2
total=$(($# / 2)) number=0 ticker=''
rm -rf "$logs"
mkdir -p "$logs" || exit 1
echo "$first"

line() {
	printf '[%d/%d] %-34s %5d s' "$number" "$total" "$name" $(($(date +%s) - start))
}

stop_ticker() {
	[ -z "$ticker" ] || kill "$ticker" 2>/dev/null
	ticker=''
}
trap 'stop_ticker; exit 130' INT TERM

while [ $# -gt 0 ]; do
	name=$1 command=$2
	shift 2
	number=$((number + 1))
	log=$logs/$number-$(echo "$name" | tr ' /' '--').log
	start=$(date +%s)
	status=0
	if [ -n "${V:-}" ]; then
		line && echo
		sh -c "$command" || status=$?
	else
		if [ -t 1 ]; then
			while :; do printf '\r' && line && sleep 1; done &
			ticker=$!
		fi
		sh -c "$command" >"$log" 2>&1 </dev/null || status=$?
		stop_ticker
		[ ! -t 1 ] || printf '\r'
	fi
	line
	if [ $status != 0 ]; then
		echo "  failed"
		[ -n "${V:-}" ] || { tail -n 60 "$log" && echo "$name failed. The whole output: $log"; } >&2
		exit $status
	fi
	# What the test runner reports, in its own words.
	result=$(sed -n 's/^\(Ran [0-9]* of [0-9]* Specs\).*/\1/p' "$log" 2>/dev/null | tail -n 1)
	echo "${result:+  $result}"
done
