"""Budgets that cannot be met: exit code 4 before anything is quantized, with all that a person needs to mend them."""

import json

import pytest
from conftest import Job, model_of
from quantized import F32, gaussian, node

CONFIG, INPUT, INFEASIBLE = 2, 3, 4

WIDE = [64, 48, 48, 32]   # three products: 64 x 48, 48 x 48 and 48 x 32 weights


def network():
    names = ["first", "second", "third"]
    nodes = [node("MatMul", [f"x{i}" if i else "x", f"W{i}"], [f"x{i + 1}" if i < 2 else "y"], names[i]) for i in range(3)]
    weights = {f"W{i}": gaussian(WIDE[i], WIDE[i + 1], seed=i, scale=0.15) for i in range(3)}
    return model_of(nodes, {"x": (["N", WIDE[0]], F32)}, {"y": (["N", WIDE[-1]], F32)}, weights)


def job_in(folder, compress_run, budget, schemes=("w8a8_c", "w4a8_c"), metric="agreement", quantize=None, **search):
    job = Job(folder, compress_run)
    job.write(network(), {"x": gaussian(200, WIDE[0])})
    stages = [{"calibrate": {"method": "minmax"}}, {"sensitivity": {}}, {"search": {"schemes": list(schemes), **search}},
              {"quantize": {"method": "rtn", **(quantize or {})}}, {"export": {"formats": ["bundle"]}}, {"validate": {}}]
    job.pipeline(calibrate={"samples": 40, "skip": 100}, evaluate={"samples": 40, "metric": metric}, threads=1, stages=stages, budget=budget)
    if "metric_drop" not in budget:
        return job
    path = folder / "pipeline.yaml"
    config = json.loads(path.read_text())
    config["data"]["select"] = {"path": "data.npz", "skip": 140, "samples": 60}
    path.write_text(json.dumps(config))
    return job


# 6912 weights; at w4a8_c 3456 B of codes and 4 * 128 B of scales: 8 * 3968 / 6912 = 4.59 bits. At w8a8_c 8.59.
# name: budget, what else the pipeline says, the budgets that bind, layers that must be named
CASES = {
    "size": ({"size": "2 kB"}, {}, ["size"], ["first", "second", "third"]),
    "size as a share": ({"size": "3 %"}, {}, ["size"], ["first"]),
    "size with a layer left out": ({"size": "6 kB"}, {"quantize": {"ignore": ["first"]}}, ["size"], ["first 12.29 kB (fp32)"]),
    "size with only one layer": ({"size": "8 kB"}, {"quantize": {"targets": ["third"]}}, ["size"], ["first 12.29 kB (fp32)", "second 9.216 kB (fp32)"]),
    "size without small schemes": ({"size": "6 kB"}, {"schemes": ["w8a8_c"]}, ["size"], ["(w8a8_c)"]),
    "size with floats only": ({"size": "50 %"}, {"schemes": ["fp32"]}, ["size"], ["first 12.29 kB (fp32)"]),
    "bits": ({"bits": 4}, {}, ["bits"], ["first"]),
    "bits without small schemes": ({"bits": 6}, {"schemes": ["w8a8_c", "fp16"]}, ["bits"], ["(w8a8_c)"]),
    "bits with a layer left out": ({"bits": 8}, {"quantize": {"ignore": ["first"]}}, ["bits"], ["first 14.22 bits (fp32)"]),
    "bits with a pattern": ({"bits": 12}, {"quantize": {"ignore": ["re:(first|second)"]}}, ["bits"], ["first 14.22 bits (fp32)", "second 10.67 bits (fp32)"]),
    "latency": ({"latency": "0.001 us"}, {}, ["latency"], ["first"]),
    "latency as a share": ({"latency": "0.1 %"}, {}, ["latency"], ["first"]),
    "peak memory": ({"peak_memory": "900 B"}, {}, ["peak_memory"], ["first"]),
    "peak memory as a share": ({"peak_memory": "2 %"}, {}, ["peak_memory"], ["first"]),
    "metric drop": ({"metric_drop": "0.001 pt"}, {"schemes": ["w4a8_c"], "metric": "kl"}, ["metric_drop"], ["first", "second", "third"]),
    "metric drop given a size": ({"metric_drop": "0.002 pt", "size": "6 kB"}, {"schemes": ["fp32", "w8a8_c", "w4a8_c"], "metric": "kl"}, ["metric_drop"], ["(w4a8_c)"]),
    "metric drop given bits": ({"metric_drop": "0.002 pt", "bits": 4.7}, {"schemes": ["fp32", "w4a8_c"], "metric": "kl"}, ["metric_drop"], ["(w4a8_c)"]),
    "minimize below the floor": ({"metric_drop": "0.001 pt", "minimize": "size"}, {"schemes": ["w4a8_c"], "metric": "kl"}, ["metric_drop"], ["first"]),
    "size and latency": ({"size": "2 kB", "latency": "0.001 us"}, {}, ["size", "latency"], ["first"]),
    "size and peak memory": ({"size": "3 %", "peak_memory": "2 %"}, {}, ["size", "peak_memory"], ["first"]),
    "size and bits": ({"size": "3 %", "bits": 4}, {}, ["size", "bits"], ["first"]),
    "three at once": ({"size": "2 kB", "bits": 3, "peak_memory": "900 B"}, {}, ["size", "bits", "peak_memory"], ["first"]),
}


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_met_is_explained_before_quantization(name, tmp_path, compress_run):
    budget, words, bind, told = CASES[name]
    job = job_in(tmp_path, compress_run, budget, **words)
    outcome = job.run()
    assert outcome.code == INFEASIBLE, outcome.err
    assert "expected" in outcome.error and "found" in outcome.error or "smallest reachable" in outcome.error
    for text in (*(f"budget.{key}" for key in bind), *told, "held by", "it binds"):
        assert text in outcome.error, outcome.error
    assert not list(job.output.rglob("quantize*")) and not (job.output / "model.ctkb").exists()
    if "metric_drop" not in budget:
        assert not list(job.output.rglob("calibrate*")) and "sensitivity done" not in outcome.err
    file = json.loads((job.output / "search" / "infeasible.json").read_text())
    rows = {row["name"]: row for row in file["budget"]}
    assert sorted(key for key, row in rows.items() if row["binds"]) == sorted(bind)
    for key in bind:
        assert rows[key]["least_alone"] > rows[key]["limit"] or rows[key]["least_given_others"] > rows[key]["limit"]
        assert rows[key]["held_by"][0]["cost"] > 0
    if "nearest" in file:
        assert file["nearest"]["share"] > 0
        for key, limit in file["nearest"]["limit"].items():
            assert limit is None or file["nearest"]["cost"][key] <= limit * (1 + 1e-9)


