"""compress explain: why a finished run ended with its answer."""

import json

import pytest
from conftest import Job, small_cnn
from quantized import gaussian

INPUT = 3

STAGES = [{"calibrate": {}}, {"sensitivity": {"metric": "kl"}}, {"search": {"schemes": ["w8a8_c", "w4a8_c", "fp16", "fp32"]}},
          {"quantize": {"method": "rtn"}}, {"export": {"formats": ["bundle"]}}, {"validate": {}}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, compress_run):
    job = Job(tmp_path_factory.mktemp("explain"), compress_run)
    job.write(small_cnn(), {"x": gaussian(48, 3, 8, 8)})
    job.pipeline(calibrate={"samples": 16}, evaluate={"skip": 40}, stages=STAGES, budget={"size": "60 %", "latency": "10 s"}, threads=1)
    assert job.run().code == 0
    return job.output


def test_explain_tells_the_certificate_and_each_layer(folder, compress_run):
    report = json.loads((folder / "report.json").read_text())
    told = compress_run("explain", folder).out
    assert "answer   loss" in told and "proved" in told
    for row in report["budget"]:
        assert f"budget   {row['name']}: " in told
    for row in report["layers"]:
        assert f"layer    {row['name']}: {row['scheme']}" in told and row["reason"] in told
    size = next(row for row in report["budget"] if row["name"] == "size")
    assert size["error"] == pytest.approx(size["predicted"] / size["measured"] - 1) and size["role"] == "limit"


def test_explain_tells_what_a_layer_could_have_become(folder, compress_run):
    report = json.loads((folder / "report.json").read_text())
    layer = report["layers"][1]
    found = json.loads(compress_run("explain", folder, layer["name"], "--json").out)
    assert [row["name"] for row in found["layers"]] == [layer["name"]]
    scores = {row["scheme"]: row for row in json.loads((folder / "scores.json").read_text())["scores"] if row["layer"] == layer["name"]}
    assert {choice["scheme"] for choice in found["choices"]} == {*scores, "fp32"}
    for choice in found["choices"]:
        if choice["scheme"] in scores:
            assert choice["loss"] == scores[choice["scheme"]]["loss"] and choice["loss_error"] == scores[choice["scheme"]]["standard_error"]
        assert choice["chosen"] == (choice["scheme"] == layer["scheme"]) and choice["latency_us"] > 0
    refused = compress_run("explain", folder, "conv9")
    assert refused.code == INPUT and "conv9" in refused.err and "conv1" in refused.err
    refused = compress_run("explain", folder.parent)
    assert refused.code == INPUT and "report.json" in refused.err
