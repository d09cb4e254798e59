#!/bin/sh
# Builds the sample-controller into a directory, without the limit of 5 requests a second that client-go sets for each
# client. This needs a copy of client-go: the go command accepts no overlay of its module cache.
set -eu
out=$1
cd "$(dirname "$0")"
go mod download k8s.io/client-go
source=$(go list -m -f '{{.Dir}}' k8s.io/client-go)
rm -rf "$out/client-go"
cp -R "$source" "$out/client-go"
chmod -R u+w "$out/client-go"
config=$out/client-go/rest/config.go
sed -i.orig 's/DefaultQPS   float32 = 5.0/DefaultQPS   float32 = -1/' "$config"
if cmp -s "$config" "$config.orig"; then
	echo "$config does not have the limit" >&2
	exit 1
fi
cp go.mod "$out/unlimited.mod"
cp go.sum "$out/unlimited.sum"
go mod edit -replace="k8s.io/client-go=$out/client-go" "$out/unlimited.mod"
go build -trimpath -buildvcs=false -ldflags='-s -w' -modfile="$out/unlimited.mod" -o "$out/sample-controller" k8s.io/sample-controller
