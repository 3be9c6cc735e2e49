"""Budgets of decode and prefill, timed by the plans that read a text."""

import json

from conftest import small_cnn
from quantized import gaussian
from small_stories import needs_stories, report_of, run_stories

INPUT, INFEASIBLE = 3, 4


@needs_stories
def test_decode_and_prefill_are_budgets_of_their_own(job, compress_run):
    schemes = ["w8a16_g32", "w4a16_g32"]
    outcome, folder = run_stories(job, schemes=schemes, budget={"latency": {"decode": "1 s", "prefill": "10 s"}, "size": "60 %"}, quantize="rtn")
    assert outcome.code == 0, outcome.err
    report = report_of(folder)
    rows = {row["name"]: row for row in report["budget"]}
    for phase, limit in (("decode", 1e6), ("prefill", 1e7)):
        row = rows[f"latency.{phase}"]
        assert row["limit"] == limit and row["met"] and row["role"] == "limit" and row["predicted"] > 0 and row["measured"] > 0
        figures = report["latency"]["phases"][phase]
        assert figures["final"]["median"] == row["measured"] and figures["baseline"]["median"] > 0
    assert rows["latency.prefill"]["measured"] > rows["latency.decode"]["measured"]   # many tokens, and one
    times = json.loads((folder / "search/times.json").read_text())
    layers = {layer["name"] for layer in report["layers"]}
    for phase in ("decode", "prefill"):
        timed = {(t["layer"], t["scheme"]): t["us"] for t in times[phase]["layers"]}
        assert {layer for layer, _ in timed} == layers and {scheme for _, scheme in timed} == {"fp32", *schemes}
        assert times[phase]["fixed_us"] > 0   # attention, norms, the embedding
    # Solved again: what each phase is predicted to take is a cost of the front, and a limit.
    front = json.loads(compress_run("search", "--from", folder, "--pareto", 6, "--over", "latency.decode", "--json").out)
    assert all(point["cost"]["latency_decode"] > 0 and point["cost"]["latency_prefill"] > 0 and point["cost"]["latency"] is None
               for point in front["front"])
    refused = compress_run("search", "--from", folder, "--budget", "latency.prefill=1 us")
    assert refused.code == INFEASIBLE and "latency.prefill" in refused.err and "smallest reachable" in refused.err


@needs_stories
def test_a_phase_out_of_reach_ends_before_scoring(job):
    outcome, folder = run_stories(job, schemes=["w8a16_g32", "w4a16_g32"], budget={"latency": {"decode": "0.1 us"}}, quantize="rtn")
    assert outcome.code == INFEASIBLE and "latency.decode" in outcome.error and not (folder / "scores.json").exists()


def test_phases_are_of_language_models(job):
    job.write(small_cnn(), {"x": gaussian(48, 3, 8, 8)})
    job.pipeline(calibrate={"samples": 16}, evaluate={"skip": 40}, threads=1, budget={"latency": {"decode": "1 s"}}, stages=[
        {"calibrate": {}}, {"sensitivity": {}}, {"search": {"schemes": ["w8a8_c"]}}, {"quantize": {}}, {"export": {"formats": ["bundle"]}}, {"validate": {}}])
    refused = job.run()
    assert refused.code == INPUT and "decode and prefill are phases of a language model" in refused.error
