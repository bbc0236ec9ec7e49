# Sourced with a Python that has pip as argument. uv does not read pip's settings: this hands it the index
# and the certificates that pip is told to use, where it is told anything. Names no index by itself.
#
# Indexes beside the main one and --find-links are left out on purpose: with them uv would resolve
# differently from machine to machine, and the lock's hashes are those of the main index.

pip_setting() { # pip_setting PYTHON NAME: its value in pip's files; nothing where it is not set
    "$1" -m pip config list 2>/dev/null | sed -n "s/^\(global\|install\)\.$2='\(.*\)'\$/\2/p" | head -n 1
}

if [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}" ]; then
    index="${PIP_INDEX_URL:-$(pip_setting "$1" index-url)}"
    [ -z "$index" ] || export UV_DEFAULT_INDEX="$index"
fi
if [ -z "${SSL_CERT_FILE:-}" ]; then
    certificates="${PIP_CERT:-$(pip_setting "$1" cert)}"
    [ -z "$certificates" ] || export SSL_CERT_FILE="$certificates"
fi
