"""Networks made easier to code: what changed, what it was worth, and what is refused."""

import json
import os
import pathlib

import pytest
from conftest import DATA

STORIES = DATA / "stories260k"
needs_stories = pytest.mark.skipif(not STORIES.is_dir(), reason="CTK_DATA has no stories260k")


def pipeline(tmp_path, stages, judged=True, **data):
    """Without samples left over nothing is judged, and every method stays."""
    lines = {"lines": True, "bos": True, "context": 128}
    config = {
        "model": str(STORIES),
        "output": "out",
        "data": {
            "calibrate": {"path": str(STORIES / "stories_calib_generated.txt"), "samples": 24, **lines},
            "select": {"path": str(STORIES / "stories_calib_generated.txt"), "skip": 40, **lines},
            "evaluate": {"path": str(STORIES / "tinystories_eval.txt"), "metric": "perplexity", **lines},
            **data,
        },
        "stages": stages,
    }
    if not judged:
        del config["data"]["select"], config["data"]["calibrate"]["samples"]
    path = tmp_path / "run.yaml"
    path.write_text(json.dumps(config))
    return path


def run(compress_run, tmp_path, stages, output="out", code=0, judged=True, **data):
    done = compress_run("run", pipeline(tmp_path, stages, judged, **data), "--output", tmp_path / output, "--threads", "2")
    assert done.code == code, done.error
    return json.loads((tmp_path / output / "report.json").read_text()) if code == 0 else done.error


def stage(report, name):
    return next(row for row in report["stages"] if row["name"] == name)


@needs_stories
def test_smoothquant_folds_into_a_decoder_and_keeps_its_function(compress_run, tmp_path):
    stages = [{"transform": {"methods": ["smoothquant"], "strength": 0.5}}, {"calibrate": {"method": "minmax"}},
              {"quantize": {"scheme": "w8a8_c", "ignore": ["lm_head"]}}, {"export": {"formats": ["bundle"]}}, {"validate": {"against": ["float"]}}]
    report = run(compress_run, tmp_path, stages)
    rows = {row["layers"].split(",")[0]: row for row in report["transforms"]}
    assert len(report["transforms"]) == 20  # four groups of layers in each of five blocks
    first = "model.layers.0."
    assert rows[first + "self_attn.q_proj"]["where"] == first + "input_layernorm"
    assert rows[first + "self_attn.q_proj"]["layers"] == ", ".join(first + f"self_attn.{name}_proj" for name in "qkv")
    assert rows[first + "self_attn.o_proj"]["where"] == first + "self_attn.v_proj"
    assert rows[first + "mlp.gate_proj"]["where"] == first + "post_attention_layernorm"
    assert rows[first + "mlp.down_proj"]["where"] == first + "mlp.up_proj"
    # What is kept is what the select split says; kept or not, the float function is the same.
    trials = {row["methods"]: row for row in report["transform_trials"]}
    assert list(trials) == ["none", "smoothquant"]
    better = min(trials.values(), key=lambda row: row["measured"])
    assert better["kept"] and sum(row["kept"] for row in trials.values()) == 1
    row = stage(report, "transform")
    assert row["metric_after"] == pytest.approx(row["metric_before"], rel=1e-5)
    dropped = [warning for warning in report["warnings"] if warning["code"] == "transform_dropped"]
    assert bool(dropped) == (not trials["smoothquant"]["kept"])


