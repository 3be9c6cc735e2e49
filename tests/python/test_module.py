"""`import compress`: graphs on numpy arrays, pipelines with progress, reports as dicts, errors with exit codes."""

import json

import numpy as np
import onnx
import pytest
from conftest import model_of, onnxruntime_outputs, small_cnn
from onnx import helper

import compress


@pytest.fixture
def net(tmp_path):
    onnx.save(small_cnn(), tmp_path / "net.onnx")
    return compress.load(tmp_path / "net.onnx")


def pictures(count, seed=0):
    return np.random.default_rng(seed).normal(size=(count, 3, 8, 8)).astype(np.float32)


@pytest.fixture
def pipeline(tmp_path) -> dict:
    onnx.save(small_cnn(), tmp_path / "net.onnx")
    np.savez(tmp_path / "data.npz", x=pictures(32))
    return {"model": str(tmp_path / "net.onnx"), "output": str(tmp_path / "out"), "threads": 1,
            "data": {"calibrate": {"path": str(tmp_path / "data.npz"), "samples": 16}},
            "stages": [{"calibrate": {"method": "minmax"}}, {"quantize": {"method": "rtn", "scheme": "w8a8_c"}}, {"export": {"formats": ["bundle"]}}]}


def test_a_graph_tells_its_inputs_outputs_and_layers(net):
    assert net.inputs == {"x": ("f32", [-1, 3, 8, 8])} and net.outputs == ["y"]
    assert [(l["name"], l["op"], list(l["shape"]), l["bits"]) for l in net.layers()] == [
        ("conv1", "Conv", [8, 3, 3, 3], 32), ("conv2", "Conv", [8, 8, 3, 3], 32), ("head", "Gemm", [4, 8], 32)]
    assert "conv1" in net.text()


@pytest.mark.parametrize("count", [1, 3, 8])
def test_a_graph_runs_on_arrays_of_any_batch(net, count):
    x = pictures(count)
    np.testing.assert_allclose(net.run({"x": x})["y"], onnxruntime_outputs(small_cnn(), {"x": x})[0], rtol=1e-4, atol=1e-5)


def test_an_array_need_not_lie_contiguous(net):
    x = pictures(6)
    assert np.array_equal(net.run({"x": x[::2]})["y"], net.run({"x": x[::2].copy()})["y"])
    turned = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    assert np.array_equal(net.run({"x": turned})["y"], net.run({"x": x})["y"])


def test_an_array_of_the_other_byte_order_is_turned_round(net):
    x = pictures(2)
    assert np.array_equal(net.run({"x": x.astype(">f4")})["y"], net.run({"x": x})["y"])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"])
def test_every_dtype_passes_both_ways(tmp_path, dtype):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = model_of([helper.make_node("Reshape", ["x", "shape"], ["y"])], {"x": ([2, 2], kind)}, {"y": ([4], kind)}, {"shape": np.array([4])})
    onnx.save(model, tmp_path / "net.onnx")
    x = np.array([[0, 1], [1, 0]]).astype(dtype)
    x[0, 1] = np.iinfo(dtype).max if x.dtype.kind in "iu" else 1
    got = compress.load(tmp_path / "net.onnx").run({"x": x})["y"]
    assert got.dtype == x.dtype and np.array_equal(got, x.ravel())


def test_results_do_not_depend_on_threads(net):
    x = pictures(4)
    assert np.array_equal(net.run({"x": x}, threads=1)["y"], net.run({"x": x}, threads=3)["y"])


@pytest.mark.parametrize("inputs, words", [
    ({}, ["x"]),
    ({"picture": pictures(1)}, ["x"]),
    ({"x": pictures(1), "z": pictures(1)}, ["x"]),
    ({"x": pictures(1).astype(np.float64)}, ["x", "f32", "f64"]),
    ({"x": np.zeros((1, 8, 8, 3), np.float32)}, ["x", "8"]),
    ({"x": np.zeros((1, 3, 8, 8), np.complex64)}, ["x", "complex64"]),
], ids=["missing", "misnamed", "unknown", "float64", "channels_last", "complex"])
def test_wrong_inputs_are_told_by_name(net, inputs, words):
    with pytest.raises(compress.Error) as caught:
        net.run(inputs)
    assert caught.value.code == 3
    for word in words:
        assert word in str(caught.value)


def test_a_missing_file_is_an_error_with_its_code(tmp_path):
    with pytest.raises(compress.Error) as caught:
        compress.load(tmp_path / "absent.onnx")
    assert caught.value.code == 3 and "absent.onnx" in str(caught.value)


def test_a_pipeline_runs_from_a_dict(pipeline, tmp_path):
    report = compress.run(pipeline)
    assert {l["name"]: l["scheme"] for l in report["layers"]} == {"conv1": "w8a8_c", "conv2": "w8a8_c", "head": "w8a8_c"}
    written = json.loads((tmp_path / "out/report.json").read_text())
    assert report["layers"] == written["layers"] and report["files"] == written["files"]
    assert {l["bits"] for l in compress.load(tmp_path / "out/model.ctkb").layers()} == {8}


def test_a_pipeline_runs_from_a_file_with_overrides_and_output(pipeline, tmp_path):
    (tmp_path / "pipeline.yaml").write_text(json.dumps(pipeline))
    report = compress.run(tmp_path / "pipeline.yaml", output=tmp_path / "elsewhere", overrides={"stages.quantize.scheme": "w4a8_c"})
    assert {l["scheme"] for l in report["layers"]} == {"w4a8_c"}
    assert (tmp_path / "elsewhere/model.ctkb").exists() and not (tmp_path / "out").exists()


def test_dict_and_file_write_the_same_bytes(pipeline, tmp_path):
    (tmp_path / "pipeline.yaml").write_text(json.dumps(pipeline))
    compress.run(tmp_path / "pipeline.yaml", output=tmp_path / "a")
    compress.run(pipeline, output=tmp_path / "b")
    assert (tmp_path / "a/model.ctkb").read_bytes() == (tmp_path / "b/model.ctkb").read_bytes()


def test_a_wrong_key_is_an_error_of_configuration(pipeline):
    pipeline["stagez"] = pipeline.pop("stages")
    with pytest.raises(compress.Error) as caught:
        compress.run(pipeline)
    assert caught.value.code == 2 and "stagez" in str(caught.value) and "stages" in str(caught.value)


def test_progress_names_every_stage_and_ends_at_one(pipeline):
    seen = []
    compress.run(pipeline, progress=lambda stage, share: seen.append((stage, share)))
    assert list(dict.fromkeys(stage for stage, _ in seen)) == ["calibrate", "quantize", "export"]
    for stage in ("calibrate", "quantize", "export"):
        shares = [share for name, share in seen if name == stage]
        assert shares == sorted(shares) and shares[0] == 0 and shares[-1] == 1


def test_an_exception_in_progress_ends_the_run_and_the_next_run_goes_on(pipeline, tmp_path):
    def refuse(stage, share):
        if stage == "quantize":
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        compress.run(pipeline, progress=refuse)
    assert not (tmp_path / "out/model.ctkb").exists()
    report = compress.run(pipeline)
    assert {s["name"]: s["cached"] for s in report["stages"]}["calibrate"]
