#!/bin/sh
# Releases the version in the making. "make release" calls it; docs/releasing.md tells what it does, and what comes after.
# Usage: config/catalog/release.sh [--check] VERSION CHANNEL...
# With --check, it only tells whether it would refuse.
set -eu
check=
[ "${1:-}" != --check ] || { check=1 && shift; }
version=$1
shift
cd "$(dirname "$0")/../.."
base=config/manifests/bases/memcached-operator.clusterserviceversion.yaml
frozen=config/catalog/released/$version

# Ends it before anything is committed: there is nothing to go back from.
refuse() {
	trap - EXIT
	echo "release: $*" >&2
	exit 1
}
sed --version 2>/dev/null | grep -q GNU || refuse "this sed is not GNU's, which is needed: put GNU sed first in the PATH"
in_making=$(sed -n 's/^VERSION ?= //p' Makefile)
[ "$version" = "$in_making" ] || refuse "the version in the making is $in_making (Makefile), not $version"
echo "$version" | grep -qxE '[0-9]+\.[0-9]+\.[0-9]+' || refuse "$version is not MAJOR.MINOR.PATCH"
case " $* " in
*" candidate "*) ;;
*) refuse "name the CHANNELS it goes to; every release is in candidate" ;;
esac
[ "$(git rev-parse --is-shallow-repository)" = false ] || refuse "the history is cut off here, 'git fetch --unshallow' gets it"
git symbolic-ref -q HEAD >/dev/null || refuse "no branch is checked out"
[ -z "$(git status --porcelain)" ] || refuse "commit or put away what is not committed"
git var GIT_COMMITTER_IDENT >/dev/null 2>&1 || refuse "git does not know who commits: git config user.name and user.email tell it"
[ ! -e "$frozen" ] || refuse "$frozen exists: $version has been released"
! git rev-parse -q --verify "refs/tags/v$version" >/dev/null || refuse "the tag v$version exists: $version has been released"
# Before anything is committed, so that a channel that does not exist is no reason to go back.
dry=$(mktemp) && cp config/catalog/template.yaml "$dry"
config/catalog/enter.sh "$dry" "$version" "$@"
empty=$(awk '/^name: / { name = $2 } /^- name: / { filled[name] } /^entries:/ { channels[name] } END { for (name in channels) if (!(name in filled)) printf "%s ", name }' "$dry")
rm "$dry"
[ -z "$empty" ] || refuse "nothing would be in the channel ${empty% }, and opm takes no empty channel: the first release goes to all of them"
[ -z "$check" ] || exit 0

start=$(git rev-parse HEAD)
trap '[ $? = 0 ] || echo "release: $version is not released. To be where you were: git reset --hard $start && git clean -fd" >&2' EXIT
bundle() {
	"$MAKE" --no-print-directory bundle bundle-validate VERSION="$1"
}

# What is released is what has been reviewed: nothing but the time is new in it.
bundle "$version"
[ -z "$(git status --porcelain)" ] || refuse "the bundle was not as its sources say; it is now: look at it, have it reviewed and commit it"
sed -i "s|^    createdAt: .*|    createdAt: \"$(date -u +%Y-%m-%dT%H:%M:%SZ)\"|" "$base"
bundle "$version"
go test -count=1 ./test/bundle
git commit -q -a -m "Release $version"
commit=$(git rev-parse HEAD)

# The bundle of that commit, for ever: what upgrades start from, and what later CustomResourceDefinitions are held against.
mkdir -p "$frozen"
cp -R bundle/manifests bundle/metadata bundle/tests "$frozen/"
echo "$commit" >"$frozen/commit"
git ls-tree -r "$commit:bundle" >"$frozen/files"
config/catalog/enter.sh config/catalog/template.yaml "$version" "$@"
"$MAKE" --no-print-directory catalog

# From here on the tree is the next version.
next=$(echo "$version" | awk -F. '{ print $1 "." $2 + 1 ".0" }')
sed -i "s|^VERSION ?= .*|VERSION ?= $next|" Makefile
bundle "$next"
go test -count=1 ./test/bundle
git add Makefile bundle bundle.Dockerfile config/catalog
git commit -q -m "Freeze $version, begin $next" -m "The bundle of $version is that of the commit $commit."
git tag -a -m "Release $version" "v$version" "$commit"

cat <<EOF
$version is commit $commit, tag v$version, in the channels: $*. The tree is $next now.
Look at it with git log -p -2, then publish it:
  git push origin HEAD v$version
and from a checkout of v$version the images of the operator, of the scorecard's tests and of the bundle:
  make docker-buildx bundle-build bundle-push VERSION=$version
and the catalog, from this commit if this is main; a fix of an old release comes to main first (docs/releasing.md):
  make catalog-buildx
EOF
