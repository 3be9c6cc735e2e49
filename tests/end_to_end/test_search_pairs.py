"""Neighbours measured together, where sums of losses mislead."""

import itertools
import json

import numpy as np
import pytest
from conftest import F32, model_of
from quantized import gaussian, node


def chain(seed, layers=4, width=3):
    """Products of width 3 with residual sums: so narrow that errors of neighbours mostly add up or cancel."""
    r = np.random.default_rng(seed)
    weights = {f"W{i}": r.normal(0, 0.5, (width, width)).astype(np.float32) for i in range(layers)}
    nodes, value = [], "x"
    for i in range(layers):
        nodes += [node("MatMul", [value, f"W{i}"], [f"h{i}"], f"layer{i}"), node("Tanh", [f"h{i}"], [f"t{i}"], f"tanh{i}"),
                  node("Add", [f"t{i}", value], [f"s{i}" if i + 1 < layers else "y"], f"sum{i}")]
        value = f"s{i}"
    return model_of(nodes, {"x": (["N", width], F32)}, {"y": (["N", width], F32)}, weights)


PAIRS_SEED = 9


def pairs_data():
    x = np.abs(gaussian(64, 3, seed=4)) + 0.5
    return {"x": np.concatenate([x, x + 1e-5]).astype(np.float32)}   # scored; evaluated, all but the same


def measured(job, layers):
    """KL of the network in which these layers alone are rounded to 2 bits."""
    if not layers:
        return 0.0
    job.pipeline(evaluate={"skip": 64}, calibrate={"samples": 64}, threads=1, output="one", budget={}, stages=[
        {"quantize": {"scheme": "w2a16_c", "targets": sorted(layers)}}, {"export": {"formats": ["bundle"]}}, {"validate": {}}])
    assert job.run("--force").code == 0
    report = json.loads((job.folder / "one" / "report.json").read_text())
    return float(next(c["result"] for c in report["checks"] if c["against"] == "float").split()[1])


def searched(job, bits, pairs):
    scored = {"path": "data.npz", "samples": 64}
    data = {"calibrate": scored, "score": scored, "evaluate": {"path": "data.npz", "skip": 64}}
    job.pipeline(data=data, threads=1, budget={"bits": bits}, stages=[
        {"sensitivity": {"metric": "kl"}}, {"search": {"schemes": ["w2a16_c", "fp32"], "pairs": pairs}}, {"quantize": {}},
        {"export": {"formats": ["bundle"]}}, {"validate": {}}])
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    report = job.report()
    return {layer["name"] for layer in report["layers"] if layer["scheme"] != "fp32"}, report


def test_neighbours_measured_together_find_what_sums_miss(job, compress_run):
    """Two of four layers must give way: held against all that can."""
    job.write(chain(PAIRS_SEED), pairs_data())
    names = [f"layer{i}" for i in range(4)]
    truth = {pair: measured(job, pair) for pair in itertools.combinations(names, 2)}
    best = min(truth, key=truth.get)
    # Nine weights at 2 bits with three scales of 16 are 22/3 bits each: two layers of four make 19.7 bits in the mean.
    by_sums, _ = searched(job, 20, 0)
    by_pairs, report = searched(job, 20, 12)
    assert len(by_sums) == len(by_pairs) == 2
    assert truth[tuple(sorted(by_sums))] > 1.3 * truth[best]   # the sum misleads here
    assert tuple(sorted(by_pairs)) == best
    pairs = report["search"]["pairs"]
    assert 0 < len(pairs) <= 12
    for row in pairs:   # two layers at 2 bits: what was measured apart from the search
        assert row["together"] == pytest.approx(truth[tuple(sorted((row["first"], row["second"])))], rel=2e-2)
        assert row["loss"] == pytest.approx(row["together"] - row["sum"])
    # The loss of the answer is no longer the sum of scores but what the two lose together.
    assert report["certificate"]["loss"] == pytest.approx(truth[best], rel=2e-2)
    again = json.loads(compress_run("search", "--from", job.output, "--json").out)
    assert {layer for layer, scheme in again["assignment"].items() if scheme != "fp32"} == by_pairs
