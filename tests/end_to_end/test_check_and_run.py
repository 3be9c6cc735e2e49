"""What a run would refuse, `check` refuses too, in the same words and before any work."""

import json

import numpy as np
import onnx
import pytest
from conftest import F32, doubled_prefixes, model_of, small_cnn
from quantized import gaussian, node, one_layer

CONFIG, INPUT, INFEASIBLE = 2, 3, 4
SEARCH = [{"calibrate": {}}, {"sensitivity": {}}, {"search": {"schemes": ["w8a8_c", "fp16"]}}, {"quantize": {}},
          {"export": {"formats": ["bundle"]}}]


def quantize(**keys):
    return [{"calibrate": {}}, {"quantize": {"scheme": "w8a8_c", **keys}}, {"export": {"formats": ["bundle"]}}]


def refused_by_both(job, compress_run, code, *words):
    messages = []
    for verb in ("check", "run"):
        outcome = compress_run(verb, job.folder / "pipeline.yaml", *words)
        assert outcome.code == code, (verb, outcome.code, outcome.out, outcome.err)
        assert "..." not in outcome.err   # no stage began
        messages.append(outcome.error)
    assert messages[0] == messages[1]
    return messages[0]


def test_no_sample_left_to_score_on(job, compress_run):
    job.write(small_cnn(), {"x": gaussian(16, 3, 8, 8)})
    job.pipeline(calibrate={}, stages=SEARCH, threads=1)
    message = refused_by_both(job, compress_run, INPUT)
    assert "data.score" in message and "data.npz" in message and "sensitivity" in message
    job.pipeline(calibrate={"samples": 8}, stages=SEARCH, threads=1)
    assert job.run().code == 0


IDENTITY = model_of([node("Identity", ["x"], ["y"], "same")], {"x": (["N", 4], F32)}, {"y": (["N", 4], F32)}, {})
RELU = model_of([node("Relu", ["x"], ["y"], "relu")], {"x": (["N", 4], F32)}, {"y": (["N", 4], F32)}, {})


@pytest.mark.parametrize("model", [IDENTITY, RELU], ids=["identity", "relu"])
@pytest.mark.parametrize("stages", [quantize(), SEARCH], ids=["quantize", "search"])
def test_a_model_without_layers(job, compress_run, model, stages):
    job.write(model, {"x": gaussian(16, 4)})
    job.pipeline(calibrate={"samples": 8}, stages=stages, threads=1)
    message = refused_by_both(job, compress_run, CONFIG)
    assert "net.onnx" in message and "layer" in message and "Conv" in message


@pytest.mark.parametrize("model", [IDENTITY, RELU], ids=["identity", "relu"])
def test_a_model_without_layers_can_still_be_exported(job, model):
    job.write(model, {"x": gaussian(16, 4)})
    job.pipeline(calibrate={"samples": 8}, evaluate={"skip": 8}, threads=1,
                 stages=[{"calibrate": {}}, {"export": {"formats": ["onnx", "bundle"]}}, {"validate": {"against": ["onnxruntime"]}}])
    outcome = job.run()
    assert outcome.code == 0, outcome.err


def test_ignoring_every_layer(job, compress_run):
    job.write(small_cnn(), {"x": gaussian(16, 3, 8, 8)})
    job.pipeline(calibrate={}, stages=quantize(ignore=["re:.*"]), threads=1)
    message = refused_by_both(job, compress_run, CONFIG)
    assert "conv1" in message and "ignore" in message


def ignored_head(job, budget=None):
    """Two layers of 64 x 64; one stays float, so the file holds at least 16384 + 4096 bytes."""
    nodes = [node("MatMul", ["x", "A"], ["h"], "first"), node("MatMul", ["h", "B"], ["y"], "second")]
    model = model_of(nodes, {"x": (["N", 64], F32)}, {"y": (["N", 64], F32)}, {"A": gaussian(64, 64), "B": gaussian(64, 64, seed=1)})
    job.write(model, {"x": gaussian(16, 64)})
    job.pipeline(calibrate={}, stages=quantize(ignore=["second"]), threads=1, budget=budget)


def test_ignored_layers_count_as_float_in_the_reachable_size(job, compress_run):
    ignored_head(job)
    size = json.loads(compress_run("check", job.folder / "pipeline.yaml", "--json").out)["size"]
    assert job.run().code == 0
    written = (job.output / "model.ctkb").stat().st_size
    assert size["smallest"] == size["largest"] == written > 16384 + 4096


