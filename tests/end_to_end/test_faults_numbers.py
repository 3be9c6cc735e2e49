"""Known faults of other tools that ours must not have: degenerate values, exact integers."""

import json
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest
from conftest import Job, model_of, onnxruntime_outputs, relative_error
from quantized import F32, compress_model, conv_model, gaussian, node, one_layer

INPUT = 3


def scales_of(out) -> list[np.ndarray]:
    return [out.arrays[n.input[1]] for op in ("QuantizeLinear", "DequantizeLinear") for n in out.nodes(op)]


# --- degenerate values ---------------------------------------------------------------------------------------------------
def test_b023_an_activation_that_is_always_zero_stays_zero(job):
    W, b = gaussian(4, 3, 1, 1), gaussian(4, seed=1)
    nodes = [node("Abs", ["x"], ["a"]), node("Neg", ["a"], ["n"]), node("Relu", ["n"], ["zero"]), node("Conv", ["zero", "W", "b"], ["y"], "layer")]
    model = model_of(nodes, {"x": ([1, 3, 2, 2], F32)}, {"zero": ([1, 3, 2, 2], F32), "y": ([1, 4, 2, 2], F32)}, {"W": W, "b": b})
    x = gaussian(8, 3, 2, 2, seed=2)
    out = compress_model(job, model, {"x": x})
    assert all(np.all(np.isfinite(s)) and np.all(s > 0) for s in scales_of(out))
    zero, y = out.run(x=x[:1])
    assert np.all(zero == 0)
    assert np.abs(y - b[None, :, None, None]).max() <= np.abs(b).max() / 255 + 1e-6


def test_b023_an_all_zero_channel_gives_exactly_its_bias(job):
    W = gaussian(3, 4, 1, 1)
    W[1] = 0
    b = np.array([0.3, 0.7, -0.2], np.float32)
    x = gaussian(8, 4, 2, 2, seed=2)
    out = compress_model(job, conv_model(W, [1, 4, 2, 2], [1, 3, 2, 2], bias=b), {"x": x})
    assert all(np.all(np.isfinite(s)) and np.all(s > 0) for s in scales_of(out))
    # An output that is rounded itself can only hold multiples of its step.
    low, high = out.range_of("y")
    for got in (out.run(x=x[:1])[0], out.run_bundle(x=x[:1])["y"]):
        assert np.abs(got[0, 1] - 0.7).max() <= (high - low) / 255 / 2 * 1.001


def test_b023_a_zero_channel_keeps_a_bias_far_below_the_input_step(job):
    W, b = gaussian(6, 3, 3, 3), np.full(6, 0.003, np.float32)
    W[2] = 0
    x = gaussian(16, 3, 8, 8, seed=1, scale=1000)  # a step of some 30, so a scale of 1 would round the bias away
    out = compress_model(job, conv_model(W, ["N", 3, 8, 8], ["N", 6, 6, 6], bias=b), {"x": x})
    stored = next(a for n, a in out.arrays.items() if a.dtype == np.int32)
    step = next(out.arrays[n.input[1]] for n in out.nodes("DequantizeLinear") if out.arrays.get(n.input[0]) is stored
                or (n.input[0] in out.arrays and out.arrays[n.input[0]].dtype == np.int32))
    assert stored[2] * np.float64(step[2]) == pytest.approx(0.003, rel=1e-6)


def test_b023_a_constant_activation_comes_back_within_one_step(job):
    x = np.full((8, 3, 2, 2), 0.5, np.float32)
    W = np.eye(3, dtype=np.float32).reshape(3, 3, 1, 1)
    out = compress_model(job, conv_model(W, [1, 3, 2, 2], [1, 3, 2, 2]), {"x": x})
    assert all(np.all(np.isfinite(s)) and np.all(s > 0) for s in scales_of(out))
    assert np.abs(out.run(x=x[:1])[0] - 0.5).max() <= 0.5 / 255 * 2


@pytest.mark.parametrize("bad, word", [(np.nan, "NaN"), (np.inf, "infinite")])
def test_b025_non_finite_weights_stop_before_anything_is_written(job, bad, word):
    W = gaussian(16, 16)
    W[3, 5] = bad
    job.write(one_layer("MatMul", {"W": W}, [1, 16], [1, 16]), {"x": gaussian(8, 16)})
    job.pipeline(calibrate={}, threads=1)
    outcome = job.run()
    assert outcome.code == INPUT
    for told in ('"W"', "1 ", word, "[3,5]"):
        assert told in outcome.error
    assert not job.output.exists() or not [p for p in job.output.rglob("*.onnx")]


