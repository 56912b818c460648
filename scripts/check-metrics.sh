#!/usr/bin/env bash
# What operators are given, checked by Prometheus' own tool: the alert rules are valid and do what
# docs/alerts_test.yml says, every query of the dashboard can be parsed, and a real server's page of metrics
# passes the linter. promtool is taken from the path, or out of Debian's package, without installing that
# service.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=${CARGO_TARGET_DIR:-target}/tools

promtool=$(command -v promtool || true)
if [ -z "$promtool" ]; then
    promtool=$tools/promtool
    if [ ! -x "$promtool" ]; then
        if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
            echo "please install promtool, a part of Prometheus, by the means of this system" >&2
            exit 1
        fi
        mkdir -p "$tools"
        (
            cd "$tools"
            # A fresh machine has no lists of packages; only root can fetch them.
            as_root=()
            [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
            apt-get download -qq prometheus 2>/dev/null ||
                { "${as_root[@]}" apt-get update -qq && apt-get download -qq prometheus; }
            # Under another name first: half of it must not look like the whole.
            dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x --to-stdout ./usr/bin/promtool >promtool.part
            chmod +x promtool.part
            mv promtool.part promtool
            rm prometheus_*.deb
        )
    fi
    promtool=$(realpath "$promtool")
fi

if [ -z "${KAGZI_ADDRESS:-}" ]; then
    "$promtool" check rules docs/alerts.yml
    "$promtool" test rules docs/alerts_test.yml

    # A query of a dashboard is a rule whose variables have values.
    queries=$(mktemp --suffix=.yml)
    trap 'rm -f "$queries"' EXIT
    python3 - docs/grafana/kagzi.json >"$queries" <<'PYTHON'
import json, sys

values = {"$__rate_interval": "5m", "$instance": ".*"}
panels = json.load(open(sys.argv[1]))["panels"]
print("groups: [{name: dashboard, rules: [")
for number, query in enumerate(target["expr"] for panel in panels for target in panel.get("targets", [])):
    for name, value in values.items():
        query = query.replace(name, value)
    print(f"{{record: 'query:{number}', expr: {json.dumps(query)}}},")
print("]}]")
PYTHON
    "$promtool" check rules "$queries"
    scripts/with-server.sh "$0"
    exit
fi

python3 - "$KAGZI_ADDRESS" <<'PYTHON' | "$promtool" check metrics
import sys, urllib.request

# Not by a proxy, whatever the environment says.
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(direct.open(f"http://{sys.argv[1]}/metrics").read().decode(), end="")
PYTHON
echo "the server's page of metrics is as Prometheus wants it"