def test_budgets_that_fail_only_together_say_how_far_each_gets(tmp_path, compress_run):
    # 8 bits everywhere or float everywhere: 2 bytes more a weight than the size allows where the drop allows no codes.
    job = job_in(tmp_path, compress_run, {"bits": 4.7, "metric_drop": "0.002 pt"}, schemes=["fp32", "w4a8_c"], metric="kl")
    outcome = job.run()
    assert outcome.code == INFEASIBLE
    file = json.loads((job.output / "search" / "infeasible.json").read_text())
    drop = file["budget"][0]
    assert drop["least_alone"] == 0 and drop["least_given_others"] > drop["limit"]   # float loses nothing
    relief = file["raise_one"][0]
    assert relief["budget"] == "bits" and 4.7 < relief["needed"] <= 32
    # The nearest point is a real one: it runs and keeps the floor.
    again = job_in(tmp_path, compress_run, {"bits": min(32, relief["needed"] + 1e-6), "metric_drop": "0.004 pt"}, schemes=["fp32", "w4a8_c"], metric="kl")
    assert again.run("--no-resume").code == 0
    assert not (job.output / "search" / "infeasible.json").exists()   # it speaks of another run


@pytest.mark.parametrize("budget, told", [
    ({"size": "60"}, "Add a unit"), ({"size": "0 kB"}, "above 0"), ({"size": "-1 kB"}, "above 0"), ({"latency": "3"}, "Add a unit"),
    ({"latency": "0 ms"}, "above 0"), ({"peak_memory": "-2 %"}, "above 0"), ({"bits": 0}, "above 0"), ({"bits": -4}, "above 0"),
    ({"bits": "4.5 kB"}, "number"), ({"bits": 64}, "at most 32"), ({"metric_drop": "-1 %"}, "must not be negative"), ({"metric_drop": "1"}, "Add a unit"),
    ({"minimize": "size"}, "metric_drop"), ({"minimize": "loss", "metric_drop": "1 %"}, "size, latency, peak_memory, bits, latency.decode or latency.prefill"),
    ({"minimize": "size", "size": "60 kB", "metric_drop": "1 %"}, "both"), ({"size": ".nan kB"}, "expected a size"),
])
def test_a_budget_that_is_none_is_refused_with_its_remedy(tmp_path, compress_run, budget, told):
    outcome = job_in(tmp_path, compress_run, budget).run()
    assert outcome.code == CONFIG and told in outcome.error, outcome.err
    assert "pipeline.yaml:" in outcome.error and "budget" in outcome.error and not (tmp_path / "out").exists()


def test_one_scheme_for_all_keeps_or_breaks_the_average_bits(tmp_path, compress_run):
    stages = [{"calibrate": {}}, {"quantize": {"scheme": "w4a8_c"}}, {"export": {"formats": ["bundle"]}}]
    job = Job(tmp_path, compress_run)
    job.write(network(), {"x": gaussian(80, WIDE[0])})
    job.pipeline(calibrate={"samples": 40}, stages=stages, budget={"bits": 4.5})
    refused = job.run()
    assert refused.code == INFEASIBLE and "4.593 bits" in refused.error, refused.err
    job.pipeline(calibrate={"samples": 40}, stages=stages, budget={"bits": 4.6})
    assert job.run().code == 0
    row = next(row for row in job.report()["budget"] if row["name"] == "bits")
    assert row["measured"] == pytest.approx(8 * (6912 / 2 + 4 * 128) / 6912) and row["met"]
