"""Resize between integer layers: codes go through it, the written file means what the bundle computes."""

import json

import numpy as np
import pytest
from conftest import model_of
from quantized import F32, compress_model, gaussian, node

SIZES = {"nearest": (1, 1, 2, 2), "linear": (1, 1, 2, 1.5), "cubic": (1, 1, 0.75, 2)}


@pytest.mark.parametrize("mode", SIZES)
def test_codes_go_through_a_resize_and_both_files_agree(job, compress_run, mode):
    w = {"W1": gaussian(11, 3, 3, 3), "W2": gaussian(5, 11, 3, 3, seed=1), "scales": np.array(SIZES[mode], np.float32)}
    nodes = [node("Conv", ["x", "W1"], ["a"], "first"), node("Resize", ["a", "", "scales"], ["r"], "resize", mode=mode),
             node("Conv", ["r", "W2"], ["y"], "second")]
    model = model_of(nodes, {"x": ([1, 3, 10, 8], F32)}, {"y": ([1, 5, "h", "w"], F32)}, w)
    x = gaussian(8, 3, 10, 8, seed=2)
    out = compress_model(job, model, {"x": x})
    (resize,) = out.nodes("Resize")
    producers = {n.output[0]: n for n in out.model.graph.node}
    before = producers[resize.input[0]]
    (after,) = out.reader_of(resize.output[0])
    assert (before.op_type, after.op_type) == ("DequantizeLinear", "QuantizeLinear")
    scales = [float(out.arrays[n.input[1]]) for n in (before, after)]
    assert (scales[0] == scales[1]) == (mode == "nearest")
    # A rounding that falls on a tie may go the other way; one step of one input through a 3x3 window of 11 channels.
    got, want = out.run_bundle(x=x[:1])["y"], out.run(x=x[:1])[0]
    assert np.abs(got - want).max() <= 0.01 * np.abs(want).max()
    listed = json.loads(compress_run("kernels", job.output / "model.ctkb", "--json").out)
    steps = [step["step"] for step in listed["steps"] if step["step"].startswith(("resize", "reference"))]
    assert steps == ["resize_nearest" if mode == "nearest" else "resize_blend"]
