"""Method signround: rounding tuned on the outputs of whole blocks, kept only where held-out samples and the select split agree."""

import json

import pytest
from test_training import columns, trainer, training  # noqa: F401

CONFIG, INPUT = 2, 3
EXPORT, VALIDATE = {"export": {"formats": ["bundle"]}}, {"validate": {}}
FINETUNE = {"finetune": {"epochs": 4, "batch_size": 32, "learning_rate": 0.1}}


def tuned(job, scheme, steps=60, **keys):
    training(job, [FINETUNE, {"calibrate": {}}, {"quantize": {"method": "signround", "scheme": scheme, "steps": steps}}, EXPORT, VALIDATE])
    config = json.loads((job.folder / "pipeline.yaml").read_text())
    config["data"]["calibrate"] = {"path": "data.npz", "samples": 64, **keys}
    config["data"]["train"].update({"skip": 64, "samples": 448})
    (job.folder / "pipeline.yaml").write_text(json.dumps(config))
    return job.run()


@pytest.mark.parametrize("scheme", ["w2a16_c", "w4a8_c"])
def test_what_is_kept_was_better_on_samples_it_had_not_seen(job, trainer, scheme):  # noqa: F811
    outcome = tuned(job, scheme)
    assert outcome.code == 0, outcome.err
    report = job.report()
    rows = {row["name"]: row for row in report["layers"] if row["scheme"] == scheme}
    assert set(rows) == {"conv1", "conv2", "head"}
    networks = {row["method"]: row for row in report["finalists"]}
    assert set(networks) == {"gptq", "signround", "rtn"} and sum(row["chosen"] for row in networks.values()) == 1
    if networks["signround"]["chosen"]:   # receipts are those of the network that was taken
        for row in rows.values():
            assert (row["method"] == "signround") == (row["error_method"] < row["error_rtn"]), row
            assert row["error_method"] <= row["error_rtn"], row
    if scheme == "w2a16_c":   # four levels: there is much to win
        assert networks["signround"]["chosen"] and networks["signround"]["measured"] < networks["gptq"]["measured"]


def test_the_same_command_gives_the_same_bytes_and_a_second_run_is_cached(job, trainer):  # noqa: F811
    assert tuned(job, "w2a16_c", steps=10).code == 0
    first = (job.output / "model.ctkb").read_bytes()
    again = job.run("--force")
    assert again.code == 0 and "quantize done before" in again.err, again.err
    assert (job.output / "model.ctkb").read_bytes() == first
    other = job.run("--output", job.folder / "other")
    assert other.code == 0
    assert (job.folder / "other" / "model.ctkb").read_bytes() == first


def test_steps_beside_another_method_and_too_few_samples_are_refused(job, trainer):  # noqa: F811
    outcome = tuned(job, "w2a16_c", samples=1)
    assert outcome.code == INPUT
    assert "signround: expected at least 2 batches of 1 samples in data.calibrate" in outcome.error
    training(job, [{"quantize": {"method": "gptq", "scheme": "w2a16_c", "steps": 9}}, EXPORT])
    outcome = job.run()
    assert outcome.code == CONFIG
    assert 'stages[0].quantize.steps: expected method signround beside it, found "gptq"' in outcome.error


@pytest.mark.slow
def test_stories_at_three_bits_are_nearer_than_by_gptq(job, trainer, shared_data):  # noqa: F811
    """Lines of other lengths, all of which take part."""
    source = shared_data / "stories260k"
    lines = {"lines": True, "bos": True}
    found = {}
    for method in ("gptq", "signround"):
        config = {"model": str(source), "output": method, "threads": 2,
                  "data": {"calibrate": {"path": str(source / "stories_calib_generated.txt"), "context": 256, **lines},
                           "evaluate": {"path": str(source / "tinystories_eval.txt"), "context": 512, "metric": "perplexity", **lines}},
                  "stages": [{"quantize": {"method": method, "scheme": "w3a16_g32"}}, EXPORT, VALIDATE]}
        (job.folder / "pipeline.yaml").write_text(json.dumps(config))
        outcome = job.run(timeout=1200)
        assert outcome.code == 0, outcome.err
        found[method] = json.loads((job.folder / method / "report.json").read_text())["metric"]["final"]
    print(found)
    assert found["signround"] < found["gptq"] - 0.1, found
