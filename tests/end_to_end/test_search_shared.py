"""Search over weights that several nodes read."""

import numpy as np
from conftest import model_of
from onnx import TensorProto
from quantized import F32, gaussian, node


def search(job, model, arrays, schemes, size=None):
    job.write(model, arrays)
    job.pipeline(calibrate={"samples": 48}, evaluate={"skip": 80}, budget={"size": size} if size else None, threads=1, stages=[
        {"calibrate": {"method": "minmax"}}, {"sensitivity": {"metric": "kl"}}, {"search": {"schemes": schemes, "solver": "ilp"}},
        {"quantize": {"method": "rtn"}}, {"export": {"formats": ["bundle"]}}])
    return job.run()


def test_row_numbers_are_still_there_when_a_network_is_timed(job):
    """Times are taken over many runs; values that took over the memory of the row numbers were read as such."""
    w = {"E": gaussian(40, 24, scale=0.2), "F": gaussian(24, 24, seed=1, scale=0.2), "shape": np.array([-1, 24])}
    nodes = [node("Gather", ["E", "ids"], ["g"], "embed"), node("MatMul", ["g", "F"], ["h"], "middle"), node("Reshape", ["h", "shape"], ["f"]),
             node("Gemm", ["f", "E"], ["y"], "project", transB=1)]
    model = model_of(nodes, {"ids": (["N", 5], TensorProto.INT64)}, {"y": (["k", 40], F32)}, w)
    outcome = search(job, model, {"ids": np.random.default_rng(0).integers(0, 40, (128, 5))}, ["w8a8_c", "fp32"])
    assert outcome.code == 0, outcome.err
    assert {row["name"] for row in job.report()["layers"]} == {"middle", "project"}


def test_a_budget_that_needs_all_readers_of_a_weight_coded_is_met(job):
    """One 24x24 matrix, 2304 bytes of float, read along both dimensions: 4 bits for all is the only way below half."""
    nodes = [node("MatMul", ["x", "F"], ["a"], "p"), node("Relu", ["a"], ["r"]), node("MatMul", ["r", "F"], ["b"], "q"),
             node("Gemm", ["b", "F"], ["y"], "s", transB=1)]
    model = model_of(nodes, {"x": (["N", 24], F32)}, {"y": (["N", 24], F32)}, {"F": gaussian(24, 24, scale=0.2)})
    outcome = search(job, model, {"x": gaussian(128, 24, seed=1)}, ["w4a8_c", "w8a8_c", "fp32"], size="1.5 kB")
    assert outcome.code == 0, outcome.err
    report = job.report()
    assert {row["scheme"] for row in report["layers"]} == {"w4a8_c"}
    assert all("share its weight: p, q, s" in row["reason"] for row in report["layers"])
    (size,) = [row for row in report["budget"] if row["name"] == "size"]
    assert size["met"] and size["predicted"] == size["measured"]