def poisoned(value):
    x = gaussian(4, 8)
    x[2, 3] = value
    return x


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_b026_a_bad_sample_is_named(job, value):
    job.write(one_layer("MatMul", {"W": gaussian(8, 4)}, ["N", 8], ["N", 4]), {"x": poisoned(value)})
    job.pipeline(calibrate={}, threads=1)
    outcome = job.run()
    assert outcome.code == INPUT
    for word in ("sample 2", "data.npz row 2", "'x'"):
        assert word in outcome.error, outcome.error


def test_b026_a_bad_value_inside_the_network_is_named(job):
    # 1 / 0 in sample 2: the input is clean, the quotient is not.
    model = model_of([node("Div", ["one", "x"], ["d"], "divide"), node("MatMul", ["d", "W"], ["y"], "layer")], {"x": (["N", 8], F32)},
                     {"y": (["N", 4], F32)}, {"one": np.ones(1, np.float32), "W": gaussian(8, 4)})
    job.write(model, {"x": poisoned(0)})
    job.pipeline(calibrate={}, threads=1)
    outcome = job.run()
    assert outcome.code == INPUT and "2" in outcome.error and '"d"' in outcome.error.replace("'", '"')


def test_b026_a_skipped_sample_leaves_the_ranges_of_the_clean_ones(tmp_path, compress_run):
    model = one_layer("MatMul", {"W": gaussian(8, 4)}, ["N", 8], ["N", 4])
    x = poisoned(np.nan)
    ranges = []
    for name, data in (("bad", x), ("clean", x[[0, 1, 3]])):
        (tmp_path / name).mkdir()
        out = compress_model(Job(tmp_path / name, compress_run), model, {"x": data}, calibrate={"on_bad_sample": "skip"})
        ranges.append([(r["name"], r["low"], r["high"]) for r in out.report["ranges"]])
        assert ("skip" in out.warning_text().lower()) == (name == "bad")
    assert ranges[0] == ranges[1]


# --- exact integers ------------------------------------------------------------------------------------------------------
# Codes 255 and 127 under scales of 1: the sum is 255 * 127 * K, 64770 at K = 2. int16 pair sums would give 32767.
PROBE = """
import json, sys, numpy as np, compress
graph = compress.load(sys.argv[1])
shape = [abs(d) for d in graph.inputs["x"][1]]
y = graph.run({"x": np.full(shape, 255, np.float32)})["y"]
print(json.dumps(sorted(set(np.asarray(y, np.float64).ravel().tolist()))))
"""


def full_scale_model(op, K):
    one, zero = np.float32(1), np.uint8(0)
    W = np.full({"Gemm": (3, K), "MatMul": (K, 3), "Conv": (3, K, 1, 1), "Conv3": (3, K, 3, 3)}[op], 127, np.int8)
    attributes = {"Gemm": {"transB": 1}, "Conv3": {"pads": [0, 0, 0, 0]}}.get(op, {})
    x_shape = {"Conv": [1, K, 5, 5], "Conv3": [1, K, 5, 5]}.get(op, [7, K])
    nodes = [node("QuantizeLinear", ["x", "one", "zero"], ["q"]), node("DequantizeLinear", ["q", "one", "zero"], ["xd"]),
             node("DequantizeLinear", ["W", "one"], ["wd"]), node(op.rstrip("3"), ["xd", "wd"], ["y"], "layer", **attributes)]
    return model_of(nodes, {"x": (x_shape, F32)}, {"y": (None, F32)}, {"W": W, "one": one, "zero": zero}, opset=13)


def isa_rows(program) -> list[str]:
    rows = ["scalar", "x86_avx2", "x86_avxvnni", "x86_avx512vnni"]
    def runs(isa):
        return subprocess.run([program, "kernels"], env=dict(os.environ, CTK_ISA=isa), capture_output=True).returncode == 0
    return [isa for isa in rows if runs(isa)]


