"""`compress estimate`: bytes and bounds against arithmetic by hand."""

import json
import shutil

import pytest
from conftest import ROOT

pytestmark = pytest.mark.fast

GIGA = 1e9


@pytest.fixture
def card(tmp_path):
    path = tmp_path / "board.yaml"
    path.write_text("name: board\nkind: cpu\nbandwidth_gb_s: 50\npeak_gops: 1000\n")
    return path


def estimate(compress_run, *arguments, code=0):
    outcome = compress_run("estimate", *map(str, arguments), "--json")
    assert outcome.code == code, outcome.out + outcome.err
    return json.loads(outcome.out)


def test_the_worked_example(compress_run, card):
    """4 B parameters at 4 bits on 50 GB/s: 2 GB, 40 ms a token, 25 tokens/s."""
    found = estimate(compress_run, "--parameters", "4e9", "--bits", 4, "--target", card)
    assert found["weight_bytes"] == 2 * GIGA
    decode = found["contexts"][0]["decode"]
    assert decode["us"] == pytest.approx(40_000)
    assert decode["tokens_per_second"] == pytest.approx(25)
    assert decode["bound_by"] == "memory"


def decoder_config(**changes):
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128_000,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
    }
    return {**config, **changes}


def folder_with(tmp_path, config):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("ties", [False, True])
def test_a_decoder_of_a_configuration_alone(compress_run, card, tmp_path, ties):
    folder = folder_with(tmp_path, decoder_config(tie_word_embeddings=ties))
    found = estimate(compress_run, folder, "--target", card, "--scheme", "w4a16_g32", "--context", "1000,4000",
                     "--prompt", 100)  # fmt: skip
    d, f, layers, kv, vocabulary = 2048, 8192, 16, 8 * 64, 128_000
    block = 2 * d * d + 2 * d * kv + 3 * d * f
    table = vocabulary * d
    norms = (2 * layers + 1) * d
    products = layers * block + table
    assert found["parameters"] == products + norms + (0 if ties else table)
    # 4 bits and an fp16 scale for each 32 weights; norms stay floats.
    streamed = products * (0.5 + 2 / 32) + 4 * norms
    assert found["streamed_bytes"] == pytest.approx(streamed)
    assert found["weight_bytes"] == pytest.approx(streamed + (0 if ties else 4 * table))
    row = 0 if ties else 4 * d
    for context, shown in zip((1000, 4000), found["contexts"], strict=True):
        cache = 2 * layers * kv * context
        assert shown["cache_bytes"]["fp16"] == 2 * cache
        assert shown["cache_bytes"]["int8"] == pytest.approx(cache * (1 + 2 / 64))
        assert shown["decode"]["bytes"] == pytest.approx(streamed + row + 2 * cache)
        assert shown["decode"]["ops"] == pytest.approx(2 * (products + 2 * layers * d * context))
        assert shown["decode"]["us"] == pytest.approx((streamed + row + 2 * cache) / 50e3)
    prefill = found["prefill"]
    attention = 2 * layers * d * sum(range(1, 101))
    assert prefill["ops"] == pytest.approx(2 * (100 * layers * block + table + attention))
    assert prefill["us"] == pytest.approx(prefill["ops"] / 1e6)
    assert prefill["bound_by"] == "arithmetic"


def test_a_table_has_the_type_that_the_configuration_says(compress_run, card, tmp_path):
    folder = folder_with(tmp_path, decoder_config(torch_dtype="bfloat16"))
    found = estimate(compress_run, folder, "--target", card, "--scheme", "w4a16_g32")
    assert found["weight_bytes"] - found["streamed_bytes"] == 2 * 128_000 * 2048


def test_as_stored_follows_the_files(compress_run, card, shared_data, tmp_path):
    folder = shared_data / "stories260k"
    if not (folder / "config.json").exists():
        pytest.skip(f"{folder} is absent")
    found = estimate(compress_run, folder, "--target", card)
    stored = (folder / "model.safetensors").stat().st_size
    assert found["weight_bytes"] == pytest.approx(stored, rel=0.01)  # its header
    measured = estimate(compress_run, folder, "--measure", "--threads", 1)["measured"]
    assert 0 < measured["decode_us"] < measured["prefill_us"]


def test_a_network_of_convolutions(compress_run, card):
    found = estimate(compress_run, ROOT / "configs/quickstart/digits_cnn.onnx", "--target", card)
    check = compress_run("graph", "show", str(ROOT / "configs/quickstart/digits_cnn.onnx"))
    assert check.code == 0
    assert found["run"]["ops"] > 0
    assert found["run"]["us"] == pytest.approx(max(found["run"]["bytes"] / 50e3, found["run"]["ops"] / 1e6))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["either a model or --parameters", "neither"]),
        (["--parameters", "4e9"], ["--bits", "0"]),
        (["--parameters", "-1", "--bits", "4"], ["--parameters", "-1"]),
        (["--parameters", "1e9", "--bits", "4", "--context", "5"], ["--context"]),
        (["MODEL", "--parameters", "1e9", "--bits", "4"], ["both"]),
        (["MODEL", "--scheme", "w4a17"], ["w4a17"]),
        (["MODEL", "--context", "0"], ["--context", "0"]),
        (["MODEL", "--scheme", "w4a16_g32", "--measure"], ["--measure", "as it is stored"]),
    ],
)
def test_wrong_use(compress_run, tmp_path, arguments, words):
    folder = folder_with(tmp_path, decoder_config())
    found = estimate(compress_run, *[str(folder) if a == "MODEL" else a for a in arguments], code=2)
    for word in words:
        assert word in found["error"]["message"]


def test_a_card_without_figures(compress_run, tmp_path):
    card = tmp_path / "card.yaml"
    card.write_text("name: g\nkind: gpu\npeak_gops: 10\n")
    found = estimate(compress_run, "--parameters", "1e9", "--bits", "4", "--target", card, code=2)
    assert "bandwidth_gb_s" in found["error"]["message"]


def test_sizes_that_no_memory_holds(compress_run, card, tmp_path):
    folder = folder_with(tmp_path, decoder_config(num_attention_heads=24))
    found = estimate(compress_run, folder, "--target", card, code=3)
    assert "error" in found
    shutil.rmtree(folder)
    folder = folder_with(tmp_path, decoder_config(architectures=["MysteryForCausalLM"]))
    found = estimate(compress_run, folder, "--target", card, code=3)
    assert "LlamaForCausalLM" in found["error"]["message"]
