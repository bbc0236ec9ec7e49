#!/usr/bin/env bash
# Installs what tools/record/web.py needs: Debian's Chromium, node, and the Playwright MCP server from
# the committed lock into .demo/record/web. Quick and quiet when all is there. Exit code 3: it cannot
# be installed on this machine; the last line says what and why.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
lock=tools/record/npm/web
target=.demo/record/web
export PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 DEBIAN_FRONTEND=noninteractive

cannot() {
    echo "setup/web.sh: $1" >&2
    exit 3
}

debian_packages() {
    local missing=()
    [ -x /usr/bin/chromium ] || missing+=(chromium)
    command -v node >/dev/null || missing+=(nodejs)
    command -v npm >/dev/null || missing+=(npm)
    [ "${#missing[@]}" -eq 0 ] && return
    command -v apt-get >/dev/null || cannot "${missing[*]} missing, and this system has no apt-get"
    [ "$(id -u)" -eq 0 ] || cannot "${missing[*]} missing, and only root can install Debian packages"
    apt-get update -qq >/dev/null || cannot "apt-get update failed; ${missing[*]} missing"
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null 2>&1 ||
        cannot "apt-get cannot install ${missing[*]}"
    [ -x /usr/bin/chromium ] || cannot "the package chromium of this system has no /usr/bin/chromium"
}

debian_packages
node -e 'process.exit(parseInt(process.versions.node) >= 18 ? 0 : 1)' || cannot "node is older than version 18"
if ! cmp -s "$lock/package-lock.json" "$target/installed.json"; then
    mkdir -p "$target"
    cp "$lock/package.json" "$lock/package-lock.json" "$target/"
    npm ci --prefix "$target" --ignore-scripts --no-audit --no-fund --silent || cannot "npm ci failed in $target"
    cp "$lock/package-lock.json" "$target/installed.json"
fi
