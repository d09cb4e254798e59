#!/bin/sh
# Fetches memcached of Debian sid, which is newer than that of the machine, with its loader and libraries, into
# DIRECTORY/memcached, where "cluster up" makes an image of it. What is there is kept, so only the first time needs a
# network; delete the directory for a newer version. apt checks the signatures; its settings on the machine stay as they are.
# Usage: test/cluster/memcached.sh DIRECTORY
set -eu
out=$1/memcached
[ ! -e "$out/version" ] || { echo "memcached $(cat "$out/version") is there."; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$1" "$work/lists/partial" "$work/archives/partial" "$work/tree"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keys] http://deb.debian.org/debian sid main" > "$work/sources.list"
cat > "$work/apt.conf" <<END
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$work/lists";
Dir::State::status "/dev/null";
Dir::Cache "$work";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::Retries "1";
Acquire::http::Timeout "20";
END
export APT_CONFIG="$work/apt.conf"

# libraries PACKAGE...: prints these packages and the libraries that they depend on.
libraries() {
	found=$* next=$*
	while [ -n "$next" ]; do
		# shellcheck disable=SC2086 # names of packages
		next=$(apt-cache depends --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances $next |
			sed -n 's/^ *\(Pre\)\{0,1\}-\{0,1\}Depends: \(lib[^ ]*\|zlib1g\)$/\2/p' | sort -u |
			while read -r name; do case " $found " in *" $name "*) ;; *) echo "$name" ;; esac; done | tr '\n' ' ')
		found="$found $next"
	done
	echo "$found"
}

fetch() {
	[ -e "$keys" ] && apt-get update --quiet >"$work/log" 2>&1 || return 1
	cd "$work/archives"
	# shellcheck disable=SC2046 # names of packages
	apt-get download --quiet $(libraries memcached) >>"$work/log" 2>&1 || return 1
	for package in *.deb; do
		dpkg-deb --extract "$package" "$work/tree"
	done
	library=$(echo "$work"/tree/usr/lib/*-linux-gnu*)
	loader=$(echo "$work"/tree/usr/lib/*-linux-gnu*/ld-linux-*.so.*)
	"$loader" --library-path "$library" --list "$work/tree/usr/bin/memcached" | sed -n 's/.* => \([^ ]*\) .*/\1/p' > "$work/tree/libraries"
	"$loader" --library-path "$library" "$work/tree/usr/bin/memcached" --version | sed 's/^memcached //' > "$work/tree/version"
	[ -s "$work/tree/libraries" ] && [ -s "$work/tree/version" ]
}

if ! fetch; then
	echo "memcached of Debian sid cannot be fetched ($(tail -n 1 "$work/log" 2>/dev/null)): the cluster has only that of the machine."
	exit 0
fi
# Only the program, its libraries and their loader.
mkdir -p "$work/image/lib64" "$work/image/usr/lib" "$work/image/usr/bin"
cp "$work/tree/usr/bin/memcached" "$work/image/usr/bin/"
for file in $(cat "$work/tree/libraries"); do cp -L "$file" "$work/image/usr/lib/"; done
interpreter=$(LC_ALL=C grep -aom1 '/lib[0-9a-z]*/ld-linux-[a-z0-9_-]*\.so\.[0-9]' "$work/tree/usr/bin/memcached" | head -n 1)
mkdir -p "$work/image$(dirname "$interpreter")"
cp -L "$work"/tree/usr/lib/*-linux-gnu*/ld-linux-*.so.* "$work/image$interpreter"
cp "$work/tree/version" "$work/image/version"
rm -rf "$out"
mv "$work/image" "$out"
echo "memcached $(cat "$out/version") of Debian sid is there."
