#!/usr/bin/env bash
# Runs all tests of a tier (fast or slow): ctest, then pytest; ends with one line of counts over both.
# Usage: tests/run.sh [TIER [PRESET]]. Under the preset asan the tests take the sanitized programs and libctk.so of
# build/asan; a report of AddressSanitizer's fails the run even where a test takes no notice of the program's end.
set -uo pipefail
cd "$(dirname "$0")/.."
tier=${1:-fast}
preset=${2:-release}
export CTK_DATA=${CTK_DATA:-$PWD/../shared/data}
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT

python_tests() {  # python_tests NAME ARGUMENTS...; no test in the tier (5) is no failure
  .venv/bin/python3 -m pytest -q -p no:cacheprovider -rs --junitxml="$log/$1.xml" "${@:2}"
  local status=$?
  [ $status = 0 ] || [ $status = 5 ] || py_status=$status
}

if [ "$preset" = asan ]; then
  export CTK_COMPRESS=$PWD/build/asan/bin/compress
  export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:log_path=$log/report
  # Beside AddressSanitizer, GCC's UBSan takes no log_path: its word is on stderr and in the signal.
  export UBSAN_OPTIONS=print_stacktrace=1:abort_on_error=1
fi
ctest --test-dir "build/$preset" -L "$tier" -j "$(nproc)" --output-on-failure --no-tests=ignore \
  --output-junit "$log/ctest.xml"
cpp_status=$?
py_status=0
if [ "$preset" = asan ]; then
  # The other Python tests do not run the sanitized programs.
  library=tests/end_to_end/test_runtime_library.py
  python_tests program tests/end_to_end -m "$tier" --ignore $library
  # Here the interpreter itself, which leaks, loads libctk.so; the sanitizers have to be in before it.
  LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" \
    ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 python_tests library $library -m "$tier" -s  # -s: UBSan's last words
else
  python_tests pytest tests -m "$tier"
fi

.venv/bin/python3 - "$log" <<'PY'
import glob, os, sys, xml.etree.ElementTree as tree
total, bad, left_out = 0, 0, 0
for path in glob.glob(os.path.join(sys.argv[1], "*.xml")):  # ctest writes none for a tier without tests
    for suite in tree.parse(path).iter("testsuite"):
        count = {k: int(suite.get(k, 0)) for k in ("tests", "failures", "errors", "skipped")}
        total += count["tests"]
        bad += count["failures"] + count["errors"]
        left_out += count["skipped"]
print(f"{total - bad - left_out} passed, {bad} failed, {left_out} skipped")
PY
reports=$(find "$log" -name 'report.*')
if [ -n "$reports" ]; then
  cat $reports
  echo "reports of AddressSanitizer, above: $(echo "$reports" | wc -l)"
fi
[ "$cpp_status" = 0 ] && [ "$py_status" = 0 ] && [ -z "$reports" ]
