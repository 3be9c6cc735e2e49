"""Losses put right by networks that were coded and measured, and solved again."""

import json

import pytest
from small_stories import needs_stories, report_of, run_stories


@needs_stories
def test_losses_are_put_right_by_coded_networks(job, compress_run):
    schemes = ["w8a16_g32", "w5a16_g32", "w4a16_g32", "w3a16_g32"]
    outcome, folder = run_stories(job, schemes=schemes, budget={"size": "165 kB"}, search={"corrections": 3})
    assert outcome.code == 0, outcome.err
    report = report_of(folder)
    rounds, finalists = report["certificate"]["rounds"], report["finalists"]
    coded = [row for row in finalists if row["method"] == "gptq"]
    assert len(rounds) == len(coded) and 1 <= len(coded) <= 4
    for before, network in zip(rounds, coded):
        assert (before["predicted"], before["measured"]) == (network["predicted"], network["measured"])
    assert [row["result"] for row in rounds[:-1]] == ["solved again"] * (len(rounds) - 1)
    assert rounds[-1]["result"] in ("agrees", "the same schemes again", "as many networks as allowed")
    assert all(row["changed"] > 0 for row in rounds[1:])
    # What rounding's losses promise, 4 bits by gptq keep: the sum of the scores is far too high, and is so no more.
    off = [abs(row["predicted"] / row["measured"] - 1) for row in rounds]
    assert off[0] > 0.1 > 0 and len(off) > 1 and off[-1] < 0.5 * off[0]
    # The last scale makes the last network's sum what was measured: gains by layer from the file, scores as scored.
    right = json.loads((folder / "search/corrections.json").read_text())
    assert right["scale"] == rounds[-1]["scale"]
    gains = {(row["layer"], row["scheme"]): row["gain"] for row in right["layers"]}
    assert all(0 < gain <= 1 for gain in gains.values())
    scores = {(s["layer"], s["scheme"]): s["loss"] for s in json.loads((folder / "scores.json").read_text())["scores"]}
    last = coded[-1]
    if last["chosen"]:
        taken = {layer["name"]: layer["scheme"] for layer in report["layers"] if layer["scheme"] != "fp32"}
        total = right["scale"] * sum(scores[entry] * gains.get(entry, 1) for entry in taken.items())
        assert total == pytest.approx(last["measured"], rel=1e-6)
    # Another budget is solved with what was put right.
    again = json.loads(compress_run("search", "--from", folder, "--json").out)
    assert again["loss"] < rounds[0]["predicted"]
    resumed = job.run()
    assert resumed.code == 0 and report_of(folder)["certificate"]["rounds"] == rounds and report_of(folder)["finalists"] == finalists