def test_a_budget_below_the_ignored_layer_is_refused(job, compress_run):
    ignored_head(job, {"size": "16 kB"})   # both at 8 bits would take about 9 kB
    message = refused_by_both(job, compress_run, INFEASIBLE)
    assert "budget.size" in message and "second" in message


@pytest.mark.parametrize("budget", [{"latency": "10 ms"}, {"latency": "50 %"}, {"peak_memory": "1 MB"}, {"metric_drop": "1 pt"}])
def test_a_budget_that_no_stage_measures_is_refused(job, compress_run, budget):
    job.write(small_cnn(), {"x": gaussian(16, 3, 8, 8)})
    job.pipeline(calibrate={"samples": 8}, evaluate={"skip": 8}, stages=quantize(), budget=budget, threads=1)
    message = refused_by_both(job, compress_run, CONFIG)
    assert "budget." + next(iter(budget)) in message and "validate" in message
    job.pipeline(calibrate={"samples": 8}, evaluate={"skip": 8}, budget=dict(budget), threads=1,
                 stages=[*quantize(), {"validate": {}}])
    outcome = job.run()
    met = next(b for b in job.report()["budget"] if b["name"] in budget)["met"]
    assert met is not None and outcome.code == (0 if met else INFEASIBLE), outcome.err


def test_a_budget_that_the_result_misses_ends_with_its_exit_code(job):
    job.write(small_cnn(), {"x": gaussian(16, 3, 8, 8)})
    job.pipeline(calibrate={"samples": 8}, evaluate={"skip": 8}, stages=[*quantize(), {"validate": {}}], budget={"latency": "0.001 us"}, threads=1)
    outcome = job.run()
    assert outcome.code == INFEASIBLE
    for word in ("budget: latency", "expected at most", "measured", "raise the budget"):
        assert word in outcome.error
    assert not next(b for b in job.report()["budget"] if b["name"] == "latency")["met"]   # the report stays


def test_a_split_that_nothing_compares_on_is_refused(job, compress_run):
    job.write(small_cnn(), {"x": gaussian(32, 3, 8, 8)})
    job.pipeline(calibrate={"samples": 8}, stages=SEARCH, threads=1)
    refused = compress_run("run", job.folder / "pipeline.yaml", "--set", "data.select={path: data.npz}")
    assert refused.code == CONFIG and "expected a stage that compares on it" in refused.error


def test_a_budget_that_is_only_predicted_is_told(job, compress_run):
    job.write(small_cnn(), {"x": gaussian(32, 3, 8, 8)})
    job.pipeline(calibrate={"samples": 8}, stages=SEARCH, budget={"latency": "10 s"}, threads=1)
    checked = json.loads(compress_run("check", job.folder / "pipeline.yaml", "--json").out)
    assert job.run().code == 0
    for warnings in (checked["warnings"], job.report()["warnings"]):
        told = [w["text"] for w in warnings if w["code"] == "budget_not_measured"]
        assert len(told) == 1 and "budget.latency" in told[0] and "validate" in told[0]


def test_sensitivity_without_a_search_scores_the_scheme_of_quantize(job):
    job.write(small_cnn(), {"x": gaussian(32, 3, 8, 8)})
    job.pipeline(calibrate={"samples": 8}, threads=1,
                 stages=[{"calibrate": {}}, {"sensitivity": {}}, {"quantize": {"scheme": "w8a8_c"}}, {"export": {"formats": ["bundle"]}}])
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    scores = json.loads((job.output / "scores.json").read_text())["scores"]
    assert [(s["layer"], s["scheme"]) for s in scores] == [("conv1", "w8a8_c"), ("conv2", "w8a8_c"), ("head", "w8a8_c")]


def test_a_leak_into_the_test_split_is_found_by_check(job, compress_run):
    job.write(small_cnn(), {"x": gaussian(16, 3, 8, 8)})
    job.pipeline(calibrate={"samples": 9}, evaluate={"skip": 8}, threads=1)
    assert "calibrate" in refused_by_both(job, compress_run, INPUT)


