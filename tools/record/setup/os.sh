#!/bin/sh
# Install what `python -m tools.record.desktop` needs: an X server without a screen, a window manager, a
# panel, three GTK programs, AT-SPI and its Python bindings, xdotool, one font. Debian 12, root, about a
# minute; quiet and quick when all is there. Exit code 3: this system cannot run it, with the reason.
set -eu

packages="xvfb xdotool dbus-daemon at-spi2-core gir1.2-atspi-2.0 python3-gi openbox xfce4-panel mousepad galculator \
thunar fonts-dejavu-core librsvg2-common shared-mime-info"

cannot() {
    echo "os.sh: $1" >&2
    exit 3
}

. /etc/os-release 2>/dev/null || cannot "this is not Debian 12: no /etc/os-release"
[ "${ID:-}" = debian ] && [ "${VERSION_ID:-}" = 12 ] || cannot "recorded on Debian 12, this is ${PRETTY_NAME:-unknown}"
[ "$(id -u)" = 0 ] || cannot "needs root: the recorder makes a home directory and runs the desktop as nobody"
setpriv --reuid=65534 --regid=65534 --clear-groups true 2>/dev/null || cannot "may not change to the user nobody here"

missing=""
for package in $packages; do
    dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
        missing="$missing $package"
done
[ -n "$missing" ] || exit 0

install() {
    # shellcheck disable=SC2086 # a list of packages
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install --quiet=2 --yes \
        --no-install-recommends $missing >"$log" 2>&1
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! install; then
    apt-get -o DPkg::Lock::Timeout=300 update --quiet=2 >>"$log" 2>&1 || true
    install || {
        tail -n 5 "$log" >&2
        cannot "apt-get could not install:$missing"
    }
fi
