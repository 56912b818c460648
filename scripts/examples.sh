#!/usr/bin/env bash
# Runs every example against one real server and compares what it prints with examples/expected/NAME.txt.
# KAGZI_WRITE_EXPECTED=1 writes those files instead. KAGZI_TEST_STORE chooses the store:
# scripts/with-server.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=${CARGO_TARGET_DIR:-target}/debug

if [ -z "${KAGZI_ADDRESS:-}" ]; then
    if [ -z "${KAGZI_EXAMPLES_BUILT:-}" ]; then
        features=()
        [ "${KAGZI_TEST_STORE:-}" != turso ] || features=(--features turso)
        cargo build --quiet -p kagzi-cli "${features[@]}"
        cargo build --quiet -p kagzi-examples
        [ "${KAGZI_TEST_STORE:-}" != postgres ] ||
            cargo build --quiet -p kagzi-store-postgres --features test-fixture --example with_database
    fi
    exec scripts/with-server.sh "$0" "$@"
fi

failed=0
for source in examples/src/bin/*.rs; do
    name=$(basename "$source" .rs)
    expected=examples/expected/$name.txt
    if ! printed=$(timeout 60 "$bin/$name" </dev/null); then
        echo "$name: failed" >&2
        failed=1
    elif [ -n "${KAGZI_WRITE_EXPECTED:-}" ]; then
        printf '%s\n' "$printed" >"$expected"
        echo "$name: written"
    elif [ ! -e "$expected" ]; then
        echo "$name: there is no $expected; write it with KAGZI_WRITE_EXPECTED=1, then read it" >&2
        failed=1
    elif printf '%s\n' "$printed" | diff -u --label expected --label printed "$expected" -; then
        echo "$name: as expected"
    else
        failed=1
    fi
done
exit "$failed"
