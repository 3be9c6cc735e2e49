"""The stage qat: what it wins back, what it keeps, and that the written network is the one that was trained."""

import json
import os
import subprocess

import numpy as np
import onnx
import pytest
from conftest import ROOT
from test_training import FINETUNE, columns, trainer, training  # noqa: F401

CONFIG = 2
QAT = {"qat": {"epochs": 6, "batch_size": 32, "learning_rate": 0.005}}
EXPORT = {"export": {"formats": ["bundle", "onnx_qdq"]}}


def chain(scheme, *more, method="rtn"):
    return [FINETUNE, {"calibrate": {"method": "mse"}}, {"quantize": {"method": method, "scheme": scheme}}, *more, EXPORT,
            {"validate": {"against": ["onnxruntime"]}}]


@pytest.mark.parametrize("scheme", ["w8a8_c", "w4a8_c", "w2a16_c"])
def test_qat_keeps_schemes_and_wins_back_what_rounding_lost(job, trainer, scheme):  # noqa: F811
    training(job, chain(scheme, QAT))
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    report = job.report()
    stage = next(s for s in report["stages"] if s["name"] == "qat")
    assert stage["accepted"] and stage["metric_after"] >= stage["metric_before"]
    assert {row["scheme"] for row in report["layers"]} == {scheme}
    assert all(row["method"] == "qat" for row in report["layers"])
    if scheme == "w2a16_c":
        assert stage["metric_after"] > stage["metric_before"] + 0.05   # four levels: rounding costs much


@pytest.mark.parametrize("scheme", ["w8a8_c", "w4a8_c"])
def test_the_written_network_is_the_one_that_was_trained(job, trainer, tmp_path, scheme):  # noqa: F811
    training(job, chain(scheme, QAT), count=1664)
    assert job.run().code == 0
    program = ROOT / "build/release/bin/test_train"
    if not program.exists():
        pytest.skip("built without tests")
    np.save(tmp_path / "samples.npy", columns(1664)["x"][:1024])
    done = subprocess.run([program, "--gtest_filter=FakeQuant.ACodedBundle*"], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "CTK_CODED_BUNDLE": str(job.output / "model.ctkb"),
                               "CTK_CODED_SAMPLES": str(tmp_path / "samples.npy")})
    assert done.returncode == 0, done.stdout[-3000:]
    assert "[  PASSED  ] 1 test" in done.stdout


def test_a_mix_of_schemes_is_kept(job, trainer):  # noqa: F811
    """What the search chose, with and without training behind it."""
    before = [FINETUNE, {"calibrate": {}}, {"sensitivity": {}}, {"search": {"schemes": ["w8a8_c", "w4a8_c", "fp16"]}}, {"quantize": {}}]
    found = []
    for stages in ([*before, EXPORT], [*before, QAT, EXPORT]):
        training(job, stages, budget={"size": "60 %"})
        outcome = job.run("--force")
        assert outcome.code == 0, outcome.err
        found.append([(row["name"], row["scheme"]) for row in job.report()["layers"]])
    assert found[0] == found[1] and len({scheme for _, scheme in found[0]}) > 1, found[0]


def test_qat_resumes_from_the_cache_in_the_same_bytes(job, trainer):  # noqa: F811
    training(job, chain("w4a8_c", QAT))
    assert job.run().code == 0
    first = (job.output / "model.ctkb").read_bytes()
    again = job.run("--force")
    assert again.code == 0 and "qat done before" in again.err, again.err
    assert (job.output / "model.ctkb").read_bytes() == first


def test_qat_without_quantize_is_refused(job):
    training(job, [QAT, EXPORT])
    outcome = job.run()
    assert outcome.code == CONFIG
    assert 'stages[0].qat: expected a stage "quantize" before it, found none' in outcome.error


@pytest.mark.parametrize("ranges", ["learned", "clipped"])
def test_ranges_of_activations_are_trained_along(job, trainer, ranges):  # noqa: F811
    """Ranges of the extremes of few samples: other scales come out, and the files still say one network."""
    outcomes = {}
    for kind in ("fixed", ranges):
        training(job, chain("w4a8_c", {"qat": {**QAT["qat"], "ranges": kind}}), output=kind)
        outcome = job.run()
        assert outcome.code == 0, outcome.err
        model = onnx.load(job.folder / kind / "model_qdq.onnx")
        report = json.loads((job.folder / kind / "report.json").read_text())
        assert report["metric"]["final"] > 0.9
        outcomes[kind] = [i for i in model.graph.initializer if "scale" in i.name and not i.dims]
    fixed, trained = ({i.name: onnx.numpy_helper.to_array(i).item() for i in outcomes[kind]} for kind in ("fixed", ranges))
    assert set(fixed) == set(trained) and any(fixed[name] != trained[name] for name in fixed)