def test_a_fixed_batch_takes_whole_batches_only(job, compress_run):
    model = small_cnn()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 7
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.shape.dim.add(dim_value=7)
    model.graph.output[0].type.tensor_type.shape.dim.add(dim_value=4)
    job.write(model, {"x": gaussian(96, 3, 8, 8)})
    job.pipeline(calibrate={"samples": 16}, evaluate={"skip": 20, "samples": 21}, threads=1)
    message = refused_by_both(job, compress_run, INPUT)
    assert "data.calibrate" in message and "multiple of 7" in message and "samples: 14" in message
    job.pipeline(calibrate={"samples": 14}, evaluate={"skip": 20, "samples": 21}, threads=1, stages=[*SEARCH, {"validate": {}}])
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    assert job.report()["splits"]["score"]["count"] % 7 == 0


# --- messages ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("message, found", [
    ("compress: error: calibrate: calibrate: value", 1), ("compress: error: --set bogus: bogus: expected", 1),
    ("compress: error: /a/x.npz: x.npz row 0: input", 1), ("compress: error: edge.yaml:3: budget.size: expected a size", 0),
    ("compress: error: calibrate: value \"x\", sample 2: expected", 0)])
def test_a_doubled_prefix_is_seen(message, found):
    assert len(doubled_prefixes(message)) == found


WRONG_VALUES = ["model=", "model=[a", "bogus=1", "bogus:", "seed=-1", "seed=many", "threads=4096", "budget=1", "budget.size=", "budget.size=60",
                "budget.latency=[1]", "stages.quantize.bits=9", "stages.quantize.scheme=w8a9", "stages.quantize.method=best",
                "stages.search.solver=ilp", "data.calibrate.samples=0", "data.calibrate.scale=0", "data.calibrate.on_bad_sample=ignore",
                "stages.quantize.ignore=conv1", "stages.export.formats=[]", "stages=[]", "target=tpu", "data.calibrate.mean={}"]


@pytest.mark.parametrize("assignment", WRONG_VALUES)
def test_a_wrong_value_is_told_once_with_advice(job, compress_run, assignment):
    job.write(small_cnn(), {"x": gaussian(16, 3, 8, 8)})
    job.pipeline(calibrate={}, threads=1)
    outcome = compress_run("check", job.folder / "pipeline.yaml", "--set", assignment)
    assert outcome.code == CONFIG, outcome.err
    line = outcome.error.splitlines()[0]
    key = assignment.split("=")[0]
    assert key in line and "expected" in line and "found" in line
    expected, _, found = line.partition("found ")
    # Advice stands behind what was found, as a sentence or as the nearest name.
    assert any(mark in found for mark in (". ", "; ")), line


QUOTES = {
    'model: "net.onnx\noutput: out\nstages: []\n': 1,
    "model: net.onnx\noutput: 'out\nstages: []\n": 2,
    "model: net.onnx\noutput: out\nstages:\n  - quantize: {scheme: w8a8_c, ignore: [\"re:.*\\\"]}\n": 5,   # by the parser: the list does not end
    "model: net.onnx\noutput: out\n'stages: []\n": 3,
}


@pytest.mark.parametrize("text", QUOTES)
def test_a_quote_that_is_not_closed_is_a_syntax_error_with_its_line(tmp_path, compress_run, text):
    (tmp_path / "p.yaml").write_text(text)
    outcome = compress_run("check", tmp_path / "p.yaml")
    assert outcome.code == CONFIG
    assert len(outcome.error.splitlines()) == 1 and f"p.yaml:{QUOTES[text]}:" in outcome.error
    assert "syntax" in outcome.error


def test_quotes_that_are_closed_pass(job, compress_run):
    job.write(small_cnn(), {"x": gaussian(16, 3, 8, 8)})
    folder = job.folder / "it's \"my\" folder"
    folder.mkdir()
    (job.folder / "p.yaml").write_text(
        "model: 'net.onnx'   # it's \"odd\n\"output\": \"it's \\\"my\\\" folder/out\"\ndata: {calibrate: {path: \"data.npz\"}}\n"
        "stages:\n  - calibrate: {method: minmax}\n  - quantize: {scheme: 'w8a8_c', ignore: ['re:.*''', 'head']}\n  - export: {formats: [bundle]}\n")
    outcome = compress_run("check", job.folder / "p.yaml")
    assert outcome.code == CONFIG and "re:.*'" in outcome.error   # the one thing wrong: a pattern that matches nothing
    text = (job.folder / "p.yaml").read_text().replace("'re:.*''', ", "")
    (job.folder / "p.yaml").write_text(text)
    outcome = compress_run("run", job.folder / "p.yaml")
    assert outcome.code == 0, outcome.err
    assert (folder / "out/model.ctkb").exists()