@needs_stories
def test_awq_and_rotations_are_kept_only_where_the_coded_network_is_better(compress_run, tmp_path):
    stages = [{"transform": {"methods": ["hadamard", "awq"]}}, {"quantize": {"scheme": "w3a16_g32", "method": "rtn"}},
              {"export": {"formats": ["bundle"]}}, {"validate": {"against": ["float"]}}]
    report = run(compress_run, tmp_path, stages)
    trials = report["transform_trials"]
    assert [row["methods"] for row in trials][:2] == ["none", "hadamard"] and len(trials) == 3
    assert trials[2]["methods"] == ("hadamard + awq" if trials[1]["measured"] < trials[0]["measured"] else "awq")
    kept = next(row for row in trials if row["kept"])
    assert kept["measured"] == min(row["measured"] for row in trials)
    # Both are exact in float, and 3 bits by rounding have enough to lose that AWQ is worth having.
    row = stage(report, "transform")
    assert row["metric_after"] == pytest.approx(row["metric_before"], rel=1e-4)
    assert "awq" in kept["methods"]
    awq = [row for row in report["transforms"] if row["method"] == "awq" and row["where"]]
    assert awq and all(row["error_after"] < row["error_before"] for row in awq)
    stream = next(row for row in report["transforms"] if row["method"] == "hadamard")
    assert "residual stream of 64 features" in stream["layers"] and "lm_head" in stream["reason"]
    plain = run(compress_run, tmp_path, [stages[1], stages[3]], output="plain", judged=False)
    assert report["metric"]["final"] < plain["metric"]["final"]


@pytest.mark.parametrize("methods", [["awq"], ["hadamard", "awq"]])
@needs_stories
def test_what_is_written_is_the_transformed_network(compress_run, tmp_path, methods):
    """The head, tied before, has numbers of its own behind a rotation: a file that still ties it would be another net."""
    stages = [{"transform": {"methods": methods}}, {"quantize": {"scheme": "w4a16_g32", "method": "gptq"}},
              {"export": {"formats": ["gguf", "safetensors"]}}, {"validate": {"against": ["float"]}}]
    report = run(compress_run, tmp_path, stages, judged=False)
    assert report["transform_trials"] == [] and report["metric"]["final"] < 6.2
    folder = tmp_path / "out"
    written = {row["format"]: folder / row["path"] for row in report["files"] if row["path"].endswith((".gguf", ".safetensors"))}
    assert set(written) == {"gguf", "safetensors"}
    for path in written.values():
        text = {"path": str(STORIES / "tinystories_eval.txt"), "context": 128, "lines": True, "bos": True, "metric": "perplexity"}
        model = path if path.suffix == ".gguf" else path.parent
        config = {"model": str(model), "output": "out", "data": {"evaluate": text}, "stages": [{"validate": {"against": ["float"]}}]}
        (tmp_path / "eval.yaml").write_text(json.dumps(config))
        done = compress_run("eval", tmp_path / "eval.yaml", "--json")
        assert done.code == 0, done.error
        assert json.loads(done.out)["value"] == pytest.approx(report["metric"]["final"], rel=1e-4), path.name


@needs_stories
def test_a_correction_of_low_rank_costs_bytes_and_takes_error_away(compress_run, tmp_path):
    def coded(rank, output):
        return run(compress_run, tmp_path, [{"quantize": {"scheme": "w3a16_g32", "method": "rtn", "low_rank": rank}},
                                            {"export": {"formats": ["bundle", "onnx_qdq"]}}, {"validate": {"against": ["float"]}}], output=output, judged=False)
    plain, corrected = coded(0, "plain"), coded(8, "corrected")
    assert corrected["metric"]["final"] < plain["metric"]["final"]
    rows = [row for row in corrected["transforms"] if row["method"] == "low_rank"]
    assert len(rows) == 35 and all(row["error_after"] < row["error_before"] for row in rows)
    bundle = {name: next(file["bytes"] for file in report["files"] if file["format"] == "bundle") for name, report in (("plain", plain), ("corrected", corrected))}
    # Five blocks of q, o (64 + 64), k, v (64 + 32), gate, up, down (64 + 172): 2 bytes times rank 8 a row or column.
    weights = 5 * 8 * 2 * (2 * 128 + 2 * 96 + 3 * 236)
    assert weights < bundle["corrected"] - bundle["plain"] < weights + 40_000


