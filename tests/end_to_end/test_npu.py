"""A simulated NPU: whole networks of codes on it, their cycles and bytes, and a placement over it and the processor."""

import json

import pytest
import yaml
from conftest import PIPELINES, ROOT

CARD = ROOT / "configs/targets/npu-4tops.yaml"


def bundle_of(name, compress_run, folder, samples):
    """The int8 bundle of a pipeline that must run as it stands, on fewer samples."""
    if not PIPELINES.exists():
        pytest.skip(f"the pipelines are absent: {PIPELINES}")
    pipeline = yaml.safe_load((PIPELINES / name).read_text())
    pipeline["data"]["calibrate"]["samples"] = samples
    del pipeline["data"]["evaluate"]
    for split in pipeline["data"].values():
        split["path"] = str((PIPELINES / split["path"]).resolve())
    pipeline["model"] = str((PIPELINES / pipeline["model"]).resolve())
    pipeline["stages"] = [{"calibrate": {"method": "minmax"}}, {"quantize": {"method": "rtn", "scheme": "w8a8_c"}}, {"export": {"formats": ["bundle"]}}]
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(pipeline))
    outcome = compress_run("run", file, "--output", folder / "out", "--threads", 1)
    assert outcome.code == 0, outcome.err
    return folder / "out/model.ctkb"


@pytest.fixture(scope="module")
def resnet(shared_data, compress_run, tmp_path_factory):
    return bundle_of("resnet20-int8.yaml", compress_run, tmp_path_factory.mktemp("resnet20"), 32)


@pytest.fixture(scope="module")
def mobilenet(shared_data, compress_run, tmp_path_factory):
    return bundle_of("mobilenetv2-int8.yaml", compress_run, tmp_path_factory.mktemp("mobilenetv2"), 2)


def bench(compress_run, *words, code=0):
    outcome = compress_run("bench", *words, "--seconds", "0.01", "--threads", 1)
    assert outcome.code == code, outcome.out + outcome.err
    return [json.loads(line) for line in outcome.out.splitlines()] if code == 0 else outcome.err


def named(rows, start):
    return {row["row"].removeprefix(start): row for row in rows if row["row"].startswith(start)}


def check_rows(rows, macs):
    """`bench --target` has compared every output bit with the processor's before it prints; what it prints must add up."""
    layers, total = named(rows, "npu."), named(rows, "total.")
    assert sum(row["ops"] for row in layers.values()) == 2 * macs == total["npu"]["ops"]
    for key in ("cycles", "mac_cycles", "dma_cycles", "bytes_constants", "bytes_in", "bytes_out", "bytes"):
        assert sum(row[key] for row in layers.values()) == total["npu"][key], key
    for name, row in layers.items():
        busy = row["mac_cycles"] + row["requantize_cycles"]
        assert max(busy, row["dma_cycles"]) <= row["cycles"] <= busy + row["dma_cycles"], name
        assert row["bytes"] == row["bytes_constants"] + row["bytes_in"] + row["bytes_out"]
        assert row["dma_cycles"] >= row["bytes"] / 16, name     # 16 GB/s at 1 GHz
        assert row["mac_cycles"] >= row["ops"] / 2 / (64 * 32), name
        assert row["med_us"] == pytest.approx(row["cycles"] / 1000)
    fallbacks = [row for row in rows if row["row"].startswith("cpu.")]
    assert all(row["reason"].startswith("the NPU has no commands for ") for row in fallbacks)
    assert sum(row["med_us"] for row in fallbacks) == pytest.approx(total["cpu"]["med_us"])
    transfers = [row for row in rows if row["row"].startswith("transfer.")]
    assert sum(row["bytes"] for row in transfers) == total["transfer"]["bytes"]
    for row in transfers:
        assert row["med_us"] == pytest.approx(5 + 2 + row["bytes"] / 8000)   # start, flush, 8 GB/s
    return layers


def test_resnet20_on_the_npu_has_the_processors_bits_and_adds_up(compress_run, resnet):
    rows = bench(compress_run, resnet, "--target", CARD)
    # Multiply-adds by hand: the stem, three stages of six convolutions (the first of two of them halves), the head.
    stages = 6 * 32 * 32 * 144 * 16, 16 * 16 * 32 * (144 + 5 * 288), 8 * 8 * 64 * (288 + 5 * 576)
    layers = check_rows(rows, 32 * 32 * 27 * 16 + sum(stages) + 64 * 10)
    assert len(layers) == 20
    # The head by hand, in one piece: in 640 weights, ten columns of 8 bytes and 64 codes, each move 100 cycles and 16
    # bytes a cycle; one pass of 32 + 1; ten values, 32 a cycle; out ten floats.
    assert layers["linear"]["cycles"] == (100 + 40) + (100 + 5) + (100 + 4) + 33 + 1 + (100 + 3)
    # The sum of a block is added as its layer is requantized, from memory: 16 rows of 32 x 32 more than without.
    with_sum, without = layers["layer1.0.conv2"], layers["layer1.0.conv1"]
    assert with_sum["bytes_in"] - without["bytes_in"] == 16 * 32 * 32
    assert {row["variant"] for row in layers.values()} == {"conv_w8a8_npu_sim", "gemm_w8a8_npu_sim"}


