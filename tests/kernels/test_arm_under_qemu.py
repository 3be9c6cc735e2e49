"""The tests of kernels/ and core/ once more for 64-bit ARM: built by a cross compiler, run by qemu."""

import os
import pathlib
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import ROOT

SHARDS = os.cpu_count() or 1


def missing_packages() -> list[str]:
    found = {"g++-aarch64-linux-gnu": shutil.which("aarch64-linux-gnu-g++"), "qemu-user": shutil.which("qemu-aarch64"),
             "googletest": pathlib.Path("/usr/src/googletest/CMakeLists.txt").exists(), "cmake": shutil.which("cmake")}
    return [package for package, is_there in found.items() if not is_there]


@pytest.fixture(scope="module")
def arm_tests() -> pathlib.Path:
    missing = missing_packages()
    if missing:
        pytest.skip("make test does not install a second compiler; to run this: apt-get install " + " ".join(missing))
    for command in (["cmake", "--preset", "aarch64"], ["cmake", "--build", "--preset", "aarch64"]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return ROOT / "build/aarch64/bin"


def run(program: pathlib.Path, *arguments: str, processor: str = "max", **variables: str) -> subprocess.CompletedProcess:
    command = ["qemu-aarch64", "-cpu", processor, "-L", "/usr/aarch64-linux-gnu", str(program), *arguments]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=900)


def test_every_row_for_arm_gives_the_scalars_bits(arm_tests):
    with ThreadPoolExecutor(SHARDS) as pool:
        shards = [pool.submit(run, arm_tests / "test_kernels", GTEST_TOTAL_SHARDS=str(SHARDS), GTEST_SHARD_INDEX=str(i)) for i in range(SHARDS)]
    done = [shard.result() for shard in shards]
    assert [d.returncode for d in done] == [0] * SHARDS, "".join(d.stdout[-4000:] + d.stderr[-2000:] for d in done)


def test_the_processor_is_asked_whether_it_has_dot_products(arm_tests):
    one = "--gtest_filter=KernelTable.RunsArmRowsWhereTheProcessorHasThem"
    assert "[  PASSED  ] 1 test." in run(arm_tests / "test_kernels", one).stdout
    assert "this processor lacks arm_neondot" in run(arm_tests / "test_kernels", one, processor="cortex-a53").stdout


def test_core_holds_on_arm(arm_tests):
    # qemu's user mode aborts where a process with threads forks (an assertion of its own, plugins/core.c).
    done = run(arm_tests / "test_core", "--gtest_filter=-ParallelTest.AForkedChildWorksOn")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


FUSED = re.compile(r"\bfn?m(add|sub|la|ls)\b")
ROUNDED_TWICE = ("gemm_w8a8", "depthwise_w8a8", "eltwise", "pool", "convert", "lookup", "norm", "softmax", "rope", "resize")
ROUNDED_ONCE = ("gemm_fp32", "gemm_wg", "depthwise_fp32")


def code_of(kind: str, source: str) -> str:
    file = ROOT / "build/aarch64/kernels/CMakeFiles/ctk_kernels.dir" / kind / f"{source}.cpp.o"
    return subprocess.run(["aarch64-linux-gnu-objdump", "-d", "-r", file], capture_output=True, text=True, check=True).stdout


def reference_of(kind: str) -> str:
    return "scalar" if (ROOT / f"kernels/{kind}/scalar.cpp").exists() else kind


def test_products_that_are_rounded_before_they_are_added_are_not_fused(arm_tests):
    """ARM's compilers fuse across statements unless told not to; the x86 rows and the exported file do not."""
    for kind in ROUNDED_TWICE:
        assert FUSED.findall(code_of(kind, reference_of(kind)) + code_of(kind, "arm_neondot")) == [], kind


def test_float_products_are_fused_by_one_instruction(arm_tests):
    for kind in ROUNDED_ONCE:
        for source in (reference_of(kind), "arm_neondot"):
            code = code_of(kind, source)
            assert FUSED.search(code), (kind, source)
            assert "fmaf" not in code, (kind, source)  # the library's function: right, and a hundred times slower
