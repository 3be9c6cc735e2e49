"""Every operator case read and run by us gives what ONNX Runtime gives."""

import numpy as np
import onnx
import pytest
from conftest import onnxruntime_outputs
from op_cases_movement import ALL_CASES

import compress


@pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.name)
def test_operator_gives_what_onnx_runtime_gives(case, tmp_path):
    onnx.save(case.model(), tmp_path / "case.onnx")
    want = dict(zip(case.outputs, onnxruntime_outputs(case.model(), case.inputs)))
    got = compress.load(tmp_path / "case.onnx").run(case.inputs)
    assert list(got) == case.outputs
    for name, expected in want.items():
        assert got[name].dtype == expected.dtype and got[name].shape == expected.shape
        np.testing.assert_allclose(got[name].astype(np.float64), expected.astype(np.float64), atol=1e-5, rtol=1e-4)
