"""Every sensitivity metric through a whole run, held to what numpy says or to the divergence itself."""

import json

import numpy as np
import pytest
from conftest import small_cnn
from quantized import gaussian, one_layer

METRICS = ("kl", "fisher", "hessian_mse", "sqnr", "cosine", "weights")


def scores(job, metric, *schemes, samples, threads=1):
    """Of the first 16 samples ranges are taken, the next `samples` are scored, and what is left is there to select on."""
    data = {"calibrate": {"path": "data.npz", "samples": 16}, "score": {"path": "data.npz", "skip": 16, "samples": samples}}
    job.pipeline(data=data, threads=threads, budget={"size": "1 MB"}, stages=[
        {"calibrate": {}}, {"sensitivity": {"metric": metric}}, {"search": {"schemes": list(schemes)}}, {"quantize": {}},
        {"export": {"formats": ["bundle"]}}])
    outcome = job.run("--no-resume")
    assert outcome.code == 0, outcome.err
    artifact = json.loads((job.output / "scores.json").read_text())
    assert artifact["metric"] == metric and artifact["formula"]
    return {(s["layer"], s["scheme"]): s for s in artifact["scores"]}


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_scores_every_layer_and_scheme(job, metric):
    job.write(small_cnn(), {"x": gaussian(56, 3, 8, 8)})
    found = scores(job, metric, "w8a8_c", "w4a8_c", "fp16", samples=32)
    assert len(found) == 9
    for layer in ("conv1", "conv2", "head"):
        w4, w8, half = (found[layer, s]["loss"] for s in ("w4a8_c", "w8a8_c", "fp16"))
        assert w4 > w8 > half >= 0, (layer, w4, w8, half)
    errors = [s["standard_error"] for s in found.values() if s["scheme"] == "w4a8_c"]
    assert all(e == 0 if metric == "weights" else e > 0 for e in errors)


def test_local_metrics_are_what_numpy_computes(job):
    """One matrix product, float16: its errors are known without our quantizers."""
    W = gaussian(6, 10, seed=3)
    x = gaussian(48, 10, seed=4, scale=2.0)
    job.write(one_layer("Gemm", {"W": W}, ["N", 10], ["N", 6], transB=1), {"x": x})
    dW = W.astype(np.float16).astype(np.float64) - W
    y, d = x[16:40].astype(np.float64) @ W.T, x[16:40] @ dW.T   # a sample a row
    cosines = [(a * (a + b)).sum() / np.sqrt((a * a).sum() * ((a + b) ** 2).sum()) for a, b in zip(y, d)]
    expected = {
        "weights": (dW ** 2).sum() / (W ** 2).sum(),
        "hessian_mse": (d ** 2).sum(1).mean(),
        "sqnr": ((d ** 2).sum(1) / (y ** 2).sum(1)).mean(),
    }
    for metric, value in expected.items():
        found = scores(job, metric, "fp16", samples=24)["layer", "fp16"]
        assert found["loss"] == pytest.approx(value, rel=0.01), metric   # errors are kept to 8 bits
    # Turns of 1e-8 are lost in the sums' own rounding; that they are not negative and no larger can be asked for.
    assert 0 <= scores(job, "cosine", "fp16", samples=24)["layer", "fp16"]["loss"] <= 2 * (1 - np.mean(cosines)) + 1e-7


def test_fisher_predicts_the_divergence(job):
    """To second order, and over the layers together: one layer's channels may happen to err together."""
    job.write(small_cnn(), {"x": gaussian(224, 3, 8, 8)})
    schemes = ("w8a8_c", "w4a8_c")
    predicted, measured = scores(job, "fisher", *schemes, samples=200), scores(job, "kl", *schemes, samples=200)
    for scheme in schemes:
        sums = [sum(s["loss"] for key, s in found.items() if key[1] == scheme) for found in (predicted, measured)]
        assert 0.4 < sums[0] / sums[1] < 2.5, (scheme, predicted, measured)


def test_fisher_gives_the_same_scores_at_any_number_of_threads(job):
    job.write(small_cnn(), {"x": gaussian(32, 3, 8, 8)})
    one, two = (scores(job, "fisher", "w8a8_c", samples=8, threads=threads) for threads in (1, 2))
    assert one == two
