"""Known faults of other tools that ours must not have: numbers that steer a decision."""

import random

import numpy as np
import pytest
from conftest import Job, model_of, small_cnn
from quantized import F32, gaussian, node

CONFIG, BUDGET = 2, 4


def test_b074_a_relative_limit_on_a_zero_baseline_never_passes(job):
    job.write(small_cnn(), {"x": gaussian(48, 3, 8, 8)})
    job.pipeline(calibrate={"samples": 16}, evaluate={"skip": 16, "metric": "kl"}, threads=1,
                 stages=[{"calibrate": {"method": "minmax"}}, {"quantize": {"method": "rtn", "scheme": "w4a8_c"}}, {"export": {"formats": ["bundle"]}},
                         {"validate": {"against": ["float"], "gate": {"metric_drop": "1 %"}}}])
    outcome = job.run()
    assert outcome.code == CONFIG, outcome.err
    assert "baseline of 0" in outcome.error and "absolute" in outcome.error   # and what would work instead


def two_layers(job, **config):
    nodes = [node("MatMul", ["x", "W"], ["h"], "first"), node("MatMul", ["h", "V"], ["y"], "second")]
    job.write(model_of(nodes, {"x": (["N", 64], F32)}, {"y": (["N", 32], F32)}, {"W": gaussian(64, 48), "V": gaussian(48, 32)}), {"x": gaussian(48, 64)})
    stages = [{"calibrate": {"method": "minmax"}}, {"sensitivity": {}}, {"search": {"schemes": config.pop("schemes")}}, {"quantize": {"method": "rtn"}},
              {"export": {"formats": ["onnx_qdq", "bundle"]}}]
    job.pipeline(calibrate={"samples": 16}, evaluate={"skip": 32, "metric": "agreement"}, threads=1, stages=stages, **config)
    return job.run()


def test_b075_a_budget_below_every_choice_is_refused_before_calibration(job):
    # 64*48 + 48*32 = 4608 weights at 8 bits are 4608 bytes; 4.5 bits a weight would be 2592.
    outcome = two_layers(job, schemes=["w8a8_c"], budget={"size": "2592 B"})
    assert outcome.code == BUDGET
    for told in ("budget.size", "smallest reachable", "first", "second"):
        assert told in outcome.error
    assert "calibrate done" not in outcome.err and not list(job.output.rglob("calibrate*"))


def test_b075_a_latency_below_every_choice_is_refused_before_calibration(job):
    outcome = two_layers(job, schemes=["w8a8_c"], budget={"latency": "0.001 us"})
    assert outcome.code == BUDGET
    for told in ("budget.latency: expected at most 1 ns", "smallest reachable", "first", "second"):
        assert told in outcome.error
    assert "calibrate ..." not in outcome.err and not list(job.output.rglob("calibrate*"))


def test_b075_a_budget_that_everything_meets_leaves_the_best_format(job):
    outcome = two_layers(job, schemes=["fp32", "w8a8_c", "w4a8_c"], budget={"size": "1 MB"})
    assert outcome.code == 0, outcome.err
    assert {l["name"]: l["scheme"] for l in job.report()["layers"]} == {"first": "fp32", "second": "fp32"}


@pytest.mark.parametrize("threads", [1, 2])
def test_b078_latency_says_how_it_was_measured_and_slower_is_visible(job, threads):
    w = {f"W{i}": gaussian(16, 16, 3, 3, seed=i, scale=0.1) for i in range(3)}
    nodes, last = [], "x"
    for i in range(3):
        nodes += [node("Conv", [last, f"W{i}"], [f"c{i}"], f"conv{i}", pads=[1] * 4), node("Relu", [f"c{i}"], [f"r{i}"])]
        last = f"r{i}"
    shape = (["N", 16, 64, 64], F32)
    job.write(model_of(nodes, {"x": shape}, {"r2": shape}, w), {"x": gaussian(8, 16, 64, 64)})
    job.pipeline(calibrate={"samples": 4}, evaluate={"skip": 4, "metric": "kl"}, threads=threads)
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    latency = job.report()["latency"]
    assert latency["threads"] == threads
    for side in (latency["baseline"], latency["final"]):
        assert side["runs"] >= 10 and 0 < side["median"] <= side["p95"]
    slower = latency["final"]["median"] > latency["baseline"]["median"]
    assert ("slower_than_float" in [w["code"] for w in job.report()["warnings"]]) == slower


def test_b079_same_seed_gives_the_same_bytes_and_leaves_the_hosts_random_numbers_alone(tmp_path, compress_run):
    import compress

    written = []
    for run, threads in enumerate((1, 1, 4, 4)):
        (tmp_path / str(run)).mkdir()
        job = Job(tmp_path / str(run), compress_run)
        job.write(small_cnn(), {"x": gaussian(48, 3, 8, 8)})
        path = job.pipeline(calibrate={"samples": 16}, threads=threads, seed=7)
        np.random.seed(3)
        random.seed(3)
        before = np.random.get_state()[1].tolist(), random.getstate()
        compress.run(path)
        assert (np.random.get_state()[1].tolist(), random.getstate()) == before
        written.append([(job.output / name).read_bytes() for name in ("model_qdq.onnx", "model.ctkb")])
    assert written[0] == written[1] == written[2] == written[3]
