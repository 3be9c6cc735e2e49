"""compress search: another budget from the files of a run, and files that people edited."""

import json
import shutil
import time

import pytest

from conftest import small_cnn
from quantized import gaussian

CONFIG, INPUT, INFEASIBLE = 2, 3, 4

STAGES = [{"calibrate": {}}, {"sensitivity": {"metric": "kl"}}, {"search": {"schemes": ["w8a8_c", "w4a8_c", "fp16", "fp32"]}},
          {"quantize": {"method": "rtn"}}, {"export": {"formats": ["bundle"]}}, {"validate": {}}]


@pytest.fixture
def folder(job):
    job.write(small_cnn(), {"x": gaussian(48, 3, 8, 8)})
    job.pipeline(calibrate={"samples": 16}, evaluate={"skip": 40}, stages=STAGES, budget={"size": "60 %", "latency": "10 s"}, threads=1)
    assert job.run().code == 0
    return job.output


def search(compress_run, folder, *words):
    return compress_run("search", "--from", folder, *words)


def test_the_budget_of_the_run_gives_its_answer_again(folder, compress_run):
    again = json.loads(search(compress_run, folder, "--json").out)
    assert again["assignment"] == json.loads((folder / "search" / "assignment.json").read_text())
    report = json.loads((folder / "report.json").read_text())
    assert again["assignment"] == {layer["name"]: layer["scheme"] for layer in report["layers"]}
    assert again["certificate"]["proved_optimal"] and again["loss"] == report["certificate"]["loss"]


def test_a_smaller_budget_costs_more_and_is_kept_within_two_seconds(folder, compress_run):
    start = time.process_time()
    wide, tight = (json.loads(search(compress_run, folder, "--budget", f"size={share} %", "--json").out) for share in (60, 40))
    assert time.process_time() - start < 2
    size = {row["name"]: row for row in tight["budget"]}["size"]
    assert size["predicted"] <= size["limit"] and wide["loss"] <= tight["loss"] and size["price"] >= 0
    assert "nats" in search(compress_run, folder, "--budget", "size=40 %").out


def test_an_infeasible_budget_says_what_is_reachable(folder, compress_run):
    refused = search(compress_run, folder, "--budget", "size=10 B")
    assert refused.code == INFEASIBLE and "smallest reachable" in refused.err and "held by" in refused.err


@pytest.mark.parametrize("budget, told", [("size=60", "unit"), ("size=0 kB", "above 0"), ("size=-3 kB", "above 0"), ("speed=3 ms", "--budget"),
                                          ("size", "--budget")])
def test_a_budget_that_is_none_is_refused(folder, compress_run, budget, told):
    refused = search(compress_run, folder, "--budget", budget)
    assert refused.code == CONFIG and told in refused.err


def test_the_same_budget_twice_is_refused(folder, compress_run):
    refused = search(compress_run, folder, "--budget", "size=60 %", "--budget", "size=40 %")
    assert refused.code == CONFIG and "each budget once" in refused.err


def edit(folder, name, change):
    file = folder / name
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def test_a_layer_without_scores_stays_float(folder, compress_run):
    layer = json.loads((folder / "scores.json").read_text())["scores"][0]["layer"]
    edit(folder, "scores.json", lambda file: file.update(scores=[row for row in file["scores"] if row["layer"] != layer]))
    again = json.loads(search(compress_run, folder, "--budget", "size=90 %", "--json").out)
    assert again["assignment"][layer] == "fp32"


def test_scores_that_are_no_numbers_are_refused(folder, compress_run):
    edit(folder, "scores.json", lambda file: file["scores"][0].update(loss=None))
    refused = search(compress_run, folder)
    layer = json.loads((folder / "scores.json").read_text())["scores"][0]["layer"]
    assert refused.code == INPUT and layer in refused.err and "finite number" in refused.err


def test_a_score_of_an_unknown_layer_is_refused(folder, compress_run):
    edit(folder, "scores.json", lambda file: file["scores"][0].update(layer="nowhere"))
    refused = search(compress_run, folder)
    assert refused.code == INPUT and "nowhere" in refused.err


def test_an_edited_assignment_is_priced(folder, compress_run, tmp_path):
    edited = tmp_path / "assignment.json"
    schemes = json.loads((folder / "search" / "assignment.json").read_text())
    first = next(iter(schemes))
    del schemes[first]
    edited.write_text(json.dumps(schemes))
    priced = json.loads(search(compress_run, folder, "--assignment", edited, "--budget", "size=100 %", "--json").out)
    assert priced["assignment"] == {**schemes, first: "fp32"}
    edited.write_text(json.dumps({**schemes, "nowhere": "w8a8_c"}))
    refused = search(compress_run, folder, "--assignment", edited)
    assert refused.code == INPUT and "nowhere" in refused.err


