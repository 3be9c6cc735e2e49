"""Known faults of other tools that ours must not have: calibration; its samples, their memory, their names."""

import json

import pytest
from conftest import model_of, run_measured
from quantized import F32, conv_model, gaussian, node

INPUT = 3


def test_b054_an_empty_folder_of_pictures_is_refused_at_the_start(job):
    job.write(conv_model(gaussian(4, 3, 3, 3), ["N", 3, 8, 8], ["N", 4, 6, 6]), {"x": gaussian(4, 3, 8, 8)})
    (job.folder / "pictures").mkdir()
    job.pipeline(calibrate={}, threads=1)
    config = json.loads((job.folder / "pipeline.yaml").read_text())
    config["data"]["calibrate"] = {"path": "pictures", "resize": 8, "crop": 8}
    (job.folder / "pipeline.yaml").write_text(json.dumps(config))
    outcome = job.run()
    assert outcome.code == INPUT and "pictures" in outcome.error and "calibrate" in outcome.error
    assert not (job.output / "model_qdq.onnx").exists()


def peak_bytes(job, samples, method) -> int:
    """Peak memory of the program alone, from the kernel."""
    job.pipeline(calibrate={"samples": samples}, method=method, threads=1, output=f"out_{samples}_{method}")
    outcome, usage = run_measured(["run", job.folder / "pipeline.yaml"], job.folder / "log.txt")
    assert outcome.code == 0, outcome.err
    return usage.ru_maxrss * 1024


@pytest.mark.usefixtures("product_build")
@pytest.mark.parametrize("method", ["percentile", "entropy"])
def test_b056_memory_of_calibration_does_not_grow_with_the_samples(job, method):
    w = {"W1": gaussian(16, 16, 3, 3, scale=0.1), "W2": gaussian(16, 16, 3, 3, seed=1, scale=0.1)}
    nodes = [node("Conv", ["x", "W1"], ["h"], "c1", pads=[1] * 4), node("Conv", ["h", "W2"], ["y"], "c2", pads=[1] * 4)]
    shape = (["N", 16, 64, 64], F32)
    job.write(model_of(nodes, {"x": shape}, {"y": shape}, w), {"x": gaussian(256, 16, 64, 64, seed=2)})
    few, many = peak_bytes(job, 16, method), peak_bytes(job, 256, method)
    assert many <= 1.1 * few


@pytest.mark.usefixtures("product_build")
def test_b056_large_activations_are_watched_a_few_samples_at_a_time(job):
    w = {"W1": gaussian(16, 3, 3, 3, scale=0.1), "W2": gaussian(4, 16, 3, 3, seed=1, scale=0.1)}
    nodes = [node("Conv", ["x", "W1"], ["h"], "c1", pads=[1] * 4), node("Conv", ["h", "W2"], ["y"], "c2", pads=[1] * 4)]
    job.write(model_of(nodes, {"x": (["N", 3, 256, 256], F32)}, {"y": (["N", 4, 256, 256], F32)}, w), {"x": gaussian(48, 3, 256, 256, seed=2)})
    few, many = peak_bytes(job, 4, "minmax"), peak_bytes(job, 48, "minmax")
    assert many <= 1.1 * few  # one value of one sample is 4 MB, and a batch of 32 would be 128


def test_b059_data_under_another_name_is_refused_with_both_names(job):
    job.write(conv_model(gaussian(4, 3, 3, 3), [1, 3, 8, 8], [1, 4, 6, 6]), {"input": gaussian(4, 3, 8, 8), "other": gaussian(4, 2)})
    job.pipeline(calibrate={}, threads=1)
    outcome = job.run()
    assert outcome.code == INPUT
    for told in ("x", "input", "other"):
        assert told in outcome.error
