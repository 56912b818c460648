#!/usr/bin/env bash
# The one test command. On a fresh Debian machine it installs what is missing, then runs everything that CI
# runs, in an order that fails early. It needs no terminal and asks nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null
export DEBIAN_FRONTEND=noninteractive
export INSTA_UPDATE=no # a changed snapshot is a failure, never a new file
export KAGZI_EXAMPLES_BUILT=1
unset KAGZI_ADDRESS KAGZI_NAMESPACE KAGZI_STORE KAGZI KAGZI_TEST_STORE KAGZI_FAULTS_STORE
debug=${CARGO_TARGET_DIR:-target}/debug

stage_count=12
stage_number=0
summary=

# Runs one stage under a numbered headline and notes its time. The first failure ends the script.
stage() {
    local name=$1 began=$SECONDS code=0
    shift
    stage_number=$((stage_number + 1))
    printf '\n[%d/%d] %s\n' "$stage_number" "$stage_count" "$name"
    # In a subshell of its own `set -e` stays in force; behind `||` it would not.
    set +e
    (set -e; "$@")
    code=$?
    set -e
    local took=$((SECONDS - began))
    if [ "$code" -ne 0 ]; then
        printf '\nFAILED in stage %d, %s, after %d s\n' "$stage_number" "$name" "$took"
        exit "$code"
    fi
    printf '      %s: %d s\n' "$name" "$took"
    summary+="$name $took s, "
}

has() { command -v "$1" >/dev/null 2>&1; }

# CI shells often do not read the profile that rustup wrote.
has cargo || export PATH="${HOME:-/root}/.cargo/bin:$PATH"

has_initdb() { has initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }

tools() {
    local missing=()
    has cc || missing+=(build-essential) # SQLite is C and is built from source
    python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing+=(python3-venv)
    has_initdb || missing+=(postgresql) # also with TEST_DATABASE_URL: some tests crash a server of their own
    has openssl || missing+=(openssl) # makes the certificate of the TLS test
    has strace || missing+=(strace) # the witness of the test that counts syncs
    has valgrind || missing+=(valgrind) # counts instructions
    has pgbouncer || [ -x /usr/sbin/pgbouncer ] || missing+=(pgbouncer)
    if [ "${#missing[@]}" -gt 0 ]; then
        install "${missing[@]}"
    fi
    if ! has cargo; then
        echo "cargo is not installed. Get Rust $(rust_version) or newer from https://rustup.rs, then try again."
        return 1
    fi
    cargo --version
    cargo fmt --version
    cargo clippy --version
}

rust_version() { sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml; }

install() {
    local as_root=()
    if ! has apt-get; then
        echo "please install, by the means of this system: $*"
        return 1
    fi
    if [ "$(id -u)" -ne 0 ]; then
        if ! has sudo || ! sudo -n true 2>/dev/null; then
            echo "please install as root: apt-get install $*"
            return 1
        fi
        as_root=(sudo -n)
    fi
    echo "installing $*"
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" apt-get install -y -qq --no-install-recommends "$@"
}

licenses() {
    if has cargo-deny; then
        cargo deny --all-features check
    else
        echo "cargo-deny is not installed, so licences and advisories are not checked here;"
        echo "to check them: cargo install --locked cargo-deny && cargo deny check"
    fi
}

lints() { cargo clippy --locked --workspace --all-targets --all-features -- -D warnings; }

# All targets in one go: the tests, the server and the examples then share one build of every dependency.
build() { cargo build --locked --workspace --all-targets --all-features; }

tests() {
    cargo test --locked --workspace --all-features
    # A server that is killed, once more on Turso; SQLite checks what Turso left behind.
    KAGZI_FAULTS_STORE=turso cargo test --locked --workspace --all-features --test faults server_crash
}

# The same programs, unchanged, on every store.
examples() {
    for store in sqlite turso postgres; do
        echo "      on $store"
        KAGZI_TEST_STORE=$store scripts/examples.sh
    done
    tests/python/run.sh
}

# Judged on the build that a newcomer's first command makes: the ratio of an unoptimised one says nothing.
speed() {
    cargo build --locked --release -p kagzi-cli
    "${CARGO_TARGET_DIR:-target}/release/kagzi" bench guard
}

stage "tools" tools
stage "documents" scripts/check-docs.sh
stage "licences" licenses
stage "format" cargo fmt --all --check
stage "lints" lints
stage "build" build
stage "tests" tests
stage "examples and Python" examples
stage "demo" "$debug/kagzi" demo
stage "metrics" scripts/check-metrics.sh
stage "speed" speed
stage "instructions" scripts/instructions.sh

printf '\nOK in %d s: %s\n' "$SECONDS" "${summary%, }"
