"""Known faults of other tools that ours must not have: constants that no sample is to be blamed for."""

import numpy as np
import pytest
from conftest import model_of
from onnx import helper, numpy_helper
from quantized import F32, compress_model, conv_model, gaussian, node, one_layer


def normalized(variance, epsilon=1e-5):
    stats = {"s": np.ones(4, np.float32), "b": np.zeros(4, np.float32), "m": np.zeros(4, np.float32), "v": np.asarray(variance, np.float32)}
    nodes = [node("Conv", ["x", "W"], ["c"], "conv"), node("BatchNormalization", ["c", "s", "b", "m", "v"], ["y"], "norm", epsilon=epsilon)]
    return model_of(nodes, {"x": ([1, 3, 4, 4], F32)}, {"y": ([1, 4, 4, 4], F32)}, {"W": gaussian(4, 3, 1, 1), **stats})


@pytest.mark.parametrize("variance, epsilon", [([1, -0.5, 1, 1], 1e-5), ([1, 0, 1, 1], 0.0), ([1, np.nan, 1, 1], 1e-5)])
def test_b025_a_variance_that_has_no_root_is_named_and_no_sample_is_blamed(job, variance, epsilon):
    job.write(normalized(variance, epsilon), {"x": gaussian(8, 3, 4, 4)})
    job.pipeline(calibrate={}, threads=1)
    outcome = job.run()
    assert outcome.code == 3
    for word in ('"v"', "found 1", "at [1]"):
        assert word in outcome.error
    assert not job.output.exists()


def test_b025_a_variance_that_epsilon_mends_is_told(job):
    out = compress_model(job, normalized([1, -1e-9, 1, 1]), {"x": gaussian(8, 3, 4, 4)})
    assert 'variance "v" is negative in places, found 1 such numbers, the first at [1]' in out.warning_text()


@pytest.mark.parametrize("scale", [np.nan, np.inf, 0.0, -0.25])
@pytest.mark.parametrize("op", ["QuantizeLinear", "DequantizeLinear"])
@pytest.mark.parametrize("as_node", [False, True])
def test_b025_a_scale_that_is_no_scale_is_named(job, op, scale, as_node):
    weights = {"W": gaussian(4, 3, 1, 1), "good": np.float32(0.1), "zero": np.uint8(128)}
    bad = numpy_helper.from_array(np.float32(scale), "bad")
    scales = {"QuantizeLinear": ("bad", "good"), "DequantizeLinear": ("good", "bad")}[op]
    nodes = [node("QuantizeLinear", ["x", scales[0], "zero"], ["q"], "q"), node("DequantizeLinear", ["q", scales[1], "zero"], ["d"], "dq"),
             node("Conv", ["d", "W"], ["y"], "conv")]
    if as_node:
        nodes.insert(0, helper.make_node("Constant", [], ["bad"], value=bad))
    else:
        weights["bad"] = np.float32(scale)
    job.write(model_of(nodes, {"x": ([1, 3, 4, 4], F32)}, {"y": ([1, 4, 4, 4], F32)}, weights), {"x": gaussian(8, 3, 4, 4)})
    job.pipeline(calibrate={}, threads=1)
    outcome = job.run()
    assert outcome.code == 3
    for word in ('scale "bad"', "above 0", "found 1"):
        assert word in outcome.error
    assert not job.output.exists()


def test_b025_infinite_bounds_and_masks_are_no_fault(job):
    mask = np.array([0, 0, -np.inf, 0], np.float32)
    nodes = [node("MatMul", ["x", "W"], ["h"], "m"), node("Clip", ["h", "low", "high"], ["c"]), node("Add", ["c", "mask"], ["a"]),
             node("Softmax", ["a"], ["y"])]
    weights = {"W": gaussian(4, 4), "low": np.float32(-np.inf), "high": np.float32(np.inf), "mask": mask}
    job.write(model_of(nodes, {"x": ([1, 4], F32)}, {"y": ([1, 4], F32)}, weights), {"x": gaussian(8, 4)})
    job.pipeline(stages=[{"quantize": {"method": "rtn", "scheme": "fp16"}}, {"export": {"formats": ["bundle"]}}], threads=1)
    outcome = job.run()
    assert outcome.code == 0, outcome.err


def test_b028_weights_below_every_scale_are_told_of(job):
    W = gaussian(4, 3, 1, 1)
    W[2] = 1e-40
    out = compress_model(job, conv_model(W, [1, 3, 4, 4], [1, 4, 4, 4]), {"x": gaussian(8, 3, 4, 4)})
    assert [w["code"] for w in out.report["warnings"]] == ["weights_vanish"]
    assert 'layer: 1 channels of weight "W"' in out.warning_text()


def test_b028_activations_below_every_step_are_told_of(job):
    out = compress_model(job, conv_model(gaussian(4, 3, 1, 1), [1, 3, 4, 4], [1, 4, 4, 4]), {"x": gaussian(8, 3, 4, 4, scale=1e-40)})
    assert 'value "x": its range' in out.warning_text() and "too small" in out.warning_text()


def test_b028_no_stored_scale_is_zero_where_products_of_scales_underflow(job):
    W, bias = gaussian(4, 3, 1, 1, scale=1e-25), np.array([0, 1e-38, 0, 1], np.float32)
    x = gaussian(8, 3, 4, 4, seed=1, scale=1e-25)
    out = compress_model(job, conv_model(W, [1, 3, 4, 4], [1, 4, 4, 4], bias), {"x": x})
    scales = [array for name, array in out.arrays.items() if name.endswith("_scale")]
    assert len(scales) == 3 and all(np.all(np.isfinite(s) & (s > 0)) for s in scales)
    want, got = out.run(x=x[:1])[0], out.run_bundle(x=x[:1])["y"]
    assert np.array_equal(want, got)
    step = np.finfo(np.float32).tiny
    assert np.all(np.abs(want[0, :3].max(axis=(1, 2)) - bias[:3]) <= step) and np.allclose(want[0, 3], 1)


@pytest.mark.parametrize("scheme", ["w4a16_g32", "w4a8_g32"])
def test_b028_a_block_below_every_half_scale_comes_back_as_nothing_worse_than_zero(job, scheme):
    """1e-8 / 7 is 0 in half precision, whose least number is 6e-8: as good as any code is 0, an error of 1e-8."""
    W = gaussian(64, 8)
    W[:32, 3] = np.where(np.arange(32) % 2, 1e-8, -1e-8)
    model = one_layer("MatMul", {"W": W}, ["N", 64], ["N", 8])
    out = compress_model(job, model, {"x": gaussian(16, 64, seed=1)}, scheme=scheme)
    (weight,) = out.weight_dequantizers()
    scales = out.arrays[weight.input[1]]
    assert np.all(np.isfinite(scales) & (scales != 0)) and np.all(scales.astype(np.float16) != 0)
    back = out.arrays[weight.input[0]].astype(np.float64) * np.repeat(scales, 32, axis=0)
    assert np.abs(back[:32, 3] - W[:32, 3]).max() <= 1e-8 * (1 + 1e-6)
    block = np.zeros((1, 64), np.float32)
    block[0, :32] = 1 + np.arange(32)
    for y in (out.run(x=block)[0], out.run_bundle(x=block)["y"]):
        assert np.all(np.isfinite(y)) and abs(y[0, 3]) <= 1e-8 * block.sum()
