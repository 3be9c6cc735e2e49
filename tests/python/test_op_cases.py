"""The operator cases themselves: every operator has some, and each is a model that ONNX Runtime loads and runs."""

from __future__ import annotations

import pathlib
import re

import onnxruntime
import pytest
from op_cases_movement import ALL_CASES

OPS_DEF = pathlib.Path(__file__).resolve().parents[2] / "graph" / "ops.def"


def test_every_operator_has_two_cases():
    ops = re.findall(r"^CTK_OP\((\w+)\)", OPS_DEF.read_text(), re.MULTILINE)
    counts = {op: sum(case.op == op for case in ALL_CASES) for op in ops}
    assert len(ops) > 50
    assert {op: count for op, count in counts.items() if count < 2} == {}


def test_names_are_unique():
    names = [case.name for case in ALL_CASES]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.name)
def test_onnx_runtime_runs_it(case):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(case.model().SerializeToString(), options, ["CPUExecutionProvider"])
    outputs = session.run(None, case.inputs)
    assert len(outputs) == len(case.outputs)
