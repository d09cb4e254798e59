#!/bin/sh
# Releases the version that the tree is developing (VERSION in the Makefile). "make release" calls it; docs/releasing.md
# documents what it does, and the steps before and after it.
# Usage: config/catalog/release.sh [--check] VERSION CHANNEL...
# With --check, it only checks that the release is possible. DIGESTS is the program test/cluster/digests.
set -eu
check=
[ "${1:-}" != --check ] || { check=1 && shift; }
version=$1
shift
cd "$(dirname "$0")/../.."
base=config/manifests/bases/memcached-operator.clusterserviceversion.yaml
frozen=config/catalog/released/$version

# refuse MESSAGE: exits before anything is committed, so nothing has to be reverted.
refuse() {
	trap - EXIT
	echo "release: $*" >&2
	exit 1
}
sed --version 2>/dev/null | grep -q GNU || refuse "GNU sed is required: put it first in the PATH"
in_making=$(sed -n 's/^VERSION ?= //p' Makefile)
[ "$version" = "$in_making" ] || refuse "VERSION in the Makefile is $in_making, not $version"
echo "$version" | grep -qxE '[0-9]+\.[0-9]+\.[0-9]+' || refuse "$version is not MAJOR.MINOR.PATCH"
case " $* " in
*" candidate "*) ;;
*) refuse "CHANNELS must include candidate, which contains every release" ;;
esac
[ "$(git rev-parse --is-shallow-repository)" = false ] || refuse "this is a shallow clone: run 'git fetch --unshallow'"
git symbolic-ref -q HEAD >/dev/null || refuse "no branch is checked out"
[ -z "$(git status --porcelain)" ] || refuse "there are uncommitted changes: commit or stash them"
git var GIT_COMMITTER_IDENT >/dev/null 2>&1 ||
	refuse "git has no identity for the commits: set user.name and user.email with git config"
[ ! -e "$frozen" ] || refuse "$frozen exists: $version has been released"
! git rev-parse -q --verify "refs/tags/v$version" >/dev/null ||
	refuse "the tag v$version exists: $version has been released"
# A change of the agent's image restarts nodes, so its version changes if and only if its sources have.
before=$(cat "config/catalog/released/$(ls config/catalog/released | sort -V | tail -n 1)/commit")
agent_before=$(git show "$before:cmd/agent/VERSION" 2>/dev/null || true)
is_agent_new=yes
! git diff --quiet "$before" HEAD -- cmd/agent ':!cmd/agent/VERSION' ':!cmd/agent/*_test.go' || is_agent_new=
case "$is_agent_new $agent_before" in
"yes $(cat cmd/agent/VERSION)")
	refuse "cmd/agent has changed since the last release: increment cmd/agent/VERSION, and set it in config/manager and cmd/options.go"
	;;
" $(cat cmd/agent/VERSION)" | "yes "*) ;;
*) refuse "cmd/agent has not changed since the last release: set cmd/agent/VERSION back to $agent_before" ;;
esac
# Fail before anything is committed if a channel does not exist.
dry=$(mktemp) && cp config/catalog/template.yaml "$dry"
config/catalog/enter.sh "$dry" "$version" "$@"
empty=$(awk '/^name: / { name = $2 } /^- name: / { filled[name] } /^entries:/ { channels[name] }
	END { for (name in channels) if (!(name in filled)) printf "%s ", name }' "$dry")
rm "$dry"
[ -z "$empty" ] ||
	refuse "the channel ${empty% } would be empty, which opm rejects: add the first release to all channels"
# The release names images by digest, so they exist before it. The manager's is built from the reviewed tree.
csv=bundle/manifests/memcached-operator.clusterserviceversion.yaml
digests=$("$DIGESTS" --revision "$(git rev-parse HEAD)" $(sed -n '/^  relatedImages:/,$s/^  - image: //p' "$csv")) ||
	refuse "build and push the images of this commit first: make docker-buildx docker-buildx-agent"
[ -z "$check" ] || exit 0

start=$(git rev-parse HEAD)
undo="git reset --hard $start && git clean -fd"
trap '[ $? = 0 ] || echo "release: $version is not released. To undo the commits and changes: $undo" >&2' EXIT
bundle() {
	"$MAKE" --no-print-directory bundle bundle-validate VERSION="$1"
}

# The release is the reviewed tree; only createdAt and the names of the images change.
bundle "$version"
[ -z "$(git status --porcelain)" ] || refuse "the bundle was out of date and has been regenerated: review and commit it"
sed -i "s|^    createdAt: .*|    createdAt: \"$(date -u +%Y-%m-%dT%H:%M:%SZ)\"|" "$base"
printf '%s\n' "$digests" >config/manifests/digests
bundle "$version"
go test -count=1 ./test/bundle
git add config/manifests/digests
git commit -q -a -m "Release $version"
commit=$(git rev-parse HEAD)

# Freeze the bundle of that commit. Upgrades are tested from it, and it is compared with later CustomResourceDefinitions.
mkdir -p "$frozen"
cp -R bundle/manifests bundle/metadata bundle/tests "$frozen/"
echo "$commit" >"$frozen/commit"
git ls-tree -r "$commit:bundle" >"$frozen/files"
git mv config/manifests/digests "$frozen/digests"
config/catalog/enter.sh config/catalog/template.yaml "$version" "$@"
"$MAKE" --no-print-directory catalog

# The tree now develops the next version.
next=$(echo "$version" | awk -F. '{ print $1 "." $2 + 1 ".0" }')
sed -i "s|^VERSION ?= .*|VERSION ?= $next|" Makefile
bundle "$next"
go test -count=1 ./test/bundle
git add Makefile bundle bundle.Dockerfile config/catalog
git commit -q -m "Freeze $version, begin $next" -m "The bundle of $version is that of the commit $commit."
git tag -a -m "Release $version" "v$version" "$commit"

cat <<EOF
Released $version: commit $commit, tag v$version, channels: $*. The tree now develops $next.
Review the commits with git log -p -2, then publish them:
  git push origin HEAD v$version
In a checkout of v$version, build and push the image of the bundle:
  make bundle-build bundle-push VERSION=$version
On main, name that image in the catalog by its digest, and build and push the catalog. A patch of an old release is
added to main first (docs/releasing.md):
  make bundle-digest VERSION=$version && git commit -am "Name the bundle of $version by its digest"
  git push origin main && make catalog-buildx
EOF
