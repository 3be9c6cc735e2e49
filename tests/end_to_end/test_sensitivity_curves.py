"""Sensitivity as data for plots: layers on, off, one after the other; weights and activations apart."""

import json

import pytest
from conftest import small_cnn
from quantized import gaussian


def curves(job, scheme):
    rows = json.loads((job.output / "sensitivity_curves.json").read_text())
    assert rows["unit"] == "nats" and rows["samples"] == 32
    return {row["layer"]: row for row in rows["curves"] if row["scheme"] == scheme}


def test_curves_tell_layers_on_off_and_one_after_the_other(job):
    job.write(small_cnn(), {"x": gaussian(128, 3, 8, 8)})
    data = {"calibrate": {"path": "data.npz", "samples": 32}, "score": {"path": "data.npz", "skip": 32, "samples": 32},
            "evaluate": {"path": "data.npz", "skip": 64}}
    job.pipeline(data=data, threads=1, budget={"size": "1 MB"}, stages=[
        {"calibrate": {}}, {"sensitivity": {"metric": "kl", "curves": True}}, {"search": {"schemes": ["w8a8_c", "w4a8_c", "fp16"]}},
        {"quantize": {}}, {"export": {"formats": ["bundle"]}}, {"validate": {}}])
    assert job.run().code == 0
    found = curves(job, "w4a8_c")
    assert list(found) == ["conv1", "conv2", "head"]
    scores = {(s["layer"], s["scheme"]): s for s in json.loads((job.output / "scores.json").read_text())["scores"]}
    for layer, row in found.items():
        assert row["on"]["loss"] == pytest.approx(scores[layer, "w4a8_c"]["loss"], rel=1e-9)
        assert row["on"]["standard_error"] > 0
        # Two parts that know nothing of each other add up, to second order; at 4 bits the weights' is the greater.
        assert row["weights"]["loss"] + row["activations"]["loss"] == pytest.approx(row["on"]["loss"], rel=0.5)
        assert row["weights"]["loss"] > row["activations"]["loss"] > 0
    assert found["conv1"]["accumulated"] == found["conv1"]["on"]
    # All three on, but for the last: what "off" of the last is.
    assert found["conv2"]["accumulated"] == found["head"]["off"]
    half = curves(job, "fp16")
    assert half["conv1"]["weights"] == half["conv1"]["on"] and half["conv1"]["activations"]["loss"] == 0
    resumed = job.run()
    assert resumed.code == 0 and curves(job, "w4a8_c") == found
    job.run("--set", "stages.sensitivity.curves=false")
    assert not (job.output / "sensitivity_curves.json").exists()


def test_fisher_tells_weights_and_activations_apart(job):
    job.write(small_cnn(), {"x": gaussian(128, 3, 8, 8)})
    job.pipeline(calibrate={"samples": 32}, evaluate={"skip": 96}, threads=1, budget={"size": "1 MB"}, stages=[
        {"calibrate": {}}, {"sensitivity": {"metric": "fisher"}}, {"search": {"schemes": ["w8a8_c", "w4a8_c", "w4a16_c"]}}, {"quantize": {}},
        {"export": {"formats": ["bundle"]}}])
    assert job.run().code == 0
    scores = {(s["layer"], s["scheme"]): s for s in json.loads((job.output / "scores.json").read_text())["scores"]}
    for (layer, scheme), row in scores.items():
        assert row["weights"] + row["activations"] == pytest.approx(row["loss"], rel=1e-9)
        if scheme == "w4a16_c":
            assert row["activations"] == 0
    for layer in ("conv1", "conv2", "head"):   # the same activations beside other weights
        assert scores[layer, "w4a8_c"]["activations"] == scores[layer, "w8a8_c"]["activations"] > 0
        assert scores[layer, "w4a8_c"]["weights"] > scores[layer, "w8a8_c"]["weights"] > 0