def test_a_correction_of_low_rank_beside_convolutions(compress_run, shared_data, tmp_path):
    """ResNet-20 at 3 bits: two convolutions beside each of its 19, two products beside its last layer."""
    image = {"inputs": {"input": "x"}, "labels": "y", "scale": 255, "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
    cifar = shared_data / "cifar10"
    def coded(rank):
        config = {
            "model": str(cifar / "resnet20_cifar10_jpeg.onnx"),
            "output": f"rank{rank}",
            "data": {"calibrate": {"path": str(cifar / "train_4000.npz"), "samples": 64, **image},
                     "evaluate": {"path": str(cifar / "test_4000.npz"), "samples": 1000, "metric": "top1", **image}},
            "stages": [{"quantize": {"scheme": "w3a16_c", "method": "rtn", "low_rank": rank}},
                       {"export": {"formats": ["bundle", "onnx_qdq"]}}, {"validate": {"against": ["float", "onnxruntime"]}}],
        }
        (tmp_path / "run.yaml").write_text(json.dumps(config))
        done = compress_run("run", tmp_path / "run.yaml", "--output", tmp_path / f"rank{rank}", "--threads", "2")
        assert done.code == 0, done.error
        return json.loads((tmp_path / f"rank{rank}" / "report.json").read_text())
    plain, corrected = coded(0), coded(4)
    rows = [row for row in corrected["transforms"] if row["method"] == "low_rank"]
    assert len(rows) == 20 and all(row["error_after"] < row["error_before"] for row in rows)
    assert [row["where"] for row in rows].count("two Convs of rank 4") == 19
    assert corrected["metric"]["final"] > plain["metric"]["final"]


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ([{"transform": {"methods": ["smoothquant"]}}, {"quantize": {"scheme": "w4a16_g32"}}], ["8-bit activations", "w8a8_c"]),
        ([{"transform": {"methods": ["smothquant"]}}, {"quantize": {"scheme": "w8a8_c"}}], ["smothquant", "smoothquant"]),
        ([{"quantize": {"scheme": "w4a16_g32"}}, {"transform": {"methods": ["smoothquant"]}}], ["\"transform\" before \"quantize\""]),
        ([{"transform": {"methods": ["smoothquant"]}}], ["stage \"quantize\""]),
        ([{"quantize": {"scheme": "w4a16_g32", "low_rank": 8}}, {"export": {"formats": ["gguf"]}}], ["low_rank", "gguf"]),
    ],
)
@needs_stories
def test_what_makes_no_sense_is_refused_before_work(compress_run, tmp_path, stages, words):
    done = compress_run("check", pipeline(tmp_path, stages))
    assert done.code == 2
    for word in words:
        assert word in done.error


def test_a_sentence_encoder_in_eight_bits(compress_run, shared_data, tmp_path):
    """MiniLM, w8a8_c: norms are read by the residual too, so factors go into multiplications of their own."""
    model = os.environ.get("CTK_MINILM", "")
    if not pathlib.Path(model, "config.json").exists():
        pytest.skip("CTK_MINILM names no folder with MiniLM (DATA.md says which wheel brings it)")
    text = {"path": str(shared_data / "text/wikitext2_valid_500k.txt"), "context": 128, "lines": True, "special_tokens": True}
    config = {
        "model": model,
        "output": str(tmp_path / "out"),
        "data": {
            "calibrate": {**text, "samples": 128},
            "select": {**text, "skip": 256, "samples": 24},
            "evaluate": {"path": str(shared_data / "sts/stsb_dev_ccbysa.tsv"), "context": 128, "pairs": True, "metric": "spearman"},
        },
        "stages": [{"transform": {"methods": ["smoothquant"]}}, {"calibrate": {"method": "minmax"}}, {"quantize": {"scheme": "w8a8_c"}}, {"validate": {"against": ["float"]}}],
    }
    (tmp_path / "run.yaml").write_text(json.dumps(config))
    done = compress_run("run", tmp_path / "run.yaml", "--threads", "2")
    assert done.code == 0, done.error
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["metric"]["final"] == pytest.approx(0.9134, abs=0.002)
    places = [row["where"] for row in report["transforms"]]
    assert any(place.endswith("value") for place in places) and "a Mul of its own" in places
    for row in report["transforms"]:
        assert row["error_after"] <= row["error_before"]
