"""`compress kernels MODEL`: which kernel row each step of a model runs on, and why no other; `bench` of a model."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

CONFIG, INPUT = 2, 3


def network(hidden=8):
    """MatMul, Erf, MatMul over a free number of tokens."""
    random = np.random.default_rng(3)
    weights = {"a": random.normal(size=(hidden, hidden)), "b": random.normal(size=(hidden, hidden))}
    nodes = [helper.make_node("MatMul", ["x", "a"], ["h"], "first"), helper.make_node("Erf", ["h"], ["e"], "erf"),
             helper.make_node("MatMul", ["e", "b"], ["y"], "last")]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, "tokens", hidden])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, "tokens", hidden])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(network(), path)
    return path


def test_each_step_is_told_with_its_row_and_the_rows_not_taken(compress_run, model):
    outcome = compress_run("kernels", model, "--size", "5", "--json", env={"CTK_ISA": "scalar"})
    assert outcome.code == 0, outcome.err
    steps = {step["layer"]: step for step in json.loads(outcome.out)["steps"]}
    assert list(steps) == ["first", "erf", "last"]
    assert steps["first"]["row"] == steps["last"]["row"] == "gemm_fp32_1x1_scalar" and steps["first"]["kind"] == "gemm_fp32"
    names = {row["name"]: row["why"] for row in steps["first"]["others"]}
    assert names and all(why in ("CTK_ISA forces another",) or "no " in why or "another family" in why for why in names.values())
    assert all(row["name"] != "gemm_fp32_1x1_scalar" for row in steps["first"]["others"])


def test_a_step_without_a_row_says_why(compress_run, model):
    outcome = compress_run("kernels", model, "--size", "5", "--why")
    assert outcome.code == 0, outcome.err
    lines = {line.split()[0]: line for line in outcome.out.splitlines()[1:] if not line.startswith(" ")}
    assert set(lines) == {"first", "erf", "last"}
    assert sum(line.strip().startswith("not ") for line in outcome.out.splitlines()) >= 2


@pytest.mark.parametrize("verb", ["kernels", "bench"])
def test_open_sizes_are_asked_for(compress_run, model, verb):
    outcome = compress_run(verb, model)
    assert outcome.code == INPUT
    for word in ("net.onnx", 'input "x"', '"tokens" free', "--size"):
        assert word in outcome.err
    assert compress_run(verb, model, "--size", "0").code == CONFIG


def test_bench_tells_steps_on_request_and_takes_several_thread_counts(compress_run, model):
    words = ("bench", model, "--size", "4", "--seconds", "0.001")
    rows = [json.loads(line) for line in compress_run(*words, "--threads", "1,2").out.splitlines()]
    assert [(row["row"], row["threads"]) for row in rows] == [("model", 1), ("model", 2)]
    assert all(row["min_us"] <= row["med_us"] <= row["p95_us"] for row in rows)
    assert rows[0]["ops"] == 2 * 2 * 4 * 8 * 8
    rows = [json.loads(line) for line in compress_run(*words, "--layers").out.splitlines()]
    assert [row["row"] for row in rows] == ["model", "step.first", "step.erf", "step.last"]
    assert sum(row["ops"] for row in rows[1:]) == rows[0]["ops"]