def test_mobilenet_on_the_npu_has_the_processors_bits_and_adds_up(compress_run, mobilenet):
    layers = check_rows(bench(compress_run, mobilenet, "--target", CARD), 300774272)   # as published
    assert {row["variant"] for row in layers.values()} == {"conv_w8a8_npu_sim", "gemm_w8a8_npu_sim", "depthwise_w8a8_npu_sim"}


def test_smaller_scratchpads_move_more_and_one_too_small_is_told(compress_run, resnet, tmp_path):
    card = tmp_path / "card.yaml"
    card.write_text(CARD.read_text().replace("512 KiB", "8 KiB"))
    total = named(bench(compress_run, resnet, "--target", card), "total.")["npu"]
    large = named(bench(compress_run, resnet, "--target", CARD), "total.")["npu"]
    assert total["bytes"] > large["bytes"] and total["cycles"] > large["cycles"]
    assert total["ops"] == large["ops"] and total["bytes_out"] == large["bytes_out"]
    card.write_text(CARD.read_text().replace("512 KiB", "300 B"))
    error = bench(compress_run, resnet, "--target", card, code=2)
    assert 'conv1 (Conv): "NPU of 4 TOPS": scratchpad: expected at least 320 B for the smallest tile' in error
    assert "3x3 taps), found 300 B. Give the card a larger scratchpad" in error


def test_its_rows_are_named_and_never_taken_by_the_processor(compress_run):
    rows = [row for row in json.loads(compress_run("kernels", "--why", "--json").out)["kernels"] if row["isa"] == "npu_sim"]
    assert [row["kind"] for row in rows] == ["gemm_w8a8", "conv_w8a8", "depthwise_w8a8"]
    assert all(row["name"] == row["kind"] + "_npu_sim" and not row["chosen"] and "--target" in row["why"] for row in rows)


def test_wrong_use_is_told(compress_run, resnet):
    error = bench(compress_run, resnet, "--target", ROOT / "configs/targets/gpu-mobile.yaml", code=2)
    assert "array_rows: expected the figures of an npu's inside, found none. Add array_rows" in error
    error = bench(compress_run, "--suite", "int8", "--target", CARD, code=2)
    assert "expected a model and no --against, found --suite" in error


def partition(compress_run, *words, **options):
    outcome = compress_run("partition", *words, "--target", CARD, "--json", "--seconds", "0.02", "--threads", 1, **options)
    assert outcome.code == 0, outcome.out + outcome.err
    return json.loads(outcome.out)


@pytest.mark.parametrize("network, layers", [("resnet", 19), ("mobilenet", 52)])
def test_a_placement_runs_on_two_units_as_on_one(compress_run, request, network, layers):
    """Outputs are compared bit for bit inside: a difference ends the program with an error.

    The processor takes its scalar rows: on quick ones, small layers would rightly stay."""
    bundle = request.getfixturevalue(network)
    found = partition(compress_run, bundle, "--run", env={"CTK_ISA": "scalar"})
    counted = {name.removeprefix("npu."): row for name, row in named(bench(compress_run, bundle, "--target", CARD), "").items() if name.startswith("npu.")}
    assert 1 <= len(found["runs"]) <= 5
    for run in found["runs"]:
        assert run["same_outputs"] and run["on_npu"] >= layers   # all convolutions; the head goes where it is cheaper
        parts = run["counted"]
        assert parts["total_us"] == pytest.approx(parts["compute_us"] + parts["transfer_us"] + parts["convert_us"] + parts["launch_us"])
        # Both are the card's; the prediction moves what crosses, each value once.
        assert parts["launch_us"] == pytest.approx(run["predicted"]["launch_us"])
        assert parts["transfer_us"] == pytest.approx(run["predicted"]["transfer_us"])
    for node in found["nodes"]:
        if node["name"] in counted:
            assert node["times"]["npu"]["source"] == "simulated"
            assert node["times"]["npu"]["us"] == pytest.approx(counted[node["name"]]["cycles"] / 1000)
        elif node["unit"] == "npu":
            assert node["times"]["npu"]["us"] == 0     # nothing to do: another name for the same bytes
    for other in found["solvers"].values():
        assert other["total_us"] >= found["cost"]["total_us"] - 1e-9


def test_without_running_other_operators_go_by_the_card(compress_run, resnet):
    found = partition(compress_run, resnet)
    sources = {node["op"]: node["times"]["npu"]["source"] for node in found["nodes"] if "source" in node["times"]["npu"]}
    assert sources["Conv"] == "simulated" and sources["GlobalAveragePool"] == "from the card"
    assert "runs" not in found
