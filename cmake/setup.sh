#!/usr/bin/env bash
# Brings a fresh Debian 12 with Python 3.11 to a built project: Debian packages, a .venv, a Release build, and
# .venv/bin/compress with `import compress`. Steps that are done already do nothing.
# Usage: cmake/setup.sh [--trainer|--tests|--asan]; --trainer also fetches LibTorch (pip's torch, some 200 MB) and builds
# the trainer's module, --tests does that and builds the C++ tests, --asan builds them and the program a second time
# under AddressSanitizer and UndefinedBehaviorSanitizer, in build/asan.
set -euo pipefail
cd "$(dirname "$0")/.."

what=${1:-}
with_tests=OFF
with_trainer=OFF
[ "$what" = "--tests" ] && with_tests=ON
[ "$what" = "--tests" ] || [ "$what" = "--trainer" ] && with_trainer=ON

packages="g++ ninja-build pkg-config python3-venv python3-dev protobuf-compiler libprotobuf-dev libyaml-cpp-dev libcli11-dev \
nlohmann-json3-dev zlib1g-dev libjpeg62-turbo-dev libpng-dev coinor-libcbc-dev libxxhash-dev libmd-dev \
libpcre2-dev"
[ "$what" = "--tests" ] || [ "$what" = "--asan" ] && packages="$packages libgtest-dev libsimde-dev binutils"

missing=""
for package in $packages; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing="$missing $package"
done
command -v cmake >/dev/null || missing="$missing cmake"
command -v python3 >/dev/null || missing="$missing python3"
if [ -n "$missing" ]; then
  install="apt-get install -y --no-install-recommends$missing"
  if [ "$(id -u)" = 0 ]; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $install >/dev/null
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    sudo apt-get update -qq
    sudo DEBIAN_FRONTEND=noninteractive $install >/dev/null
  else
    echo "These Debian packages are missing and need root. Run this line, then call make again:" >&2
    echo "  sudo $install" >&2
    exit 2
  fi
fi

requirements=python/requirements.txt
[ "$what" = "--trainer" ] && requirements=python/requirements-trainer.txt
[ "$what" = "--tests" ] || [ "$what" = "--asan" ] && requirements=python/requirements-test.txt
stamp=.venv/$(basename $requirements).sha
wanted=$(cat python/requirements*.txt | sha256sum)
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
  [ -x .venv/bin/python3 ] || python3 -m venv .venv
  .venv/bin/python3 -m pip install -q --disable-pip-version-check -r "$requirements"
  echo "$wanted" >"$stamp"
fi

build=build/release
python=$PWD/.venv/bin/python3
is_ours() { [ -f $build/build.ninja ] && grep -q "^Python_EXECUTABLE:[A-Z]*=$python$" $build/CMakeCache.txt; }
has() { grep -q "^$1:BOOL=ON" $build/CMakeCache.txt; }
# Once tests or the trainer are configured they stay, so that switching between targets rebuilds nothing.
options=""
if ! is_ours || { [ $with_tests = ON ] && ! has CTK_BUILD_TESTS; }; then options="-DCTK_BUILD_TESTS=$with_tests"; fi
if ! is_ours || { [ $with_trainer = ON ] && ! has CTK_TRAINER; }; then options="$options -DCTK_TRAINER=$with_trainer"; fi
[ -z "$options" ] || cmake --preset release $options -DPython_EXECUTABLE="$python" >/dev/null
if [ "$with_tests" = ON ]; then
  cmake --build $build
else
  targets="compress_cli ctk_cbc _core ctk_c_static ctk_c_shared"
  [ "$with_trainer" = OFF ] || targets="$targets ctk_train_module"
  cmake --build $build --target $targets
fi
cmake --install $build --prefix .venv --component product >/dev/null

if [ "$what" = "--asan" ]; then
  [ -f build/asan/build.ninja ] || cmake --preset asan -DPython_EXECUTABLE="$PWD/.venv/bin/python3" >/dev/null
  cmake --build build/asan
fi
