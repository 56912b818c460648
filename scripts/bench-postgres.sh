#!/usr/bin/env bash
# The figures of PostgreSQL in one go, for a quiet machine: runs of three steps with no and with a million
# finished runs in the tables, with one and two servers, with and without notifications. Each pair is taken in
# alternation, so that a machine that is not quite quiet disturbs both sides alike. Takes about ten minutes
# after the build.
#
#   scripts/bench-postgres.sh [rounds]        default: 3
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-3}

cargo build --release --locked -p kagzi-store-postgres --features test-fixture --example throughput
bench=${CARGO_TARGET_DIR:-target}/release/examples/throughput

# Both sides of a pair, round after round, and the ratio of their sums.
pair() {
    local name=$1 a=$2 b=$3 sum_a=0 sum_b=0 rate
    for ((round = 1; round <= rounds; round++)); do
        rate=$(measure "$a") && sum_a=$((sum_a + rate))
        printf '%s, round %d: %s: %d runs/s\n' "$name" "$round" "$a" "$rate"
        rate=$(measure "$b") && sum_b=$((sum_b + rate))
        printf '%s, round %d: %s: %d runs/s\n' "$name" "$round" "$b" "$rate"
    done
    awk -v name="$name" -v a="$sum_a" -v b="$sum_b" -v n="$rounds" \
        'BEGIN { printf "%s: %.0f and %.0f runs/s, ratio %.2f\n\n", name, a / n, b / n, b / a }'
}

# The arguments of the example: servers, notifications, finished runs, namespaces.
measure() {
    local out
    # shellcheck disable=SC2086 # the arguments are words
    out=$("$bench" $1)
    sed -n 's/^.*: \([0-9]*\) runs\/s.*$/\1/p' <<<"$out"
}

uptime
pair "a million finished runs" "1 on 0" "1 on 1000000"
pair "two servers" "1 on 0" "2 on 0"
pair "notifications off" "2 on 0" "2 off 0"
pair "fifty namespaces" "1 on 0 1" "1 on 0 50"
uptime
