"""`compress partition`: the figures it prints hold together, on a small network and on ResNet-20."""

import json

import pytest
from conftest import ROOT

CARD = ROOT / "configs/targets/npu-4tops.yaml"


def partition(compress_run, *arguments, code=0):
    outcome = compress_run("partition", *map(str, arguments), "--json", "--seconds", "0.05")
    assert outcome.code == code, outcome.out + outcome.err
    return json.loads(outcome.out)


@pytest.fixture
def resnet(shared_data):
    path = shared_data / "cifar10/resnet20_cifar10.onnx"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    return path


def check(found):
    """The total is the sum of its parts, each worked out from what is listed."""
    compute = sum(node["times"][node["unit"]]["us"] for node in found["nodes"])
    cost = found["cost"]
    assert compute == pytest.approx(cost["compute_us"])
    assert sum(s["launch_us"] for s in found["segments"]) == pytest.approx(cost["launch_us"])
    assert sum(t["us"] for t in found["transfers"]) == pytest.approx(cost["transfer_us"])
    assert compute + cost["launch_us"] + cost["transfer_us"] + cost["convert_us"] == pytest.approx(cost["total_us"])
    assert sum(s["nodes"] for s in found["segments"]) == len(found["nodes"])
    for other in found["solvers"].values():
        assert other["total_us"] >= cost["total_us"] - 1e-9
    on_cpu = sum(node["times"]["cpu"]["us"] for node in found["nodes"])
    assert cost["total_us"] <= on_cpu + 1e-9  # all on the processor moves nothing


def test_small_network(compress_run):
    found = partition(compress_run, ROOT / "configs/quickstart/digits_cnn.onnx", "--target", CARD)
    check(found)
    assert found["proved_optimal"]
    assert {node["times"]["cpu"]["source"] for node in found["nodes"]} == {"measured"}
    assert "from the card" in found["units"][1]["times"]


def test_resnet20_goes_to_the_npu(compress_run, resnet):
    found = partition(compress_run, resnet, "--target", CARD)
    check(found)
    convolutions = [node for node in found["nodes"] if node["op"] == "Conv"]
    assert len(convolutions) >= 19
    # Some 40 million multiply-adds take 20 us of 4 TOPS and about a millisecond of one core.
    assert {node["unit"] for node in convolutions} == {"npu"}
    # 3 x 32 x 32 floats: 5 us start + 12288 B at 8 GB/s + 2 us flush.
    assert found["transfers"][0]["us"] == pytest.approx(5 + 12288 / 8000 + 2)
    # The largest layer by hand: 16 -> 16 channels, 3 x 3, 32 x 32: 2 x 2359296 operations at 4 per ps.
    slowest = max(2 * 16 * 16 * 9 * 1024 / 4e6, (16 * 16 * 9 + 2 * 16 * 1024) / 16e3)
    assert any(node["times"]["npu"]["us"] == pytest.approx(slowest, rel=0.02) for node in convolutions)


def test_an_operator_the_npu_lacks_leaves_the_rest_there(compress_run, resnet, tmp_path):
    card = tmp_path / "card.yaml"
    card.write_text(CARD.read_text().replace("GlobalAveragePool, ", ""))
    found = partition(compress_run, resnet, "--target", card)
    check(found)
    assert {node["unit"] for node in found["nodes"] if node["op"] == "Conv"} == {"npu"}
    (fallback,) = found["fallbacks"]
    assert fallback["op"] in ("GlobalAveragePool", "AveragePool", "ReduceMean")
    assert "does not list" in fallback["reason"] and fallback["cost_us"] > 0


def test_wrong_use_is_told_once(compress_run, tmp_path):
    error = partition(compress_run, ROOT / "configs/quickstart/digits_cnn.onnx", "--target", ROOT / "configs/targets/cpu.yaml", code=2)
    assert "expected gpu or npu, found cpu" in json.dumps(error)
    assert partition(compress_run, ROOT / "configs/quickstart/digits_cnn.onnx", "--target", tmp_path / "none.yaml", code=3)