def test_an_edited_assignment_is_run(folder, compress_run, job, tmp_path):
    file = tmp_path / "assignment.json"
    schemes = json.loads((folder / "search" / "assignment.json").read_text())
    edited = dict.fromkeys(schemes, "w4a8_c")
    first = next(iter(edited))
    del edited[first]
    file.write_text(json.dumps(edited))

    def run(**stages):
        wanted = [{"calibrate": {}}, {"quantize": {"method": "rtn", "assignment": str(file), **stages}}, {"export": {"formats": ["bundle"]}}, {"validate": {}}]
        job.pipeline(calibrate={"samples": 16}, evaluate={"skip": 40}, stages=wanted, threads=1)
        return job.run()

    done = run()
    assert done.code == 0, done.err
    layers = {layer["name"]: layer for layer in json.loads((job.output / "report.json").read_text())["layers"]}
    assert {name: layer["scheme"] for name, layer in layers.items()} == {**edited, first: "fp32"}
    assert all(layers[name]["weight_bits"] < 32 for name in edited)
    assert run(scheme="w8a8_c").code == CONFIG
    for text, words in [({"nowhere": "w8a8_c"}, "nowhere"), ({first: "w9"}, first), ({first: 4}, first), ([], "array"), ({}, "every layer would stay float")]:
        file.write_text(json.dumps(text))
        refused = run()
        assert refused.code == INPUT and words in refused.err and str(file) in refused.err


def test_changes_of_precision_have_a_price(folder, compress_run):
    borders = json.loads((folder / "search" / "times.json").read_text())["borders"]
    schemes = json.loads((folder / "search" / "assignment.json").read_text())
    assert borders and all(border["first"] in schemes and border["second"] in schemes for border in borders)
    assert all(0 <= border[key] < 1e5 for border in borders for key in ("to_floats_us", "to_codes_us"))

    def dear(times):
        times["borders"] = [{"first": a, "second": b, "to_floats_us": 1e6, "to_codes_us": 1e6} for a, b in zip(schemes, list(schemes)[1:])]

    edit(folder, "search/times.json", dear)
    # With less than one change allowed, neighbours are all on codes or all on floats.
    again = json.loads(search(compress_run, folder, "--budget", "size=60 %", "latency=900 ms", "--json").out)
    assert len({"a8" in scheme for scheme in again["assignment"].values()}) == 1


def test_times_of_another_processor_are_named(folder, compress_run):
    edit(folder, "search/times.json", lambda file: file.update(cpu="Abacus 3000"))
    assert search(compress_run, folder, "--budget", "size=60 %").code == 0  # times do not matter there
    refused = search(compress_run, folder, "--budget", "latency=10 s")
    assert refused.code == INPUT and "Abacus 3000" in refused.err and "--allow-other-machine" in refused.err
    allowed = json.loads(search(compress_run, folder, "--budget", "latency=10 s", "--allow-other-machine", "--json").out)
    assert "Abacus 3000" in allowed["warnings"][0]


def test_a_folder_without_a_search_is_refused(compress_run, tmp_path):
    refused = search(compress_run, tmp_path)
    assert refused.code == INPUT and "search" in refused.err


def test_the_front_lists_answers_that_none_beats(folder, compress_run):
    start = time.process_time()
    front = json.loads(search(compress_run, folder, "--pareto", 8, "--over", "size", "--json").out)
    assert time.process_time() - start < 2 and front["over"] == ["size"]
    points = front["front"]
    assert 3 <= len(points) <= 9   # the run's own answer joins
    sizes, losses = [p["cost"]["size"] for p in points], [p["loss"] for p in points]
    assert sizes == sorted(sizes) and losses == sorted(losses, reverse=True) and len(set(losses)) == len(losses)
    # A point is what solving for its size gives, and its price is the best that more bytes buy.
    for i, point in enumerate(points[:-1]):
        again = json.loads(search(compress_run, folder, "--budget", f"size={point['cost']['size']:.0f} B", "--json").out)
        assert again["loss"] == pytest.approx(point["loss"]) and again["assignment"].keys() == point["assignment"].keys()
        slopes = [(point["loss"] - after["loss"]) / (after["cost"]["size"] - point["cost"]["size"]) for after in points[i + 1:]]
        assert point["price"]["size"] == pytest.approx(max(slopes))
    run = json.loads((folder / "search" / "assignment.json").read_text())
    assert all(point["chosen"] == (point["assignment"] == run) for point in points)
    text = search(compress_run, folder, "--pareto", 8).out
    assert "loss (nats)" in text and "a kB saves" in text and "a ms saves" in text


