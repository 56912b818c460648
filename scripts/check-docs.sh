#!/usr/bin/env bash
# Documents must not lie: the event catalogue is complete, links lead somewhere, ARCHITECTURE.md stays short.
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0
complain() { echo "$1" >&2; failed=1; }

# The names in `EventKind::name`: `EventKind::RunStarted => "run_started"`.
events=$(sed -n 's/^ *EventKind::[A-Za-z]*\( { \.\. }\)\? => "\([a-z_]*\)",$/\2/p' crates/kagzi-model/src/event.rs)
[ -n "$events" ] || complain "no event names found in crates/kagzi-model/src/event.rs"
for event in $events; do
    grep -q "\`$event\`" docs/events.md || complain "docs/events.md does not know the event $event"
done

for page in *.md docs/*.md docs/adr/*.md; do
    folder=$(dirname "$page")
    for link in $(grep -o '](\([^)#]*\)' "$page" | sed 's/^](//' | grep -v '^https\?:' || true); do
        [ -e "$folder/$link" ] || complain "$page links to $link, which does not exist"
    done
done

lines=$(wc -l <ARCHITECTURE.md)
[ "$lines" -le 200 ] || complain "ARCHITECTURE.md has $lines lines, at most 200 are read"

[ "$failed" -eq 0 ] && echo "$(echo "$events" | wc -l) events, all documented; all links lead somewhere"
exit "$failed"
