"""calibrate: {method: auto}: the observer of each value by what its range makes the network lose."""

import json

from conftest import F32, model_of, small_cnn
from quantized import gaussian, node

INPUT = 3


def observers(job, method):
    data = {"calibrate": {"path": "data.npz", "samples": 32}, "score": {"path": "data.npz", "skip": 32, "samples": 32},
            "evaluate": {"path": "data.npz", "skip": 64}}
    job.pipeline(data=data, threads=1, output=f"out_{method}", budget={"size": "1 MB"}, stages=[
        {"calibrate": {"method": method}}, {"sensitivity": {"metric": "fisher"}}, {"search": {"schemes": ["w8a8_c"]}}, {"quantize": {}},
        {"export": {"formats": ["bundle"]}}, {"validate": {}}])
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    folder = job.folder / f"out_{method}"
    return json.loads((folder / "report.json").read_text())


def test_each_value_gets_the_observer_whose_range_loses_least(job):
    # Outliers in one of three inputs' channels: some values are served better by cutting them off than others.
    x = gaussian(128, 3, 8, 8, seed=9)
    x[::7, 0, 0, 0] *= 40
    job.write(small_cnn(seed=3), {"x": x})
    chosen = observers(job, "auto")
    each = {method: {r["name"]: r for r in observers(job, method)["ranges"]} for method in ("minmax", "percentile", "entropy", "mse")}
    taken = set()
    for row in chosen["ranges"]:
        assert "by its loss in nats" in row["source"]
        figures = {part.split()[0]: float(part.split()[1]) for part in row["source"].split("nats: ")[1].split("; ")[0].split(", ")}
        assert set(figures) == set(each)
        method = row["source"].split("; ")[1].split()[0]
        assert figures[method] == min(figures.values())
        assert (row["low"], row["high"]) == (each[method][row["name"]]["low"], each[method][row["name"]]["high"])
        taken.add(method)
    assert len(taken) > 1


def test_a_network_without_gradients_is_told_to_name_an_observer(job):
    nodes = [node("MatMul", ["x", "W"], ["h"], "a"), node("Min", ["h", "m"], ["s"], "least"), node("MatMul", ["s", "V"], ["y"], "b")]
    weights = {"W": gaussian(6, 6), "m": gaussian(6, seed=2), "V": gaussian(6, 4, seed=1)}
    job.write(model_of(nodes, {"x": (["N", 6], F32)}, {"y": (["N", 4], F32)}, weights), {"x": gaussian(64, 6)})
    job.pipeline(calibrate={"samples": 32}, evaluate={"skip": 32}, method="auto", threads=1)
    refused = job.run()
    assert refused.code == INPUT and "least" in refused.error and "name an observer such as mse" in refused.error
