"""Pairs of sentences as data: Spearman's correlation beside numpy's, and what is refused."""

import json
import os
import pathlib
import sys

import numpy as np
import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "python"))
from decoder_reference import decoder_logits, read_safetensors  # noqa: E402

PAIRS = [
    (3.5, "Tom had a red ball.", "Tom had a big red ball."),
    (0.5, "The dog ran away.", "Lily likes to eat cake with her mom."),
    (4.0, "She was very happy.", "She was so happy."),
    (1.0, "It was a sunny day in the park.", "He did not want to go to bed."),
    (2.5, "The cat sat on the mat.", "The cat ran up the tree."),
    (2.5, "One day, they found a box.", "One day, they went home."),
]


def pipeline(tmp_path, model, rows, **keys):
    data = tmp_path / "pairs.tsv"
    data.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    spec = {"path": str(data), "context": 64, "pairs": True, "metric": "spearman", **keys}
    path = tmp_path / "eval.yaml"
    path.write_text(json.dumps({"model": str(model), "output": "out", "data": {"evaluate": spec}, "stages": [{"validate": {"against": ["float"]}}]}))
    return path


def ranks(values):
    order = np.argsort(values, kind="stable")
    found = np.empty(len(values))
    for value in set(values):
        places = [i for i, at in enumerate(order) if values[at] == value]
        for at in np.flatnonzero(np.array(values) == value):
            found[at] = np.mean(places)
    return found


def test_spearman_beside_numpy(compress_run, shared_data, tmp_path):
    """A decoder's logits, meant over tokens, are an embedding as good as any for the arithmetic."""
    tokenizers = pytest.importorskip("tokenizers")
    folder = shared_data / "stories260k"
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    config = json.loads((folder / "config.json").read_text())
    weights = read_safetensors(folder / "model.safetensors")

    def embedding(text):
        return decoder_logits(config, weights, np.array(tokenizer.encode(text).ids)).mean(axis=0)

    def cosine(a, b):
        return a @ b / np.sqrt((a @ a) * (b @ b))

    cosines = [cosine(embedding(a), embedding(b)) for _, a, b in PAIRS]
    expected = np.corrcoef(ranks(cosines), ranks([score for score, _, _ in PAIRS]))[0, 1]
    done = compress_run("eval", pipeline(tmp_path, folder, PAIRS), "--json")
    assert done.code == 0, done.error
    found = json.loads(done.out)
    assert found["value"] == pytest.approx(expected, abs=1e-6)
    assert found["samples"] == len(PAIRS)


@pytest.mark.parametrize("metric", ["spearman", "cosine"])
@pytest.mark.parametrize("method", ["gptq", "rtn"])
def test_pairs_that_others_are_drawn_from(compress_run, shared_data, tmp_path, metric, method):
    """Samples drawn from pairs come one by one: floors, finalists and methods are judged by what they do have."""
    texts = ["The sun was warm", "A bird sang to him", "They ate an apple", "His car was blue", "She lost her shoe", "It began to rain"]
    drawn = tmp_path / "drawn.tsv"
    drawn.write_text("".join(f"1.5\t{a} and {i}.\t{b} but {i}.\n" for i in range(4) for a, b in zip(texts, texts[1:])))
    path = pipeline(tmp_path, shared_data / "stories260k", PAIRS, metric=metric)
    config = json.loads(path.read_text())
    config["data"]["calibrate"] = {"path": str(drawn), "context": 32, "pairs": True, "samples": 20}
    config["budget"] = {"metric_drop": "50 pt"}
    config["stages"].insert(0, {"quantize": {"method": method, "scheme": "w4a16_g32"}})
    path.write_text(json.dumps(config))
    done = compress_run("run", path, "--output", tmp_path / "out")
    assert done.code == 0, done.error
    assert json.loads((tmp_path / "out" / "report.json").read_text())["metric"]["name"] == metric


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("high", "a b c", "d e f"), ["line 7", "SCORE", "high"]),
        ((1.0, "a b c"), ["line 7", "TAB"]),
        (("nan", "a b c", "d e f"), ["line 7", "nan"]),
        ((1e9, "a b c", "d e f"), ["line 7", "1000"]),
    ],
)
def test_lines_that_are_no_pairs(compress_run, shared_data, tmp_path, row, words):
    done = compress_run("eval", pipeline(tmp_path, shared_data / "stories260k", [*PAIRS, row]))
    assert done.code == 3
    for word in words:
        assert word in done.error


def test_scores_that_are_all_alike(compress_run, shared_data, tmp_path):
    flat = [(1.0, a, b) for _, a, b in PAIRS]
    done = compress_run("eval", pipeline(tmp_path, shared_data / "stories260k", flat))
    assert done.code == 3 and "differ" in done.error


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"pairs": False}, ["spearman", "pairs: true"]),
        ({"lines": True}, ["lines", "both"]),
        ({"metric": "top1"}, ["top1", "spearman"]),
        ({"pairs": False, "metric": "kl", "special_tokens": True}, ["special_tokens", "windows"]),
    ],
)
def test_keys_that_do_not_fit(compress_run, shared_data, tmp_path, keys, words):
    done = compress_run("check", pipeline(tmp_path, shared_data / "stories260k", PAIRS, **keys))
    assert done.code == 2
    for word in words:
        assert word in done.error


def test_a_sentence_encoder(compress_run, shared_data, tmp_path):
    """MiniLM: 0.9134 by DATA.md, with [CLS] and [SEP] around each sentence and at most 128 tokens."""
    model = os.environ.get("CTK_MINILM", "")
    if not pathlib.Path(model, "config.json").exists():
        pytest.skip("CTK_MINILM names no folder with MiniLM (DATA.md says which wheel brings it)")
    data = {"path": str(shared_data / "sts/stsb_dev_ccbysa.tsv"), "context": 128, "pairs": True, "metric": "spearman"}
    path = tmp_path / "eval.yaml"
    path.write_text(json.dumps({"model": model, "output": "out", "data": {"evaluate": data}, "stages": [{"validate": {"against": ["float"]}}]}))
    done = compress_run("eval", path, "--json")
    assert done.code == 0, done.error
    assert json.loads(done.out)["value"] == pytest.approx(0.9134, abs=0.001)
