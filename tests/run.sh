#!/usr/bin/env bash
# Runs all tests of a tier (fast or slow): ctest, then pytest; ends with one line of counts over both.
set -uo pipefail
cd "$(dirname "$0")/.."
tier=${1:-fast}
export CTK_DATA=${CTK_DATA:-$PWD/../shared/data}
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT

ctest --test-dir build/release -L "$tier" -j "$(nproc)" --output-on-failure --no-tests=ignore \
  --output-junit "$log/ctest.xml"
cpp_status=$?
.venv/bin/python3 -m pytest tests -q -m "$tier" -p no:cacheprovider -rs --junitxml="$log/pytest.xml"
py_status=$?
[ "$py_status" = 5 ] && py_status=0   # no test in this tier

.venv/bin/python3 - "$log" <<'PY'
import os, sys, xml.etree.ElementTree as tree
total, bad, left_out = 0, 0, 0
for name in ("ctest.xml", "pytest.xml"):  # ctest writes none for a tier without tests
    path = os.path.join(sys.argv[1], name)
    if not os.path.exists(path):
        continue
    for suite in tree.parse(path).iter("testsuite"):
        count = {k: int(suite.get(k, 0)) for k in ("tests", "failures", "errors", "skipped")}
        total += count["tests"]
        bad += count["failures"] + count["errors"]
        left_out += count["skipped"]
print(f"{total - bad - left_out} passed, {bad} failed, {left_out} skipped")
PY
[ "$cpp_status" = 0 ] && [ "$py_status" = 0 ]
