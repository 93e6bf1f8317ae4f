#!/bin/sh
# Gets the program nft of a newer Debian into DIR/SUITE, with libraries of its own, for the tests:
#     scripts/nft.sh DIR && PODLING_NFT=DIR/trixie pytest tests/unit/network/test_nft.py
# Nothing of this machine's packages changes.
set -eu
mkdir -p "$1"
directory=$(cd "$1" && pwd)
suites="trixie"
packages="nftables libnftables1 libnftnl11 libmnl0 libc6 libjansson4 libxtables12 libgmp10 libedit2 libtinfo6 libbsd0 libmd0"
mirror=$(apt-get indextargets --format '$(REPO_URI)' | head -n 1) # whatever this machine's packages come from
apt=$(mktemp -d)
trap 'rm -rf "$apt"' EXIT
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
for suite in $suites; do
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
done > "$apt/sources.list"
set -- -qq -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o "Dir::Etc::sourcelist=$apt/sources.list" \
    -o Dir::Etc::sourceparts=/dev/null -o Dir::State::status=/dev/null -o APT::Sandbox::User=root
apt-get "$@" update
for suite in $suites; do
    made=$directory/$suite
    mkdir -p "$made/root" "$apt/$suite"
    for package in $packages; do
        (cd "$apt/$suite" && apt-get "$@" download "$package/$suite")
    done
    for archive in "$apt/$suite"/*.deb; do
        dpkg-deb --extract "$archive" "$made/root"
    done
    libraries=$made/root/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || echo x86_64-linux-gnu)
    loader=$(find "$made/root" -name 'ld-linux-*.so.*' | head -1)
    printf '#!/bin/sh\nexec %s --library-path %s %s "$@"\n' "$loader" "$libraries" "$made/root/usr/sbin/nft" > "$made/nft"
    chmod +x "$made/nft"
    "$made/nft" --version
done
