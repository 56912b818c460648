#!/usr/bin/env bash
# A worker and a client in Python, from the .proto files alone, against a real server.
# The virtual environment and the generated code live under target/ and are kept between runs.
set -euo pipefail
cd "$(dirname "$0")/../.."

home=${CARGO_TARGET_DIR:-target}/python
stubs=$home/stubs

wanted=$(python3 --version; cat tests/python/requirements.txt)
if [ "$(cat "$home/installed" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$home"
    python3 -m venv "$home/venv"
    "$home/venv/bin/pip" install --quiet --requirement tests/python/requirements.txt
    echo "$wanted" >"$home/installed"
fi

rm -rf "$stubs"
mkdir -p "$stubs"
"$home/venv/bin/python" -m grpc_tools.protoc --proto_path=proto --python_out="$stubs" \
    --grpc_python_out="$stubs" proto/google/rpc/*.proto proto/kagzi/v1/*.proto

for program in unary_worker unary_children; do
    PYTHONPATH=$stubs scripts/with-server.sh "$home/venv/bin/python" "tests/python/$program.py"
done
