"""Runs that do not end well: what is said, what is left behind. And samples and figures that allow no verdict."""

import json
import signal
import subprocess

import numpy as np
import onnx
import pytest
from conftest import F32, find_program, model_of, small_cnn
from quantized import gaussian, node, one_layer

CONFIG, INPUT, REFUSED, INTERRUPTED = 2, 3, 5, 130


def labelled(count=48):
    return {"x": gaussian(count, 3, 8, 8), "y": (np.arange(count) % 4).astype(np.int64)}


def export_and_validate(job, gate=None, metric="top1", labels="y", **extra):
    evaluate = {"skip": 16, "metric": metric, **({"labels": labels} if labels else {})}
    job.pipeline(calibrate={"samples": 16}, evaluate=evaluate, threads=1, **extra,
                 stages=[{"calibrate": {}}, {"quantize": {"scheme": "w8a8_c"}}, {"export": {"formats": ["bundle"]}},
                         {"validate": {"gate": {"metric_drop": gate}} if gate else {}}])


def test_a_failing_stage_is_not_called_done(job):
    x = np.abs(gaussian(8, 8)) + 0.5
    x[2, 3] = 0
    job.write(reciprocal(), {"x": x})
    job.pipeline(calibrate={}, threads=1)
    outcome = job.run()
    assert outcome.code == INPUT
    assert "calibrate failed after" in outcome.err and "done" not in outcome.err
    assert not (job.output / "report.json").exists()


