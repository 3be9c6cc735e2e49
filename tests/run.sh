#!/usr/bin/env bash
# Runs all tests of a tier (fast or slow): ctest, then pytest; ends with one line of counts over both.
set -uo pipefail
cd "$(dirname "$0")/.."
tier=${1:-fast}
export CTK_DATA=${CTK_DATA:-$PWD/../shared/data}
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT

ctest --test-dir build/release -L "$tier" -j "$(nproc)" --output-on-failure --no-tests=ignore | tee "$log/ctest"
cpp_status=${PIPESTATUS[0]}
.venv/bin/python3 -m pytest tests -q -m "$tier" -p no:cacheprovider -rs --junitxml="$log/pytest.xml" | tee "$log/pytest"
py_status=${PIPESTATUS[0]}
[ "$py_status" = 5 ] && py_status=0   # no test in this tier

.venv/bin/python3 - "$log" <<'PY'
import re, sys, xml.etree.ElementTree as tree
folder = sys.argv[1]
text = open(f"{folder}/ctest").read()
found = re.search(r"(\d+) tests failed out of (\d+)", text)
failed, total = (int(found[1]), int(found[2])) if found else (0, 0)
skipped = len(re.findall(r"\*\*\*Skipped", text))
suite = tree.parse(f"{folder}/pytest.xml").getroot().find("testsuite").attrib
py = {k: int(suite[k]) for k in ("tests", "failures", "errors", "skipped")}
bad = failed + py["failures"] + py["errors"]
left_out = skipped + py["skipped"]
print(f"{total + py['tests'] - bad - left_out} passed, {bad} failed, {left_out} skipped")
PY
[ "$cpp_status" = 0 ] && [ "$py_status" = 0 ]
