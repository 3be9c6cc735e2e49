"""What of a quantized model still runs in float is in the report (B078)."""

import numpy as np
from conftest import model_of
from quantized import F32, gaussian, node


def test_b078_unfused_pairs_and_float_layers_are_listed(job):
    """Three convolutions as Q/DQ; the second has a zero point for each channel: its weights are codes, its products floats."""
    weights, nodes, last = {"s": np.float32(0.05), "z": np.uint8(128)}, [], "x"
    for i in range(3):
        weights |= {f"W{i}": np.random.default_rng(i).integers(-127, 128, (4, 4, 3, 3), dtype=np.int8), f"ws{i}": np.full(4, 0.002, np.float32),
                    f"wz{i}": np.array([0, 1, 2, 3] if i == 1 else [0] * 4, np.int8)}
        nodes += [node("QuantizeLinear", [last, "s", "z"], [f"q{i}"], f"q{i}"), node("DequantizeLinear", [f"q{i}", "s", "z"], [f"d{i}"], f"d{i}"),
                  node("DequantizeLinear", [f"W{i}", f"ws{i}", f"wz{i}"], [f"w{i}"], f"weight{i}", axis=0),
                  node("Conv", [f"d{i}", f"w{i}"], [f"c{i}"], f"conv{i}", pads=[1] * 4), node("Relu", [f"c{i}"], [f"r{i}"])]
        last = f"r{i}"
    shape = (["N", 4, 8, 8], F32)
    job.write(model_of(nodes, {"x": shape}, {"r2": shape}, weights), {"x": gaussian(8, 4, 8, 8)})
    job.pipeline(evaluate={"metric": "kl"}, threads=1, stages=[{"validate": {"against": ["float"]}}])
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    report = job.report()
    assert {row["name"]: row["scheme"] for row in report["layers"]} == {"conv0": "w8a8_c", "conv1": "w8a16_c_affine", "conv2": "w8a8_c"}
    skipped = {row["name"]: row["reason"] for row in report["skipped"]}
    assert skipped == {}