@pytest.mark.parametrize("isa", ["scalar", "x86_avx2", "x86_avxvnni", "x86_avx512vnni"])
@pytest.mark.parametrize("op, K", [("Gemm", 2), ("Gemm", 64), ("MatMul", 64), ("Conv", 2), ("Conv", 64), ("Conv3", 2), ("Conv3", 16)])
def test_b029_full_scale_products_are_summed_exactly(tmp_path, program, isa, op, K):
    if isa not in isa_rows(program):
        pytest.skip(f"this processor has no {isa}")
    onnx.save(full_scale_model(op, K), tmp_path / "full.onnx")
    done = subprocess.run([sys.executable, "-c", PROBE, str(tmp_path / "full.onnx")], env=dict(os.environ, CTK_ISA=isa), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [255 * 127 * K * (9 if op == "Conv3" else 1)]


def test_b029_reduced_range_is_exact_where_onnxruntime_would_saturate(job):
    """Every product at its largest: with 8-bit weights two of them overflow the 16 bits of kernels without VNNI."""
    x = np.full((8, 64), 1.0, np.float32)
    model = one_layer("MatMul", {"W": np.full((64, 4), 1.0, np.float32)}, ["N", 64], ["N", 4])
    out = compress_model(job, model, {"x": x}, quantize={"reduce_range": True})
    codes = next(out.arrays[n.input[0]] for n in out.weight_dequantizers())
    assert np.all(codes == 63)
    fused = onnxruntime_outputs(out.model, {"x": x}, exact=False)[0]
    assert np.allclose(fused, 64, atol=64 / 255) and np.allclose(fused, out.run(x=x)[0], rtol=1e-5)


def test_b028_fp16_is_left_out_for_a_weight_it_cannot_hold(job, compress_run):
    W = gaussian(16, 16)
    W[3, 5] = 70000
    nodes = [node("MatMul", ["x", "W"], ["h"], "wide"), node("MatMul", ["h", "V"], ["y"], "small")]
    model = model_of(nodes, {"x": (["N", 16], F32)}, {"y": (["N", 16], F32)}, {"W": W, "V": gaussian(16, 16, seed=1)})
    job.write(model, {"x": gaussian(200, 16, seed=2)})
    job.pipeline(calibrate={"samples": 64}, threads=1, stages=[
        {"calibrate": {"method": "minmax"}}, {"sensitivity": {"metric": "kl"}}, {"search": {"schemes": ["fp16", "w8a8_c"], "solver": "ilp"}},
        {"quantize": {"method": "rtn"}}, {"export": {"formats": ["onnx_qdq"]}}])
    assert compress_run("check", job.folder / "pipeline.yaml").code == 0
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    assert next(row["scheme"] for row in job.report()["layers"] if row["name"] == "wide") == "w8a8_c"
    skipped = next(row for row in job.report()["skipped"] if row["name"] == "wide")
    assert "fp16" in skipped["reason"] and "70000" in skipped["reason"] and "65504" in skipped["reason"]


def test_bias_correction_puts_the_mean_rounding_error_into_the_bias(job):
    W, b = gaussian(24, 5, seed=3), gaussian(5, seed=4)
    x = gaussian(64, 24, seed=5) + np.linspace(0.5, 3, 24, dtype=np.float32)
    model = one_layer("Gemm", {"W": W, "b": b}, ["N", 24], ["N", 5])
    out = compress_model(job, model, {"x": x}, scheme="w4a8_c", quantize={"bias_correction": True})
    dequantize = out.weight_dequantizers()[0]
    codes, scale = out.arrays[dequantize.input[0]].astype(np.float64), out.arrays[dequantize.input[1]].astype(np.float64)
    want = b + x.mean(axis=0, dtype=np.float64) @ (W - codes * scale)
    assert np.abs(want - b).max() > 0.05  # there is something to correct
    stored = next(n for n in out.nodes("DequantizeLinear") if out.arrays.get(n.input[0], W).dtype == np.int32)
    step = out.arrays[stored.input[1]].astype(np.float64)
    assert np.abs(out.arrays[stored.input[0]] * step - want).max() <= step.max() / 2 + 1e-6


A = np.array([[1, 2, 3, 4]], np.float32)
B = (np.arange(12, dtype=np.float32) / 10).reshape(4, 3)
# A x B = [6, 7, 8] by hand; times alpha = 2, plus half of C.
GEMMS = {"whole": ([10, 20, 30], [17, 24, 31]), "broadcast": ([10], [17, 19, 21]), "absent": (None, [12, 14, 16])}


@pytest.mark.parametrize("C, want", GEMMS.values(), ids=GEMMS.keys())
def test_b031_alpha_scales_the_product_and_beta_the_bias(job, C, want):
    weights = {"B": B} if C is None else {"B": B, "C": np.array(C, np.float32)}
    model = one_layer("Gemm", weights, [1, 4], [1, 3], alpha=2.0, beta=0.5)
    out = compress_model(job, model, {"x": np.concatenate([A, A * 0.5])})
    for got in (out.run(x=A)[0], out.run_bundle(x=A)["y"]):
        assert np.abs(got - want).max() <= np.max(want) / 255 + 0.05


def test_b032_a_bias_that_int32_cannot_hold_raises_the_scale(job):
    W, b = np.full((2, 3, 1, 1), 1e-7, np.float32), np.array([5, -4.5], np.float32)
    x = np.random.default_rng(0).uniform(0, 127, (8, 3, 4, 4)).astype(np.float32)
    out = compress_model(job, conv_model(W, [1, 3, 4, 4], [1, 2, 4, 4], bias=b), {"x": x})
    for got in (out.run(x=x[:1])[0], out.run_bundle(x=x[:1])["y"]):
        assert np.abs(got[0, 0] / 5 - 1).max() < 0.01 and np.abs(got[0, 1] / -4.5 - 1).max() < 0.01
    assert "layer" in out.warning_text() and "raised" in out.warning_text()


def test_b033_relu_still_clips_what_the_range_would_not(job):
    W = np.eye(2, dtype=np.float32).reshape(2, 2, 1, 1)
    nodes = [node("Conv", ["x", "W"], ["c"], "layer"), node("Relu", ["c"], ["y"])]
    shape = ([1, 2, 1, 2], F32)
    x = np.array([[[[-3, 3]], [[3, -3]]]], np.float32)
    out = compress_model(job, model_of(nodes, {"x": shape}, {"y": shape, "c": shape}, {"W": W}), {"x": np.concatenate([x, -x])})
    for got in (out.run(x=x)[0], out.run_bundle(x=x)["y"]):
        assert got[0, 0, 0, 0] == 0 and got[0, 1, 0, 1] == 0 and abs(got[0, 0, 0, 1] - 3) < 6 / 255 * 2


def test_b033_clip_still_clips_before_a_join_with_a_wider_range(job):
    w = {"W": np.eye(2, dtype=np.float32).reshape(2, 2, 1, 1), "low": np.float32(0), "high": np.float32(6), "V": gaussian(2, 4, 1, 1)}
    nodes = [node("Conv", ["x", "W"], ["c"], "first"), node("Clip", ["c", "low", "high"], ["k"]), node("Concat", ["k", "z"], ["j"], axis=1),
             node("Conv", ["j", "V"], ["y"], "second")]
    shape = ([1, 2, 2, 2], F32)
    model = model_of(nodes, {"x": shape, "z": shape}, {"j": ([1, 4, 2, 2], F32), "y": shape}, w)
    x = np.array([[[[-3, 3], [8, 6]], [[8, -8], [1, 0]]]], np.float32)
    z = np.array([[[[-10, 10], [0, 5]], [[1, 2], [3, 4]]]], np.float32)
    out = compress_model(job, model, {"x": np.concatenate([x, x]), "z": np.concatenate([z, z])})
    want = np.clip(x, 0, 6)
    for got in (out.run(x=x, z=z)[0], out.run_bundle(x=x, z=z)["j"]):
        part = got[:, :2]
        assert part.min() == 0 and np.all(part[x <= 0] == 0) and np.abs(part - want).max() <= 20 / 255 * 1.5
        assert part.max() <= 6 + 20 / 255 / 2


def test_b033_a_clip_whose_bounds_are_crossed_gives_its_upper_bound(job):
    w = {"W": gaussian(6, 3, 3, 3, scale=0.2), "V": gaussian(4, 6, 2, 2, seed=1, scale=0.2), "low": np.float32(1), "high": np.float32(-1)}
    nodes = [node("Conv", ["x", "W"], ["a"], "first"), node("Clip", ["a", "low", "high"], ["r"]), node("Conv", ["r", "V"], ["y"], "second")]
    model = model_of(nodes, {"x": ([1, 3, 8, 8], F32)}, {"y": ([1, 4, 5, 5], F32), "r": ([1, 6, 6, 6], F32)}, w)
    x = gaussian(8, 3, 8, 8, seed=2)
    out = compress_model(job, model, {"x": x})
    assert np.all(out.run_source(x=x[:1])[1] == -1)      # ONNX Runtime on the float model
    got, want = out.run_bundle(x=x[:1]), out.run(x=x[:1])
    assert np.all(got["r"] == -1) and relative_error(got["y"], want[0]) < 1e-6


def test_b035_a_range_around_zero_keeps_zero_and_the_sign(job):
    W = np.eye(4, dtype=np.float32)
    x = np.random.default_rng(0).uniform(-1, 1, (16, 4)).astype(np.float32)
    x[0], x[1] = 1, -1
    out = compress_model(job, one_layer("MatMul", {"W": W}, [1, 4], [1, 4]), {"x": x})
    (quantizer,) = [n for n in out.nodes("QuantizeLinear") if n.input[0] == "x"]
    assert out.arrays[quantizer.input[2]] == 128 and out.arrays[quantizer.input[2]].dtype == np.uint8
    for weight in out.weight_dequantizers():   # int8, symmetric: no zero point, or zeros
        assert len(weight.input) == 2 or not np.any(out.arrays[weight.input[2]])
        assert np.abs(out.arrays[weight.input[0]].astype(int)).max() <= 127
    probe = np.array([[0, 0.99, -0.5, 0.123]], np.float32)
    for run in (lambda v: out.run(x=v)[0], lambda v: out.run_bundle(x=v)["y"]):
        assert run(probe)[0, 0] == 0
        assert np.array_equal(run(-probe), -run(probe))
