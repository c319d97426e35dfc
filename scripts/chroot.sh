#!/usr/bin/env bash
# Follows the README in a bare Debian 12 or Ubuntu 24.04, in a clone of HEAD; called by `./run chroot`, as root. Then makes the
# Debian package there, installs it, and builds another project with it. Says what each step took; where one fails,
# build/chroot is left as it is then. Usage: chroot.sh [--ubuntu] [PART...], each of: readme package bench; all by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root=$PWD/build/chroot
say() { printf '==> %s\n' "$*"; }
fail() {
    printf 'chroot: %s\n' "$*" >&2
    exit 1
}

# step COMMAND: runs a command inside, in the home of the clone, and notes its time.
times=()
step() {
    local start=$SECONDS
    say "$1"
    chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive ${PIP_CERT:+"PIP_CERT=/etc/pip-cert.crt"} bash -euc "cd /root/weir; $1" </dev/null ||
        fail "this failed: $1"
    times+=("$(printf '%5d s  %s' $((SECONDS - start)) "$1")")
}

# The lines that begin with "./run" in the README's first block of commands.
readme_commands() { awk '/^```/ { inside = /^```sh/ } inside && /^\.\/run/ { print $1, $2 }' README.md | head -n 2; }

part_readme() {
    local commands
    mapfile -t commands < <(readme_commands)
    [ ${#commands[@]} -eq 2 ] || fail "the README has no two commands"
    for command in "${commands[@]}"; do
        step "$command"
    done
}

# That they build and run; not how fast.
part_bench() { step './run bench array_small'; }

# shellcheck disable=SC2016  # for the shell inside
part_package() {
    step './run package'
    step 'apt-get install -y -qq --no-install-recommends ./build/package/*.deb >/dev/null'
    step 'cd /; weir info; weir verify --help >/dev/null'
    step 'apt-get install -y -qq --no-install-recommends pkgconf cmake ninja-build libeigen3-dev nlohmann-json3-dev >/dev/null'
    step 'cp -r tests/install/consumer /root/; cd /root/consumer; cmake -G Ninja -B found >/dev/null
        cmake --build found; found/consumer-weir; found/consumer-static; found/consumer-shared'
    step 'cd /root/consumer; g++ -std=c++20 consumer.cpp $(pkg-config --cflags --libs weir) -o linked; ./linked'
    step 'apt-get purge -y -qq weir >/dev/null; test -z "$(find /usr -iname "*weir*")"; ! /root/consumer/linked 2>/dev/null'
    # What the tests take from their own build, from the source.
    step 'cd /root/consumer; cmake -G Ninja -B added -DWEIR_SOURCE=/root/weir >/dev/null
        cmake --build added --target consumer-weir consumer-shared | tail -n 1; added/consumer-weir; added/consumer-shared'
}

# make_root: debootstrap, from where it gets the distribution by itself, or Debian from where apt does, unless MIRROR says
# otherwise.
make_root() {
    local options=("--variant=minbase" "--include=git,ca-certificates") keys=/usr/share/keyrings/ubuntu-archive-keyring.gpg
    local own=build/debootstrap mirror=${MIRROR:-}
    if [ -n "$ubuntu" ]; then
        [ -r "$keys" ] || options+=("--no-check-gpg")
        # Made like the older releases, where debootstrap does not know it.
        rm -rf "$own"
        cp -r /usr/share/debootstrap "$own"
        ln -sf gutsy "$own/scripts/noble"
        DEBOOTSTRAP_DIR=$PWD/$own debootstrap "${options[@]}" "--components=main,universe" noble "$root" \
            ${mirror:+"$mirror"}
        return
    fi
    # shellcheck disable=SC2016  # apt's variable, not the shell's
    [ -n "$mirror" ] ||
        mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Release: bookworm' 2>/dev/null | head -n 1)
    debootstrap "${options[@]}" bookworm "$root" ${mirror:+"$mirror"}
}

# Mounts and processes of the second call end with it.
if [ "${1:-}" != inside ]; then
    [ "$(id -u)" -eq 0 ] || fail "needs to be root"
    command -v debootstrap >/dev/null || fail "needs debootstrap"
    exec unshare --mount --pid --fork --kill-child "scripts/$(basename "$0")" inside "$@"
fi
shift
ubuntu=
if [ "${1:-}" = --ubuntu ]; then
    ubuntu=yes
    shift
fi
[ $# -gt 0 ] || set -- readme package bench

rm -rf --one-file-system "$root"
mkdir -p "$root"
start=$SECONDS
make_root >build/chroot.log ||
    fail "debootstrap failed, see build/chroot.log"
times+=("$(printf '%5d s  debootstrap' $((SECONDS - start)))")
mount -t proc proc "$root/proc"
mount -t devpts devpts "$root/dev/pts"
mount -t tmpfs none "$root/dev/shm"
cp --dereference /etc/resolv.conf "$root/etc/resolv.conf"
# Whom pip must trust here, where that is not whom it trusts by itself.
[ -z "${PIP_CERT:-}" ] || cp --dereference "$PIP_CERT" "$root/etc/pip-cert.crt"
git clone --quiet --no-checkout . "$root/root/weir"
git -C "$root/root/weir" checkout --quiet --detach "$(git rev-parse HEAD)"
say "$(git log -1 --format='%h %s')"

for part in "$@"; do
    "part_$part"
done
umount "$root/dev/shm" "$root/dev/pts" "$root/proc"
rm -rf --one-file-system "$root"
say "all is well"
printf '%s\n' "${times[@]}"
