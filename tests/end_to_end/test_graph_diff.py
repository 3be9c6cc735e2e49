"""`compress graph diff` on models and on their printed text."""

import numpy as np
import onnx
from conftest import small_cnn
from onnx import numpy_helper


def test_either_side_may_be_a_printed_text(tmp_path, compress_run):
    before, after, text = tmp_path / "before.onnx", tmp_path / "after.onnx", tmp_path / "before.txt"
    model = small_cnn()
    onnx.save(model, before)
    w1 = next(i for i in model.graph.initializer if i.name == "w1")
    w1.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(w1) * np.float32(2), "w1"))
    onnx.save(model, after)
    text.write_text(compress_run("graph", "show", "--text", before).out)

    assert compress_run("graph", "diff", text, before).out == "the graphs are equal\n"
    assert compress_run("graph", "diff", text, text).out == "the graphs are equal\n"
    want = compress_run("graph", "diff", before, after).out
    assert [line[:10] for line in want.splitlines()] == ["- const %w", "+ const %w"]
    assert compress_run("graph", "diff", text, after).out == want


def test_another_text_is_refused_by_its_path_with_what_was_expected(tmp_path, compress_run):
    onnx.save(small_cnn(), tmp_path / "net.onnx")
    (tmp_path / "summary.txt").write_text(compress_run("graph", "show", tmp_path / "net.onnx").out)
    outcome = compress_run("graph", "diff", tmp_path / "net.onnx", tmp_path / "summary.txt")
    assert outcome.code == 3
    for word in ("summary.txt", "line 1", "graph show --text"):
        assert word in outcome.error
