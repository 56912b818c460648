#!/usr/bin/env bash
# Runs a command with KAGZI_ADDRESS naming a fresh server, and stops the server afterwards.
# Usage: scripts/with-server.sh COMMAND [ARGUMENT...]
# KAGZI names the binary; without it the debug build is used.
# KAGZI_TEST_STORE is sqlite (the default), turso, postgres (a throw-away one) or a postgres:// URL of yours.
set -euo pipefail
cd "$(dirname "$0")/.."

debug=${CARGO_TARGET_DIR:-target}/debug
kagzi=${KAGZI:-$debug/kagzi}
[ -x "$kagzi" ] || { echo "no $kagzi; build it with: cargo build -p kagzi-cli" >&2; exit 1; }

store=${KAGZI_TEST_STORE:-sqlite}
# Comes back here with the URL of a database that goes when we do.
[ "$store" != postgres ] || exec "$debug/examples/with_database" scripts/with-server.sh "$@"

scratch=$(mktemp -d)
case $store in
    sqlite) url=sqlite:$scratch/kagzi.db ;;
    turso) url=turso:$scratch/kagzi.turso ;;
    postgres://*) url=$store ;;
    *) echo "KAGZI_TEST_STORE is $store; write sqlite, turso, postgres or postgres://HOST/DATABASE" >&2; exit 2 ;;
esac
"$kagzi" serve --store "$url" --listen 127.0.0.1:0 \
    </dev/null >"$scratch/stdout" 2>"$scratch/stderr" &
server=$!

finish() {
    local code=$?
    # Only the process that was started here, by its id.
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    if [ "$code" -ne 0 ]; then
        echo "--- the server's last words" >&2
        tail -n 20 "$scratch/stderr" >&2
    fi
    rm -rf "$scratch"
    exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

address=
for _ in $(seq 300); do
    address=$(sed -n 's/^listening on //p' "$scratch/stdout")
    [ -z "$address" ] || break
    kill -0 "$server" 2>/dev/null || { echo "the server ended before it was ready" >&2; exit 1; }
    sleep 0.1
done
[ -n "$address" ] || { echo "the server was not ready after 30 s" >&2; exit 1; }

KAGZI_ADDRESS=$address "$@"
