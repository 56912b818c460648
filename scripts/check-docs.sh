#!/usr/bin/env bash
# Documents must not lie: links lead somewhere, the tests that the mission's table names
# exist, ARCHITECTURE.md stays short.
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0
complain() { echo "$1" >&2; failed=1; }

for page in *.md docs/*.md docs/adr/*.md; do
    folder=$(dirname "$page")
    for link in $(grep -o '](\([^)#]*\)' "$page" | sed 's/^](//' | grep -v '^https\?:' || true); do
        [ -e "$folder/$link" ] || complain "$page links to $link, which does not exist"
    done
done

# Every test that the mission's table names exists: `crate::file::a_claim_in_words`. A name without three
# underscores is that of a module.
tests=$(grep -o '`[^` ]*::[a-z0-9_]*`' docs/mission.md | sed 's/`$//; s/.*:://' | sort -u)
[ -n "$tests" ] || complain "docs/mission.md names no test"
known=$(grep -rhoE 'fn [a-z0-9_]+' --include='*.rs' crates examples | sed 's/^fn //' | sort -u)
for test in $(comm -23 <(echo "$tests") <(echo "$known")); do
    [ "$(echo "$test" | tr -cd _ | wc -c)" -lt 3 ] \
        || complain "docs/mission.md names the test $test, which does not exist"
done

# Every line of the mission's sections that are done has its row.
for number in $(seq 1 151) $(seq 204 212); do
    line=$(printf 'M-%03d' "$number")
    grep -q "^| $line\b" docs/mission.md || complain "docs/mission.md has no row for $line"
done
for trap in U-1 U-2 U-3 U-4 U-5; do
    grep -q "^| $trap\b" docs/mission.md || complain "docs/mission.md has no row for $trap"
done

lines=$(wc -l <ARCHITECTURE.md)
[ "$lines" -le 200 ] || complain "ARCHITECTURE.md has $lines lines, at most 200 are read"

[ "$failed" -eq 0 ] && echo "all links lead somewhere; $(echo "$tests" | wc -l) tests are named and exist"
exit "$failed"
