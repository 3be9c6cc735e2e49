"""What a search may choose of a layer beyond its bits: zero points, and fronts of all of it."""

import json

import numpy as np
from conftest import F32, model_of, small_cnn
from quantized import gaussian, node

CONFIG = 2


def two_products() -> dict:
    """Weights of the first lie on one side of 0, where a zero point doubles the use of the codes; the second's on both."""
    r = np.random.default_rng(5)
    return {"W1": r.uniform(0.02, 0.1, (64, 32)).astype(np.float32), "W2": r.normal(0, 0.3, (32, 8)).astype(np.float32)}


def write_two_products(job):
    nodes = [node("MatMul", ["x", "W1"], ["h"], "one_sided"), node("MatMul", ["h", "W2"], ["y"], "two_sided")]
    job.write(model_of(nodes, {"x": (["N", 64], F32)}, {"y": (["N", 8], F32)}, two_products()),
              {"x": gaussian(160, 8, seed=1) @ gaussian(8, 64, seed=2) + 0.1 * gaussian(160, 64)})   # inputs that go together, for gptq


AFFINE = [{"sensitivity": {"metric": "kl"}}, {"search": {"schemes": ["w4a16_g32_affine", "w4a16_g32"]}}, {"quantize": {"method": "gptq"}},
          {"export": {"formats": ["bundle"]}}, {"validate": {}}]


def test_zero_points_are_a_choice_of_each_layer(job, compress_run):
    """Scored, costed, timed, fitted to inputs and explained; bytes to the byte."""
    write_two_products(job)
    data = {"calibrate": {"path": "data.npz", "samples": 64}, "score": {"path": "data.npz", "skip": 64, "samples": 32},
            "evaluate": {"path": "data.npz", "skip": 96}}
    # 4 bits, fp16 scales of groups of 32: 1024 + 64 * 2 and 128 + 8 * 2 bytes; zero points are 4 bits each, 32 and 4 bytes.
    job.pipeline(data=data, stages=AFFINE, budget={"size": "1 MB", "latency": "10 s"}, threads=1)
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    report = job.report()
    layers = {layer["name"]: layer for layer in report["layers"]}
    assert layers["one_sided"]["scheme"] == "w4a16_g32_affine" and layers["one_sided"]["method"] == "gptq"
    assert layers["one_sided"]["bytes"] == 1024 + 128 + 32
    assert "w4a16_g32 would save 32 B" in layers["one_sided"]["reason"]
    scores = {(s["layer"], s["scheme"]): s["loss"] for s in json.loads((job.output / "scores.json").read_text())["scores"]}
    assert scores["one_sided", "w4a16_g32_affine"] < 0.5 * scores["one_sided", "w4a16_g32"]
    times = json.loads((job.output / "search/times.json").read_text())["layers"]
    assert {(t["layer"], t["scheme"]) for t in times} >= {(layer, scheme) for layer in layers for scheme in ("w4a16_g32_affine", "w4a16_g32")}
    size = next(row for row in report["budget"] if row["name"] == "size")
    assert size["predicted"] == size["measured"] == (job.output / "model.ctkb").stat().st_size
    costs = json.loads((job.output / "search/costs.json").read_text())["groups"]
    by_scheme = {choice["scheme"]: choice["bytes"] for choice in costs[0]["choices"]}   # of one_sided; the file pads to 64
    assert costs[0]["layers"] == ["one_sided"] and by_scheme["w4a16_g32_affine"] >= by_scheme["w4a16_g32"] + 32
    front = json.loads(compress_run("search", "--from", job.output, "--pareto", 8, "--over", "size", "--json").out)["front"]
    assert set(front[0]["assignment"].values()) == {"w4a16_g32"}   # the smallest has none


def test_a_front_is_not_of_what_is_made_small(job, compress_run):
    job.write(small_cnn(), {"x": gaussian(48, 3, 8, 8)})
    job.pipeline(calibrate={"samples": 16}, evaluate={"skip": 40}, threads=1, budget={"size": "60 %"}, stages=[
        {"calibrate": {}}, {"sensitivity": {}}, {"search": {"schemes": ["w8a8_c", "w4a8_c"]}}, {"quantize": {}}, {"export": {"formats": ["bundle"]}}])
    assert job.run().code == 0
    refused = compress_run("search", "--from", job.output, "--pareto", 4, "--minimize", "size")
    assert refused.code == CONFIG and "--pareto" in refused.err and '"size"' in refused.err and "Leave one out" in refused.err
