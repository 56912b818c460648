#!/usr/bin/env bash
# The one test command. It needs no terminal and asks nothing.
#
#   scripts/test.sh everything that CI runs, in an order that fails early; on a fresh Debian machine it
#                           first installs what is missing
#   scripts/test.sh quick   before each commit: format, lints of the default features, the model, the suite on
#                           SQLite, the SDK
#   scripts/test.sh soak what is too long for CI: ten thousand random programs, hundreds of random histories,
#                           processes killed at random, a database that restarts for twenty minutes,
#                           a thousand children of one run whose servers are killed
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null
export DEBIAN_FRONTEND=noninteractive
export INSTA_UPDATE=no # a changed snapshot is a failure, never a new file
export KAGZI_EXAMPLES_BUILT=1
unset KAGZI_ADDRESS KAGZI_NAMESPACE KAGZI_STORE KAGZI KAGZI_TEST_STORE KAGZI_FAULTS_STORE
mode=${1:-full}
case $mode in
full | quick | soak) ;;
*)
    echo "usage: scripts/test.sh [quick | soak]" >&2
    exit 2
    ;;
esac
debug=${CARGO_TARGET_DIR:-target}/debug

case $mode in
quick) stage_count=5 ;;
full) stage_count=12 ;;
soak) stage_count=8 ;;
esac
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

# Built without optimisation, cargo-deny takes two minutes to install instead of six, and seconds to run.
licenses() {
    if ! has cargo-deny; then
        echo "installing cargo-deny"
        CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug --version 0.20.2 cargo-deny
    fi
    cargo deny --all-features --log-level error check licenses bans sources
    # Advisories come from a Git repository, which a machine behind a mirror of the registry cannot reach.
    if timeout 60 cargo deny --all-features fetch db >/dev/null 2>&1; then
        cargo deny --all-features --log-level error check advisories
        echo "licences, bans, sources and advisories are checked"
    else
        echo "licences, bans and sources are checked; the advisories could not be reached and are NOT checked"
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

quick_lints() { cargo clippy --locked --workspace --all-targets -- -D warnings; }

# One build for all of them. Documentation tests are compiled one by one, so they are left to the full test.
quick_tests() {
    cargo test --quiet --locked -p kagzi-model -p kagzi-tidy
    cargo test --quiet --locked -p kagzi-store-tests --test memory --test sqlite --test differential
}

# A few random programs only: the full test plays a thousand of them, which takes minutes.
sdk_tests() {
    SEEDS=${SEEDS:-25} \
        cargo test --quiet --locked -p kagzi --features testing,encryption,compression --lib --tests
}

# The same test with one seed after the other; a failing one prints how to repeat it.
each_seed() {
    local variable=$1 count=$2 seed
    shift 2
    for ((seed = 1; seed <= count; seed++)); do
        env "$variable=$seed" "$@" || {
            echo "repeat with: $variable=$seed $*"
            return 1
        }
    done
}

random_programs() {
    SEEDS=${KAGZI_SOAK_PROGRAMS:-10000} \
        cargo test --locked -p kagzi --features testing --test replay_law random_programs_end -- --nocapture
    SEEDS=${KAGZI_SOAK_PROGRAMS_ON_FILES:-2000} \
        cargo test --locked -p kagzi --features testing --test replay_law on_a_file -- --nocapture
}

random_histories() {
    KAGZI_CASES=${KAGZI_SOAK_HISTORIES:-20000} cargo test --locked -p kagzi-model --test histories
    local crate
    for crate in kagzi-store-tests kagzi-store-postgres; do
        each_seed KAGZI_SEED "${KAGZI_SOAK_GAMES:-200}" \
            cargo test --quiet --locked -p "$crate" --test differential
    done
}

random_deaths() {
    each_seed KAGZI_FAULTS_SEED "${KAGZI_SOAK_DEATHS:-50}" \
        cargo test --quiet --locked -p kagzi-faults --test faults chaos
}

endless_runs() {
    KAGZI_GENERATIONS=${KAGZI_SOAK_GENERATIONS:-10000} \
        cargo test --locked -p kagzi --features testing --test generations thousand -- --nocapture
}

restarts() {
    KAGZI_RESTARTS_SECONDS=${KAGZI_SOAK_RESTARTS_SECONDS:-1200} \
        cargo test --locked -p kagzi-faults --test postgres restarts
}

many_children() {
    KAGZI_CHILDREN=${KAGZI_SOAK_CHILDREN:-1000} \
        cargo test --locked -p kagzi-faults --test postgres children
}

case $mode in
quick)
    stage "documents" scripts/check-docs.sh
    stage "format" cargo fmt --all --check
    stage "lints" quick_lints
    stage "model and SQLite" quick_tests
    stage "SDK" sdk_tests
    ;;
full)
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
    ;;
soak)
    stage "tools" tools
    stage "build" cargo build --locked --workspace --all-targets
    stage "random programs" random_programs
    stage "random histories" random_histories
    stage "random deaths" random_deaths
    stage "endless runs" endless_runs
    stage "restarts" restarts
    stage "many children" many_children
    ;;
esac

printf '\nOK in %d s: %s\n' "$SECONDS" "${summary%, }"
