#!/usr/bin/env bash
# What one idle REPEATABLE READ transaction costs: runs of three steps for some minutes without it and with
# it, on fresh databases of one PostgreSQL server. Prints runs per second for each half minute and the ratio
# of the means, with dead versions and the size of the tables at the end. For a quiet machine; takes a bit
# more than twice the minutes. Needs psql and curl.
#
#   scripts/long-transaction.sh [minutes]     default: 5
#
# DATABASE_URL names the server (any database on it); without it a server is started in a scratch directory
# and removed afterwards. KAGZI names the program; without it a release build is made.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-5}
every=30

kagzi=${KAGZI:-}
if [ -z "$kagzi" ]; then
    cargo build --release --locked -p kagzi-cli
    kagzi=${CARGO_TARGET_DIR:-target}/release/kagzi
fi
kagzi=$(realpath "$kagzi")
scratch=$(mktemp -d)
jobs=()
# The benchmark ends by itself only when all its runs have ended, so nobody is asked.
end_jobs() {
    for job in "${jobs[@]}"; do kill -KILL "$job" 2>/dev/null || true; done
    wait 2>/dev/null || true
    jobs=()
}
stop() {
    end_jobs
    if [ -n "${own_server:-}" ]; then
        as_postgres "$bin/pg_ctl" -D "$scratch/data" -m immediate stop >/dev/null 2>&1 || true
    fi
    rm -rf "$scratch"
}
trap stop EXIT

# PostgreSQL does not run as root.
as_postgres() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }

url=${DATABASE_URL:-}
if [ -z "$url" ]; then
    bin=$(dirname "$(command -v initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' | sort -V | tail -1)")
    [ "$(id -u)" != 0 ] || chown postgres "$scratch"
    chmod 711 "$scratch"
    as_postgres "$bin/initdb" -D "$scratch/data" -U postgres -A trust -E UTF8 >/dev/null
    as_postgres "$bin/pg_ctl" -D "$scratch/data" -l "$scratch/data/log" -w \
        -o "-p 54329 -c listen_addresses=127.0.0.1 -c unix_socket_directories=$scratch/data" start >/dev/null
    own_server=yes
    url=postgres://postgres@127.0.0.1:54329/postgres
fi
base=${url%/*}

finished() { curl -fsS "http://127.0.0.1:$1/metrics" | awk '/^kagzi_runs_finished_total/ { sum += $2 } END { print sum + 0 }'; }

# Runs for the given minutes; prints a rate per half minute.
measure() {
    local name=$1 port=$2 idle=$3 database=kagzi_long_$1_$$ before now
    psql -q "$url" -c "CREATE DATABASE $database"
    "$kagzi" serve --store "$base/$database" --listen "127.0.0.1:$port" >"$scratch/$name.server" 2>&1 &
    local server=$!
    jobs+=("$server")
    until curl -fs "http://127.0.0.1:$port/readyz" >/dev/null; do kill -0 "$server"; done
    if [ "$idle" = yes ]; then
        {
            echo "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM kagzi.runs;"
            sleep $((minutes * 60 + 120))
        } | psql -q "$base/$database" >/dev/null &
        jobs+=("$!")
    fi
    # Far more runs than fit into the time: it is ended, not awaited.
    local load=(bench --workload w3 --addr "127.0.0.1:$port" --latency-runs 1 --runs 100000000)
    (cd "$scratch" && exec "$kagzi" "${load[@]}") >"$scratch/$name.bench" 2>&1 &
    local bench=$!
    jobs+=("$bench")
    until [ "$(finished "$port")" -gt 1000 ]; do kill -0 "$bench"; sleep 1; done
    before=$(finished "$port")
    for ((at = every; at <= minutes * 60; at += every)); do
        sleep "$every"
        now=$(finished "$port")
        echo "$at $(((now - before) / every))" | tee -a "$scratch/$name.rates" |
            sed "s/^/$name: second /; s/\$/ runs\/s/"
        before=$now
    done
    psql -qAt "$base/$database" -c "SELECT '$name: ' || relname || ' ' || n_dead_tup || ' dead versions, '
        || pg_size_pretty(pg_total_relation_size(relid)) FROM pg_stat_user_tables
        WHERE relname IN ('runs', 'workers', 'events') ORDER BY relname"
    end_jobs
    psql -q "$url" -c "DROP DATABASE $database WITH (FORCE)"
}

uptime
measure without 54331 no
measure with 54332 yes
paste "$scratch/without.rates" "$scratch/with.rates" | awk '
    BEGIN { print "| seconds | without | with the transaction | share |"; print "|---|---|---|---|" }
    { a += $2; b += $4; printf "| %d | %d | %d | %.2f |\n", $1, $2, $4, $4 / $2 }
    END { printf "| mean | %.0f | %.0f | %.2f |\n", a / NR, b / NR, b / a }'
uptime
