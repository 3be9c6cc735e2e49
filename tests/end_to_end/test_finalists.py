"""Finalists of a search and methods that find codes, held against each other on the select split."""

import json

import pytest

from conftest import DATA

STORIES = DATA / "stories260k"
pytestmark = pytest.mark.skipif(not STORIES.is_dir(), reason="CTK_DATA has no stories260k")

PIPELINE = """
model: {stories}
output: out
data:
  calibrate: {{path: {stories}/stories_calib_generated.txt, lines: true, bos: true, context: 128, samples: 16}}
  score:     {{path: {stories}/stories_calib_generated.txt, lines: true, bos: true, context: 128, skip: 16, samples: 16}}
  select:    {{path: {stories}/stories_calib_generated.txt, lines: true, bos: true, context: 128, skip: 32, samples: 16}}
  evaluate:  {{path: {stories}/tinystories_eval.txt, lines: true, bos: true, context: 128, metric: kl}}
budget: {{size: 180 kB}}
stages:
  - sensitivity: {{metric: fisher}}
  - search:      {{schemes: [w8a16_g32, w6a16_g32, w5a16_g32, w4a16_g32, w3a16_g32], groups: auto, finalists: 3}}
  - quantize:    {{method: gptq}}
  - export:      {{formats: [bundle]}}
  - validate:    {{against: [float]}}
"""


@pytest.fixture(scope="module")
def run(compress_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finalists")
    (folder / "pipeline.yaml").write_text(PIPELINE.format(stories=STORIES))

    def run(name, *keys):
        words = [word for key in keys for word in ("--set", key)]
        done = compress_run("run", folder / "pipeline.yaml", "--output", folder / name, "--threads", "2", *words)
        assert done.code == 0, done.err
        return folder / name, json.loads((folder / name / "report.json").read_text())

    return run


@pytest.fixture(scope="module")
def three(run):
    return run("three")


def schemes(report):
    return {layer["name"]: layer["scheme"] for layer in report["layers"]}


def test_the_least_kl_on_select_is_taken(three):
    rows = three[1]["finalists"]
    assert [row["method"] for row in rows] == ["gptq", "gptq", "gptq", "rtn"]
    (taken,) = [row for row in rows if row["chosen"]]
    assert taken["measured"] == min(row["measured"] for row in rows) > 0
    assert all(row["standard_error"] > 0 for row in rows)
    assert rows[3]["predicted"] == min(rows[:3], key=lambda row: row["measured"])["predicted"]  # rounding of the best


def test_the_first_finalist_is_best_by_the_scores_and_the_others_differ(three):
    predicted = [row["predicted"] for row in three[1]["finalists"][:3]]
    assert predicted[0] == min(predicted) and len(set(predicted)) == 3


def test_the_certificate_says_what_the_sum_of_scores_is_worth(three):
    certificate = three[1]["certificate"]
    (taken,) = [row for row in three[1]["finalists"] if row["chosen"]]
    assert certificate["proved_optimal"] and certificate["gap"] == 0 and certificate["bound"] == certificate["loss"]
    assert certificate["loss_scale"] == pytest.approx(taken["measured"] / taken["predicted"], rel=1e-9)


def test_the_prediction_of_the_size_is_of_the_network_taken(three):
    folder, report = three
    size = next(row for row in report["budget"] if row["name"] == "size")
    assert size["met"] and size["predicted"] == size["measured"] == (folder / "model.ctkb").stat().st_size


def test_the_same_command_ends_with_the_same_network(three, run):
    again = run("again")
    assert (again[0] / "model.ctkb").read_bytes() == (three[0] / "model.ctkb").read_bytes()
    assert again[1]["finalists"] == three[1]["finalists"]
    resumed = run("three")[1]  # from its artifacts
    assert next(stage for stage in resumed["stages"] if stage["name"] == "quantize")["cached"]
    assert resumed["finalists"] == three[1]["finalists"] and schemes(resumed) == schemes(three[1])


def test_products_of_one_input_share_a_scheme_unless_freed(three, run):
    def tied(report):
        by_name = schemes(report)
        blocks = [[by_name[f"model.layers.{i}.self_attn.{part}_proj"] for part in "qkv"] for i in range(5)]
        blocks += [[by_name[f"model.layers.{i}.mlp.{part}_proj"] for part in ("gate", "up")] for i in range(5)]
        return [len(set(block)) == 1 for block in blocks]

    assert all(tied(three[1]))
    reason = next(layer["reason"] for layer in three[1]["layers"] if layer["name"] == "model.layers.0.self_attn.q_proj")
    assert "read the same input" in reason and "k_proj" in reason and "v_proj" in reason
    free = run("free", "stages.search.groups=none")[1]
    assert not all(tied(free))
    assert free["certificate"]["loss"] <= three[1]["certificate"]["loss"]  # fewer ties, no more loss


def test_one_network_and_no_select_split_is_taken_as_it_is(run):
    report = run("one", "stages.search.finalists=1", "data.select.samples=4", "stages.quantize.method=gptq")[1]
    assert [row["method"] for row in report["finalists"]] == ["gptq", "rtn"]
