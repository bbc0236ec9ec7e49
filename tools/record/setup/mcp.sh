#!/usr/bin/env bash
# Installs what `python -m tools.record.mcp` needs, quick and quiet when all is there:
#   .demo/record/mcp        the file and the memory server (npm, versions of npm/mcp/package-lock.json)
#   .demo/record/mcp-venv   the client library and the sqlite, git and Excel servers (versions of setup/mcp.txt)
# PYTHON names the interpreter of the environment (3.11 or newer; python3 when not given). What is missing of node
# (18 or newer), npm, git and venv comes from Debian when this runs as root. Exit code 3: it cannot be installed
# on this machine; the last line says what and why.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
python="${PYTHON:-python3}"
node="$PWD/.demo/record/mcp" venv="$PWD/.demo/record/mcp-venv"
here=tools/record

cannot() {
    echo "setup/mcp.sh: $1" >&2
    exit 3
}

ready() { # ready WHAT: is it there, in a version that will do?
    case "$1" in
    node) [ "$(node -p 'parseInt(process.versions.node)' 2>/dev/null || echo 0)" -ge 18 ] ;;
    python) "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

missing() { for what in node npm git python; do ready "$what" || printf '%s ' "$what"; done; }

mkdir -p .demo/record
exec 9>.demo/record/mcp.lock
flock 9
wanted="$(cat "$here/npm/mcp/package-lock.json" "$here/setup/mcp.txt" | sha256sum)"
if [ -z "$(missing)" ] && [ "$(cat "$venv/made" 2>/dev/null)" = "$wanted" ] &&
    [ -d "$node/node_modules" ] && "$venv/bin/python" -c '' 2>/dev/null; then
    exit 0
fi

if [ -n "$(missing)" ] && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    packages=()
    for what in $(missing); do
        case "$what" in
        node) packages+=(nodejs) ;;
        python) packages+=(python3-venv) ;;
        *) packages+=("$what") ;;
        esac
    done
    apt-get update -qq >/dev/null 2>&1 || cannot "apt-get update failed; missing: ${packages[*]}"
    apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null 2>&1 ||
        cannot "apt-get cannot install ${packages[*]}"
fi
[ -z "$(missing)" ] || cannot "missing or too old: $(missing)(node 18, npm, git, Python 3.11 with venv; PYTHON names one)"

rm -rf "$venv" "$node"
mkdir -p "$node"
cp "$here/npm/mcp/package.json" "$here/npm/mcp/package-lock.json" "$node/"
npm ci --prefix "$node" --omit=dev --ignore-scripts --no-audit --no-fund --silent || cannot "npm ci failed"
"$python" -m venv "$venv" || cannot "$python cannot make an environment"
PIP_DISABLE_PIP_VERSION_CHECK=1 "$venv/bin/python" -m pip install -qq --require-hashes --no-deps \
    -r "$here/setup/mcp.txt" || cannot "pip cannot install the versions of setup/mcp.txt"
echo "$wanted" >"$venv/made"
