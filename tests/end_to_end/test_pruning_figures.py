"""What pruning is worth on real networks: repaired without labels, against the plain cut; time against multiply-adds."""

import json

import pytest

pytestmark = pytest.mark.slow

CIFAR = {"scale": 255, "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "inputs": {"input": "x"}}


@pytest.fixture(scope="module")
def prune(shared_data, compress_run, tmp_path_factory):
    """prune(model, data, stage, ...) -> report."""
    folder = tmp_path_factory.mktemp("prune")

    def run(name, model, data, stage, validate=True):
        stages = [{"prune": stage}, {"export": {"formats": ["bundle"]}}]
        for source in data.values():
            source["path"] = str(shared_data / source["path"])
        config = {"model": str(shared_data / model), "output": str(folder / name), "data": data,
                  "stages": stages + ([{"validate": {}}] if validate else [])}
        (folder / f"{name}.yaml").write_text(json.dumps(config))
        outcome = compress_run("run", folder / f"{name}.yaml", timeout=1500)
        assert outcome.code == 0, outcome.err
        return json.loads((folder / name / "report.json").read_text())

    return run


def resnet20(prune, name, **stage):
    data = {"calibrate": {"path": "cifar10/train_4000.npz", "samples": 512, **CIFAR},
            "evaluate": {"path": "cifar10/test_4000.npz", "labels": "y", "metric": "top1", **CIFAR}}
    inner = {"targets": ["re:layer.*conv1"], "ratios": "uniform", "round_to": 1}
    return prune(name, "cifar10/resnet20_cifar10_jpeg.onnx", data, inner | stage)


# Repaired by a prototype (the second convolution of each block refitted): 0.858, 0.837, 0.770; se 0.005.
@pytest.mark.parametrize("ratio, least", [(0.15, 0.853), (0.31, 0.832), (0.5, 0.765)])
def test_resnet20_repaired_keeps_its_accuracy(prune, ratio, least):
    report = resnet20(prune, f"inner{ratio}", pruning_ratio=ratio, method="hessian")
    assert report["metric"]["baseline"] == pytest.approx(0.87325, abs=1e-6)
    assert report["metric"]["final"] >= least
    assert all(row["error_after"] <= row["error_before"] for row in report["repaired"])


def test_resnet20_plain_cut_is_far_worse(prune):
    plain = resnet20(prune, "plain", pruning_ratio=0.31, repair=False)
    mended = resnet20(prune, "mended", pruning_ratio=0.31)
    assert mended["metric"]["final"] > plain["metric"]["final"] + 0.2


def test_resnet20_time_falls_with_the_multiply_adds(prune, product_build):
    report = resnet20(prune, "time", macs=0.7, targets=[], ratios="auto", round_to="auto")
    saved = 1 - report["stages"][0]["macs"] / report["model"]["macs"]
    assert saved >= 0.3
    latency = report["latency"]
    assert 1 - latency["final"]["median"] / latency["baseline"]["median"] >= 0.8 * saved


def test_kws_depthwise(prune):
    data = lambda: {"calibrate": {"path": "kws/kws01_1000.npz", "samples": 200, "inputs": {"input": "x"}, "zero_point": 83, "scale": 1.7102698},
                    "evaluate": {"path": "kws/kws01_1000.npz", "skip": 200, "labels": "y", "metric": "top1", "inputs": {"input": "x"},
                                 "zero_point": 83, "scale": 1.7102698}}
    stage = {"macs": 0.7, "method": "hessian", "ratios": "uniform"}
    plain = prune("kws_plain", "kws/kws_dscnn.onnx", data(), stage | {"repair": False})
    mended = prune("kws", "kws/kws_dscnn.onnx", data(), stage)
    assert mended["metric"]["baseline"] == pytest.approx(0.9125, abs=1e-6)
    assert mended["metric"]["final"] > plain["metric"]["final"]
    assert mended["metric"]["drop"] < 0.06


def test_mobilenet_v2_agrees_better_when_repaired(prune):
    photos = {"path": "imagenet100/images", "labels": "from_name", "scale": 255, "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
    data = lambda: {"calibrate": {**photos, "samples": 60}, "evaluate": {**photos, "skip": 60, "metric": "kl"}}
    stage = {"macs": 0.85, "method": "hessian", "ratios": "uniform", "targets": ["re:.*conv/conv.0/conv.0.0/Conv"]}
    plain = prune("mobile_plain", "imagenet100/mobilenet_v2_imagenet.onnx", data(), stage | {"repair": False})
    mended = prune("mobile", "imagenet100/mobilenet_v2_imagenet.onnx", data(), stage)
    assert mended["metric"]["final"] < 0.7 * plain["metric"]["final"]


@pytest.mark.parametrize("targets", ["re:.*gate_proj", "re:.*q_proj"])
def test_stories260k_perplexity(prune, targets):
    data = lambda: {"calibrate": {"path": "stories260k/stories_calib_generated.txt", "context": 512, "lines": True, "bos": True},
                    "evaluate": {"path": "stories260k/tinystories_eval.txt", "context": 512, "lines": True, "bos": True,
                                 "metric": "perplexity"}}
    stage = {"pruning_ratio": 0.25, "method": "hessian", "ratios": "uniform", "round_to": 1, "targets": [targets]}
    name = f"stories_{targets[-6]}"
    plain = prune(f"{name}_plain", "stories260k", data(), stage | {"repair": False})
    mended = prune(name, "stories260k", data(), stage)
    assert mended["metric"]["baseline"] == pytest.approx(5.2191, abs=1e-3)
    assert 5.2 < mended["metric"]["final"] < plain["metric"]["final"]
