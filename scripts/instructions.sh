#!/usr/bin/env bash
# How many instructions the model's hot functions take, counted by callgrind, against bench/instructions.json.
# Times differ from machine to machine and minute to minute; counts do not. Fails when a function takes over 5
# % more than recorded.
#
#   scripts/instructions.sh             compare
#   scripts/instructions.sh --record    write the counts down
#
# Only instructions of our own program count, not those of libc, whose allocator and memcpy differ between
# machines. Another compiler makes other instructions: with another one than the recorded the table is
# printed, not judged.
set -euo pipefail
cd "$(dirname "$0")/.."
record=bench/instructions.json
times=1000

if ! command -v valgrind >/dev/null; then
    echo "valgrind is not installed; scripts/test.sh installs it, or: apt-get install valgrind" >&2
    exit 1
fi
cargo build --quiet --release --locked -p kagzi-instructions
program=$(realpath "${CARGO_TARGET_DIR:-target}/release/kagzi-instructions")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The sum of what each function of our program took itself; the line after `calls=` is what somebody else
# took.
counted() {
    awk -v program="$program" -v times="$times" '
        # An object is named where it is first mentioned, and that may be as the one that is called (cob).
        /^c?ob=/ {
            id = $1; sub(/^c?ob=/, "", id)
            if (NF > 1) name[id] = $2
        }
        /^ob=/ { ours = name[id] == program }
        /^calls=/ { elsewhere = 1; next }
        /^[0-9+*-]/ { if (elsewhere) elsewhere = 0; else if (ours) sum += $2 }
        END { printf "%.0f\n", sum / times }
    ' "$1"
}

for name in $("$program" --list); do
    valgrind --quiet --tool=callgrind --callgrind-out-file="$scratch/$name" --collect-atstart=no \
        --toggle-collect='*kagzi_instructions::measured*' "$program" "$name" "$times"
    echo "$name $(counted "$scratch/$name")"
done >"$scratch/counts"

compiler="$(rustc --version), $(uname -m)"
python3 - "$record" "$scratch/counts" "$compiler" "${1:-}" <<'PYTHON'
import json, sys

record, counts, compiler, mode = sys.argv[1:]
now = {name: int(count) for name, count in (line.split() for line in open(counts))}
if any(count == 0 for count in now.values()):
    sys.exit("callgrind counted nothing: is kagzi_instructions::measured still called so?")
if mode == "--record":
    with open(record, "w") as file:
        json.dump({"compiler": compiler, "instructions": now}, file, indent=2)
        file.write("\n")
then = json.load(open(record))
same = then["compiler"] == compiler
failed = False
print(f"{'function':<22}{'recorded':>10}{'now':>10}{'change':>10}")
for name, count in now.items():
    was = then["instructions"].get(name)
    if was is None:
        print(f"{name:<22}{'-':>10}{count:>10}       new")
        failed |= same
        continue
    change = count / was - 1
    slower = same and change > 0.05
    failed |= slower
    print(f"{name:<22}{was:>10}{count:>10}{change:>+10.1%}{'  too many' if slower else ''}")
for name in then["instructions"].keys() - now.keys():
    print(f"{name:<22} is recorded and no longer counted")
    failed = True
if not same:
    print(f"not judged: recorded with {then['compiler']}, counted with {compiler}")
if failed:
    sys.exit("if growth is worth it, say why in the commit and record it: scripts/instructions.sh --record")
PYTHON
