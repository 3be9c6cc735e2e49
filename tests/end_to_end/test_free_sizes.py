"""Inputs whose sizes the model leaves open: the data says how large they are."""

import numpy as np
import onnx
import pytest
from conftest import model_of, onnxruntime_outputs, relative_error
from PIL import Image
from quantized import F32, compress_model, gaussian, node


def free_model():
    """Conv 3x3, Relu, MaxPool 2x2, and a scale a channel that looks like the map itself where the map is 1x1."""
    w = {"W": gaussian(6, 3, 3, 3, scale=0.2), "V": gaussian(6, 6, 1, 1, seed=1, scale=0.3)}
    nodes = [node("Conv", ["x", "W"], ["a"], "conv"), node("Relu", ["a"], ["r"]), node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
             node("GlobalAveragePool", ["p"], ["g"]), node("Add", ["p", "g"], ["s"], "add"), node("Conv", ["s", "V"], ["y"], "last")]
    return model_of(nodes, {"x": (["N", 3, "h", "w"], F32)}, {"y": (["N", 6, "h2", "w2"], F32)}, w)


def test_sizes_come_from_the_data(job):
    x = gaussian(16, 3, 11, 8, seed=2)
    out = compress_model(job, free_model(), {"x": x})
    assert out.schemes == {"conv": "w8a8_c", "last": "w8a8_c"}
    # 9x6 outputs of 27 products in 6 channels; 4x3 outputs of 6 products in 6 channels
    assert [row["macs"] for row in out.report["layers"]] == [9 * 6 * 27 * 6, 4 * 3 * 6 * 6]
    for size in ((11, 8), (20, 13)):  # and the result is as free as the model was
        probe = gaussian(2, 3, *size, seed=3)
        assert relative_error(out.run_bundle(x=probe)["y"], out.run(x=probe)[0]) < 1e-6  # float sums of the last layer
    assert [d.dim_param for d in out.model.graph.input[0].type.tensor_type.shape.dim] == ["N", "", "h", "w"]


def test_search_and_validate_measure_at_the_size_of_the_data(job):
    job.write(free_model(), {"x": gaussian(64, 3, 12, 12)})
    job.pipeline(calibrate={"samples": 24}, evaluate={"skip": 48, "metric": "kl"}, threads=1, stages=[
        {"calibrate": {"method": "minmax"}}, {"sensitivity": {"metric": "kl"}}, {"search": {"schemes": ["w8a8_c", "fp16"], "solver": "ilp"}},
        {"quantize": {"method": "rtn"}}, {"export": {"formats": ["onnx_qdq", "bundle"]}}, {"validate": {"against": ["onnxruntime"]}}])
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    assert all(row["result"] in ("agrees", "differs") or row["against"] == "float" for row in job.report()["checks"])


def test_b055_pictures_of_unequal_size_calibrate_one_by_one(job):
    onnx.save(free_model(), job.folder / "net.onnx")
    (job.folder / "pictures").mkdir()
    r, largest = np.random.default_rng(0), 0
    for i, (height, width) in enumerate([(7, 7), (12, 9), (30, 11)]):
        pixels = r.integers(0, 256, (height, width, 3), dtype=np.uint8)
        largest = max(largest, int(pixels.max()))
        Image.fromarray(pixels).save(job.folder / "pictures" / f"{i}.png")
    job.pipeline(threads=1, data={"calibrate": {"path": "pictures", "scale": 255}})
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    ranges = {row["name"]: row for row in job.report()["ranges"]}
    assert ranges["x"]["high"] == pytest.approx(largest / 255)
    assert ranges["x"]["count"] == 3 * (7 * 7 + 12 * 9 + 30 * 11)


def test_data_of_a_size_the_network_cannot_take_is_named(job):
    job.write(free_model(), {"x": gaussian(8, 3, 2, 2)})
    job.pipeline(calibrate={}, threads=1)
    outcome = job.run()
    assert outcome.code == 3 and not job.output.exists()
    for word in ("conv", "data.npz row 0", "free"):
        assert word in outcome.error


def test_without_data_the_free_dimensions_are_named(job, compress_run):
    onnx.save(free_model(), job.folder / "net.onnx")
    outcome = compress_run("bench", job.folder / "net.onnx")
    assert outcome.code == 3
    for word in ('input "x"', "[N,3,h,w]", '"h", "w" free'):
        assert word in outcome.err


def test_weights_alone_need_no_sizes(job):
    onnx.save(free_model(), job.folder / "net.onnx")
    job.pipeline(threads=1, stages=[{"quantize": {"method": "rtn", "scheme": "fp16"}}, {"export": {"formats": ["onnx_qdq"]}}])
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    x = gaussian(1, 3, 9, 9)
    want = onnxruntime_outputs(free_model(), {"x": x})[0]
    assert np.abs(onnxruntime_outputs(job.output / "model_qdq.onnx", {"x": x})[0] - want).max() < 2e-3 * np.abs(want).max()


@pytest.mark.parametrize("verb", ["run", "eval", "bench"])
def test_an_input_of_unknown_rank_is_named(verb, job, compress_run):
    model = free_model()
    model.graph.input[0].type.tensor_type.ClearField("shape")
    job.write(model, {"x": gaussian(8, 3, 9, 9)})
    job.pipeline(calibrate={}, evaluate={"metric": "kl"}, threads=1)
    outcome = {"run": job.run, "eval": lambda: compress_run("eval", job.folder / "pipeline.yaml"),
               "bench": lambda: compress_run("bench", job.folder / "net.onnx")}[verb]()
    assert outcome.code == 3, outcome.err
    assert 'input "x": expected a declared shape' in outcome.err and "update_model_dims" in outcome.err
