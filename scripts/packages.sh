# shellcheck shell=bash
# Sourced by ../run: installs system packages, on Debian and Ubuntu.

# install_packages PACKAGE...: installs those that are missing. "a|b" means a, or b where the distribution lacks a.
# Does nothing, and needs no rights, when all are there.
install_packages() {
    local missing=() choice
    for choice in "$@"; do
        package_installed "$choice" || missing+=("$choice")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null ||
        fail "these packages are needed, and apt-get is not there to install them: ${missing[*]}"
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null ||
            fail "these packages are needed; become root or install sudo, then try again: ${missing[*]}"
        as_root=(sudo)
    fi
    say "installing ${missing[*]}"
    apt_install() {
        local names=() choice
        for choice in "${missing[@]}"; do
            names+=("$(available_package "$choice")")
        done
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends "${names[@]}" </dev/null >/dev/null
    }
    # The lists are fetched only when what is known does not suffice.
    local known=yes
    for choice in "${missing[@]}"; do
        available_package "$choice" >/dev/null || known=no
    done
    [ $known = yes ] && apt_install && return
    "${as_root[@]}" apt-get update -qq </dev/null || fail "apt-get update failed"
    apt_install || fail "apt-get could not install ${missing[*]}"
}

package_installed() {
    local name
    for name in ${1//|/ }; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] && return
    done
    return 1
}

# Prints the first of the alternatives that apt can install; the first one, with status 1, if there is none.
available_package() {
    local name
    for name in ${1//|/ }; do
        [ -n "$(apt-cache --no-generate show "$name" 2>/dev/null)" ] && echo "$name" && return
    done
    echo "${1%%|*}"
    return 1
}