def test_the_report_of_a_run_has_its_front(folder):
    report = json.loads((folder / "report.json").read_text())
    part = report["search"]
    assert part["metric"] == "kl" and part["objective"] == "loss" and part["front_seconds"] < 10
    assert len(part["front"]) >= 3 and all(row["cost"]["latency"] > 0 for row in part["front"])
    for row in part["front"]:   # no other one is at least as good in all three
        others = [other for other in part["front"] if other is not row]
        assert not any(other["loss"] <= row["loss"] and other["cost"]["size"] <= row["cost"]["size"]
                       and other["cost"]["latency"] <= row["cost"]["latency"] for other in others)
    assert "Front" in (folder / "report.md").read_text()


@pytest.mark.parametrize("words, told", [(("--pareto", 1), "--pareto"), (("--pareto", 8, "--over", "speed"), "--over"), (("--over", "size"), "--pareto"),
                                         (("--pareto", 8, "--over", "size", "--over", "size"), "different budgets"),
                                         (("--minimize", "size"), "loss=0.02"), (("--minimize", "speed", "--budget", "loss=1"), "--minimize"),
                                         (("--budget", "loss=1"), "--minimize"), (("--minimize", "size", "--budget", "loss=-1"), "above 0"),
                                         (("--budget", "bits=4.5 kB"), "number")])
def test_wrong_words_for_fronts_and_aims_are_refused(folder, compress_run, words, told):
    refused = search(compress_run, folder, *words)
    assert refused.code == CONFIG and told in refused.err, refused.err


def test_a_budget_is_made_as_small_as_a_loss_allows(folder, compress_run):
    front = json.loads(search(compress_run, folder, "--pareto", 12, "--over", "size", "--json").out)["front"]
    middle = front[len(front) // 2]
    found = json.loads(search(compress_run, folder, "--minimize", "size", "--budget", f"loss={middle['loss'] * (1 + 1e-9)}", "--json").out)
    row = next(row for row in found["budget"] if row["name"] == "size")
    assert row["objective"] and row["predicted"] == middle["cost"]["size"] and found["loss"] <= middle["loss"] * (1 + 1e-9)
    refused = search(compress_run, folder, "--minimize", "size", "--budget", "loss=0.001", "--budget", "bits=4")
    assert refused.code == INFEASIBLE and "budget.bits" in refused.err and "it binds" in refused.err


def test_an_infeasible_budget_says_the_nearest_way_out_and_its_price(folder, compress_run):
    refused = search(compress_run, folder, "--budget", "size=600 B", "--budget", "bits=9")
    assert refused.code == INFEASIBLE
    for told in ("budget.size: 600 B asked; smallest", "alone", "held by", "it binds", "nearest: budget.size alone at", "allows a loss of"):
        assert told in refused.err, refused.err


def test_scores_with_nan_are_refused_by_name(folder, compress_run):
    edit(folder, "scores.json", lambda file: file["scores"][1].update(loss=float("nan")))
    row = json.loads((folder / "scores.json").read_text())["scores"][1]
    refused = search(compress_run, folder)
    assert refused.code == INPUT and "NaN" in refused.err and row["layer"] in refused.err and "Score it again" in refused.err


@pytest.mark.parametrize("solver", ["greedy", "ilp"])
def test_a_run_tells_when_its_answer_is_not_proved(job, solver):
    job.write(small_cnn(), {"x": gaussian(48, 3, 8, 8)})
    stages = [{**stage, "search": {**stage["search"], "solver": solver}} if "search" in stage else stage for stage in STAGES[:-1]]
    job.pipeline(calibrate={"samples": 16}, stages=stages, budget={"size": "45 %"}, threads=1)
    assert job.run().code == 0
    report = job.report()
    told = [warning["text"] for warning in report["warnings"] if warning["code"] == "not_proved"]
    assert report["certificate"]["proved_optimal"] == (solver == "ilp")
    assert len(told) == (solver == "greedy") and all(solver in text and "nats" in text for text in told)
    assert any(layer["scheme"] != "fp32" for layer in report["layers"])   # never silently the float network


def test_a_solver_without_proof_tells_its_gap(folder, compress_run):
    greedy, exact = (json.loads(search(compress_run, folder, "--budget", "size=45 %", "--solver", solver, "--json").out) for solver in ("greedy", "ilp"))
    assert exact["certificate"]["proved_optimal"] and exact["certificate"]["gap"] == 0
    assert greedy["certificate"]["bound"] <= exact["loss"] <= greedy["loss"]
    assert greedy["loss"] - greedy["certificate"]["bound"] == pytest.approx(greedy["certificate"]["gap"])
