"""Real networks: float outputs against ONNX Runtime, and the figures of the pipelines that must run as they stand."""

import functools
import json

import numpy as np
import pytest
from conftest import PIPELINES, onnxruntime_outputs, relative_error

import compress

# Model: input shape of two samples, and their range.
MODELS = {
    "cifar10/resnet20_cifar10.onnx": ([2, 3, 32, 32], -2, 2),
    "cifar10/resnet20_cifar10_jpeg.onnx": ([2, 3, 32, 32], -2, 2),
    "cifar10/resnet56_cifar10_jpeg.onnx": ([2, 3, 32, 32], -2, 2),
    "imagenet100/mobilenet_v2_imagenet.onnx": ([2, 3, 224, 224], -2, 2),
    "kws/kws_dscnn.onnx": (None, -50, 50),
    "tiny/ad_autoencoder.onnx": ([2, 640], -5, 5),
    "tiny/ic_resnet8.onnx": ([2, 3, 32, 32], 0, 255),
    "tiny/vww_mobilenet025.onnx": ([2, 3, 96, 96], 0, 1),
}


@pytest.mark.parametrize("model", MODELS)
def test_float_outputs_are_those_of_onnx_runtime(shared_data, model):
    shape, low, high = MODELS[model]
    graph = compress.load(shared_data / model)
    ((name, (_, declared)),) = graph.inputs.items()
    shape = shape or [2 if d < 0 else d for d in declared]
    x = np.random.default_rng(0).uniform(low, high, shape).astype(np.float32)
    got = graph.run({name: x})
    for output, want in zip(graph.outputs, onnxruntime_outputs(shared_data / model, {name: x}, exact=False)):
        assert relative_error(got[output], want) <= 1e-4


@functools.cache
def finished(name, run, folder, *words):
    outcome = run("run", PIPELINES / name, "--output", folder, "--threads", 1, *words, timeout=3000)
    assert outcome.code == 0, outcome.err
    return json.loads((folder / "report.json").read_text())


@pytest.fixture(scope="module")
def report_of(shared_data, compress_run, tmp_path_factory):
    if not PIPELINES.exists():
        pytest.skip(f"the pipelines are absent: {PIPELINES}")
    folder = tmp_path_factory.mktemp("real")
    return lambda name, *words: finished(name, compress_run, folder / name.removesuffix(".yaml"), *words)


def agreement(report, against) -> float:
    return next(c["agreement"] for c in report["checks"] if c["against"] == against)


INT8 = {"resnet20-int8.yaml": (0.8733, 0.003), "kws-int8.yaml": (0.9125, 0.005)}


@pytest.mark.parametrize("name", INT8)
def test_int8_keeps_the_accuracy_and_agrees_with_float(report_of, name):
    baseline, drop = INT8[name]
    report = report_of(name)
    assert report["metric"]["baseline"] == pytest.approx(baseline, abs=1e-4)
    assert report["metric"]["drop"] <= drop
    assert agreement(report, "float") >= 0.985
    assert agreement(report, "onnxruntime") >= 0.985


@pytest.mark.parametrize("name", INT8)
def test_int8_files_are_a_quarter_of_the_float_file(report_of, name):
    report = report_of(name)
    # kws has 22 k weights: the Q/DQ nodes and their scales alone are 10 kB of its ONNX file (0.35 of the float file).
    formats = ("bundle",) if name == "kws-int8.yaml" else ("onnx_qdq", "bundle")
    for file in report["files"]:
        if file["format"] in formats:
            assert file["bytes"] <= 0.28 * report["size"]["before"], file["path"]


def test_an_infeasible_budget_ends_before_quantization(shared_data, compress_run, tmp_path):
    if not PIPELINES.exists():
        pytest.skip(f"the pipelines are absent: {PIPELINES}")
    outcome = compress_run("run", PIPELINES / "infeasible.yaml", "--output", tmp_path / "out")
    assert outcome.code == 4
    for word in ("budget.size", "1 kB", "smallest reachable", "held by"):
        assert word in outcome.error
    assert not (tmp_path / "out/model.ctkb").exists()


@pytest.mark.slow
def test_mobilenet_agrees_with_float_as_often_as_onnx_runtime_does(report_of, shared_data, tmp_path):
    report = report_of("mobilenetv2-int8.yaml")
    import static_int8

    x, model = static_int8.pictures(shared_data / "imagenet100/images"), shared_data / "imagenet100/mobilenet_v2_imagenet.onnx"
    want = static_int8.outputs(model, x[50:], exact=False)
    peer = static_int8.outputs(static_int8.quantize(model, x[:50], tmp_path), x[50:], exact=True)
    assert 0.5 < static_int8.agreement(peer, want) < 1   # a peer to be held against, not a broken one
    assert agreement(report, "float") >= static_int8.agreement(peer, want)
    # 50 pictures; ONNX Runtime agrees with itself on 47 of them when only the order of its float sums changes.
    assert agreement(report, "onnxruntime") >= 0.90
    assert "differs_from_onnxruntime" not in [w["code"] for w in report["warnings"]]
