"""Every operator case runs through the trainer as through our own executor (tests/train/ops_test.cpp compares)."""

import os
import subprocess

import numpy as np
import onnx
import pytest
from conftest import ROOT

import sys
sys.path.insert(0, str(ROOT / "tests" / "python"))
from op_cases_movement import ALL_CASES  # noqa: E402


def test_operator_cases_agree_with_our_executor(tmp_path):
    program = ROOT / "build/release/bin/test_train"
    if not program.exists() or not (program.parent / "libctk_train.so").exists():
        pytest.skip("built without the trainer or without tests (make trainer, make test)")
    for case in ALL_CASES:
        onnx.save(case.model(), tmp_path / f"{case.name}.onnx")
        for i, array in enumerate(case.inputs.values()):
            np.save(tmp_path / f"{case.name}.{i}.npy", array)
    done = subprocess.run([program, "--gtest_filter=TrainOps.OperatorCasesOfAFolderAgree"], capture_output=True, text=True,
                          timeout=300, env={**os.environ, "CTK_OP_CASES": str(tmp_path)})
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "[  PASSED  ] 1 test" in done.stdout