def test_an_interrupted_stage_is_not_called_done(job):
    job.write(small_cnn(), {"x": gaussian(4000, 3, 8, 8)})
    job.pipeline(calibrate={}, method="mse", threads=1)
    child = subprocess.Popen([str(find_program()), "run", str(job.folder / "pipeline.yaml")], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    told = ""
    while "calibrate 10 %" not in told:
        line = child.stderr.readline()
        assert line, told
        told += line
    child.send_signal(signal.SIGINT)
    rest = child.communicate(timeout=60)[1]
    assert child.returncode == INTERRUPTED
    assert "calibrate interrupted after" in rest and "done" not in told + rest
    assert "same command" in rest
    assert job.run().code == 0


def test_a_refusing_gate_leaves_a_report_beside_the_files(job):
    arrays = labelled()
    job.write(small_cnn(), arrays)
    export_and_validate(job, gate="0 pt", metric="mse", labels=None)   # coded weights differ a little
    outcome = job.run()
    assert outcome.code == REFUSED, outcome.err
    assert "validate refused after" in outcome.err
    report = job.report()
    assert report["stages"][-1]["name"] == "validate" and report["stages"][-1]["accepted"] is False
    assert any(w["code"] == "gate_refused" for w in report["warnings"])
    manifest = json.loads((job.output / "manifest.json").read_text())
    assert {f["path"] for f in manifest["files"]} == {"model.ctkb", "report.json", "report.md", "report.html"}


def test_files_are_not_left_without_a_report_when_validate_fails(job):
    """Sample 40 of the test split makes an inner value infinite, which only validate finds out."""
    nodes = [node("Div", ["one", "x"], ["d"], "divide"), node("MatMul", ["d", "W"], ["y"], "layer")]
    model = model_of(nodes, {"x": (["N", 8], F32)}, {"y": (["N", 4], F32)}, {"one": np.ones(1, np.float32), "W": gaussian(8, 4)})
    x = np.abs(gaussian(48, 8)) + 0.5
    x[40] = 0
    job.write(model, {"x": x})
    export_and_validate(job, metric="kl", labels=None)
    outcome = job.run()
    assert outcome.code == INPUT, outcome.err
    assert (job.output / "model.ctkb").exists()
    report = job.report()
    assert report["files"][0]["path"] == "model.ctkb" and report["metric"] is None
    assert report["stages"][-1] == {**report["stages"][-1], "name": "validate", "accepted": False}
    assert any(w["code"] == "not_finished" and w["text"] in outcome.error for w in report["warnings"])


def test_the_report_of_an_earlier_run_does_not_outlive_its_files(job):
    job.write(small_cnn(), labelled())
    export_and_validate(job)
    assert job.run().code == 0
    export_and_validate(job, gate="0 pt", metric="mse", labels=None, seed=1)
    assert job.run().code == REFUSED
    assert job.report()["metric"]["name"] == "mse"


# --- B074: which way is worse, and what is no amount ----------------------------------------------------------------------
def constant_answer(label):
    """A network that always answers class 0: top1 is the share of samples with that label, before and after."""
    nodes = [node("MatMul", ["x", "W"], ["h"], "layer"), node("Mul", ["h", "zero"], ["z"], "mute"), node("Add", ["z", "b"], ["y"], "answer")]
    model = model_of(nodes, {"x": (["N", 8], F32)}, {"y": (["N", 4], F32)},
                     {"W": gaussian(8, 4), "zero": np.zeros(1, np.float32), "b": np.array([1, 0, 0, 0], np.float32)})
    return model, {"x": gaussian(48, 8), "y": np.full(48, label, np.int64)}


def test_b074_a_relative_limit_on_a_baseline_of_zero_stops_with_a_way_out(job):
    job.write(*constant_answer(label=3))   # never right: top1 is 0
    export_and_validate(job, gate="1 %")
    outcome = job.run()
    assert outcome.code == CONFIG, outcome.err
    assert "metric_drop" in outcome.error and "1 %" in outcome.error and "Use points" in outcome.error
    assert (job.output / "report.json").exists()
    export_and_validate(job, gate="1 pt")
    assert job.run().code == 0


def test_b074_a_relative_budget_on_a_baseline_of_zero_stops_too(job):
    job.write(*constant_answer(label=3))
    export_and_validate(job, budget={"metric_drop": "1 %"})
    outcome = job.run()
    assert outcome.code == CONFIG and "budget.metric_drop" in outcome.error and "Use points" in outcome.error
    row = next(b for b in job.report()["budget"] if b["name"] == "metric_drop")
    assert row["met"] is None and row["measured"] is None


@pytest.mark.parametrize("metric", ["kl", "mse"])
@pytest.mark.parametrize("where", ["gate", "budget"])
def test_b074_metrics_that_are_zero_for_the_float_network_take_points_only(job, compress_run, metric, where):
    job.write(small_cnn(), labelled())
    limit = {"gate": "1 %"} if where == "gate" else {"budget": {"metric_drop": "1 %"}}
    export_and_validate(job, metric=metric, labels=None, **limit)
    for verb in ("check", "run"):
        outcome = compress_run(verb, job.folder / "pipeline.yaml")
        assert outcome.code == CONFIG and metric in outcome.error and "Use points" in outcome.error
    assert not job.output.exists()


@pytest.mark.parametrize("metric", ["kl", "mse"])
def test_b074_lower_is_better_counts_the_right_way(job, metric):
    """Both grow from 0: a limit above what was found passes, one below it refuses."""
    job.write(small_cnn(), labelled())
    export_and_validate(job, metric=metric, labels=None)
    assert job.run().code == 0
    part = job.report()["metric"]
    assert part["better"] == "lower" and part["baseline"] == 0 and part["drop"] == part["final"] > 0
    for factor, code in ((1.01, 0), (0.99, REFUSED)):
        export_and_validate(job, metric=metric, labels=None, gate=f"{part['final'] * factor:.12f} pt")
        assert job.run().code == code


def test_b074_a_signal_to_noise_ratio_cannot_be_a_drop(job, compress_run):
    job.write(small_cnn(), labelled())
    export_and_validate(job, metric="sqnr_db", labels=None, gate="1 pt")
    outcome = job.run()
    assert outcome.code == CONFIG and "sqnr_db" in outcome.error and "agreement" in outcome.error
    export_and_validate(job, metric="sqnr_db", labels=None)
    assert job.run().code == 0
    part = job.report()["metric"]
    assert part["baseline"] is None and part["drop"] is None and part["final"] > 10


def test_outputs_that_are_all_zero_do_not_stop_validate(job):
    model, arrays = constant_answer(label=0)
    model.graph.initializer[2].CopyFrom(onnx.numpy_helper.from_array(np.zeros(4, np.float32), "b"))
    job.write(model, arrays)
    export_and_validate(job)
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    assert job.report()["metric"]["final"] == 1


# --- B026: samples that are left out --------------------------------------------------------------------------------------
def reciprocal():
    """y = (1 / x) W: a zero in x is clean data and infinite inside."""
    nodes = [node("Div", ["one", "x"], ["d"], "divide"), node("MatMul", ["d", "W"], ["y"], "layer")]
    return model_of(nodes, {"x": (["N", 8], F32)}, {"y": (["N", 4], F32)}, {"one": np.ones(1, np.float32), "W": gaussian(8, 4)})


@pytest.mark.parametrize("method", ["minmax", "mse"])
@pytest.mark.parametrize("bad, tensor", [(np.nan, "x"), (np.inf, "x"), (0.0, "d")])
def test_b026_a_skipped_sample_is_in_the_report(tmp_path, compress_run, method, bad, tensor):
    from conftest import Job

    x = np.abs(gaussian(70, 8)) + 0.5
    poisoned = x.copy()
    poisoned[2, 5] = poisoned[64, 0] = bad
    clean = np.delete(x, [2, 64], 0)
    found = []
    for name, data in (("bad", poisoned), ("clean", clean)):
        (tmp_path / name).mkdir()
        job = Job(tmp_path / name, compress_run)
        job.write(reciprocal(), {"x": data})
        job.pipeline(calibrate={"on_bad_sample": "skip"}, method=method, threads=1)
        for words in ([], []):   # straight, and from the cache
            outcome = job.run(*words)
            assert outcome.code == 0, outcome.err
            report = job.report()
            found.append(report["ranges"])
            skipped = [(s["split"], s["index"], s["tensor"]) for s in report["skipped_samples"]]
            assert skipped == ([("calibrate", 2, tensor), ("calibrate", 64, tensor)] if name == "bad" else [])
            assert all(word in s["reason"] for s in report["skipped_samples"] for word in ("element", "NaN" if bad != bad else "infinite"))
            assert report["splits"]["calibrate"]["count"] == 68
            assert all(row["rows_seen"] == 68 for row in report["layers"])
    assert all(ranges == found[0] for ranges in found)


def test_b026_without_a_policy_the_sample_is_an_error(job):
    x = np.abs(gaussian(8, 8)) + 0.5
    x[2, 5] = 0
    job.write(reciprocal(), {"x": x})
    for keys in ({}, {"on_bad_sample": "error"}):
        job.pipeline(calibrate=keys, threads=1)
        outcome = job.run()
        assert outcome.code == INPUT and '"d"' in outcome.error and "sample 2" in outcome.error


def test_b026_the_sample_is_named_when_outer_dimensions_are_folded(job):
    """x [N, 4, 8] becomes [N * 4, 8] inside: row 11 of the folded value is sample 2."""
    nodes = [node("Reshape", ["x", "shape"], ["f"], "fold"), node("Div", ["one", "f"], ["d"], "divide"), node("MatMul", ["d", "W"], ["y"], "layer")]
    model = model_of(nodes, {"x": (["N", 4, 8], F32)}, {"y": (["M", 4], F32)},
                     {"shape": np.array([-1, 8], np.int64), "one": np.ones(1, np.float32), "W": gaussian(8, 4)})
    x = np.abs(gaussian(6, 4, 8)) + 0.5
    x[2, 3, 1] = 0
    job.write(model, {"x": x})
    job.pipeline(calibrate={}, threads=1)
    outcome = job.run()
    assert outcome.code == INPUT and "sample 2" in outcome.error
    job.pipeline(calibrate={"on_bad_sample": "skip"}, threads=1)
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    assert [(s["index"], s["tensor"]) for s in job.report()["skipped_samples"]] == [(2, "d")]


def test_b026_every_sample_skipped_is_an_error(job):
    job.write(reciprocal(), {"x": np.zeros((6, 8), np.float32) + np.arange(6, dtype=np.float32)[:, None] * [1, 0, 0, 0, 0, 0, 0, 0]})
    np.savez(job.folder / "data.npz", x=np.load(job.folder / "data.npz")["x"].astype(np.float32))
    job.pipeline(calibrate={"on_bad_sample": "skip"}, threads=1)
    outcome = job.run()
    assert outcome.code == INPUT and "all 6" in outcome.error


def test_b026_numbers_that_overflow_in_conversion_can_be_skipped(job):
    x = gaussian(8, 8)
    x[3, 2] = 1e30
    job.write(one_layer("MatMul", {"W": gaussian(8, 4)}, ["N", 8], ["N", 4]), {"x": x})
    job.pipeline(calibrate={"scale": 1e-30}, threads=1)
    outcome = job.run()
    assert outcome.code == INPUT and "on_bad_sample" in outcome.error
    job.pipeline(calibrate={"scale": 1e-30, "on_bad_sample": "skip"}, threads=1)
    outcome = job.run()
    assert [(s["index"], s["tensor"]) for s in job.report()["skipped_samples"]] == [(3, "x")], outcome.err


def test_the_policy_is_listed_with_its_words(compress_run):
    listed = compress_run("list", "keys").out
    line = next(l for l in listed.splitlines() if "on_bad_sample" in l)
    assert "error" in line and "skip" in line
