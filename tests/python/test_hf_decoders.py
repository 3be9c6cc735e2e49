"""Checkpoint folders read and run by us give what a plain forward pass in numpy gives."""

from __future__ import annotations

import json
import re
import struct

import numpy as np
import pytest
from decoder_reference import (decoder_logits, decoder_shapes, encoder_shapes, encoder_states, random_weights, read_safetensors,
                               safetensors_bytes)

import compress

# heads 8, kv heads 2: 8 / 2 is not 2, so a wrong count cannot hide (FAULTS B022).
BASE = {"hidden_size": 48, "intermediate_size": 70, "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 2,
        "vocab_size": 61, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "tie_word_embeddings": False}


def config_of(name, model_type, **more):
    return {**BASE, "architectures": [name], "model_type": model_type, **more}


LLAMA = ("LlamaForCausalLM", "llama")
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}
DECODERS = {
    "llama": (config_of(*LLAMA), {}),
    "tied": (config_of(*LLAMA, tie_word_embeddings=True), {}),
    "biases": (config_of(*LLAMA, attention_bias=True, mlp_bias=True), {"all_bias": True}),
    "head_dim": (config_of(*LLAMA, head_dim=10), {}),
    "theta": (config_of(*LLAMA, rope_theta=5e5), {}),
    "linear": (config_of(*LLAMA, rope_scaling={"type": "linear", "factor": 4.0}), {}),
    "llama3": (config_of(*LLAMA, head_dim=16, rope_scaling=LLAMA3), {}),
    "yarn": (config_of(*LLAMA, head_dim=16, rope_parameters={**YARN, "rope_theta": 1e4}), {}),
    "mistral": (config_of("MistralForCausalLM", "mistral", sliding_window=None), {}),
    "qwen2": (config_of("Qwen2ForCausalLM", "qwen2"), {"qkv_bias": True}),
    "qwen3": (config_of("Qwen3ForCausalLM", "qwen3", head_dim=16), {"qk_norm": True}),
    "gemma": (config_of("GemmaForCausalLM", "gemma", head_dim=16, hidden_act="gelu_pytorch_tanh", tie_word_embeddings=True), {}),
}
BERT = {"architectures": ["BertModel"], "model_type": "bert", "hidden_size": 48, "intermediate_size": 70, "num_hidden_layers": 2,
        "num_attention_heads": 6, "vocab_size": 61, "max_position_embeddings": 128, "hidden_act": "gelu", "layer_norm_eps": 1e-12}


def write_folder(folder, config, weights, dtype="F32"):
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(safetensors_bytes(weights, dtype))


def ids_of(count, vocabulary=61):
    return np.random.default_rng(count).integers(0, vocabulary, (1, count))


def assert_close(got, want):
    # Float32 against float64 through two layers: rounding of some hundred terms, relative to the largest number.
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * np.abs(want).max())


@pytest.mark.parametrize("name", DECODERS)
def test_decoder_gives_the_logits_of_a_plain_forward_pass(name, tmp_path):
    config, extra = DECODERS[name]
    weights = random_weights(decoder_shapes(config, **extra), seed=7)
    write_folder(tmp_path, config, weights)
    graph = compress.load(tmp_path)
    for count in (100, 1):
        ids = ids_of(count)
        got = graph.run({"input_ids": ids})["logits"]
        assert got.shape == (1, count, config["vocab_size"])
        assert_close(got[0], decoder_logits(config, weights, ids[0]))


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
def test_half_weights_are_the_same_numbers(dtype, tmp_path):
    config = DECODERS["llama"][0]
    weights = random_weights(decoder_shapes(config), 7)
    weights = {name: array.astype(np.float16).astype(np.float32) for name, array in weights.items()}
    weights = {name: (array.view(np.uint32) & 0xFFFF0000).view(np.float32) for name, array in weights.items()}
    write_folder(tmp_path, config, weights, dtype)
    ids = ids_of(40)
    assert_close(compress.load(tmp_path).run({"input_ids": ids})["logits"][0], decoder_logits(config, weights, ids[0]))


def test_shards_are_one_checkpoint(tmp_path):
    config = DECODERS["qwen2"][0]
    weights = random_weights(decoder_shapes(config, qkv_bias=True), 7)
    (tmp_path / "config.json").write_text(json.dumps(config))
    names = sorted(weights)
    index = {}
    for part, chosen in enumerate((names[::2], names[1::2]), 1):
        file = f"model-0000{part}-of-00002.safetensors"
        (tmp_path / file).write_bytes(safetensors_bytes({name: weights[name] for name in chosen}))
        index |= dict.fromkeys(chosen, file)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    ids = ids_of(20)
    assert_close(compress.load(tmp_path).run({"input_ids": ids})["logits"][0], decoder_logits(config, weights, ids[0]))


@pytest.mark.parametrize("prefix", ["", "bert."])
@pytest.mark.parametrize("act", ["gelu", "gelu_pytorch_tanh"])
def test_encoder_gives_the_states_of_a_plain_forward_pass(prefix, act, tmp_path):
    config = {**BERT, "hidden_act": act}
    weights = random_weights(encoder_shapes(config), seed=3)
    write_folder(tmp_path, config, {prefix + name: array for name, array in weights.items()} | {"pooler.dense.bias": np.zeros(48)})
    ids = ids_of(50)
    got = compress.load(tmp_path).run({"input_ids": ids})["last_hidden_state"]
    assert got.shape == (1, 50, 48)
    assert_close(got[0], encoder_states(config, weights, ids[0]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name, place", [("model.layers.1.mlp.up_proj.weight", (3, 5)),
                                         ("model.layers.0.input_layernorm.weight", (7,))])
def test_weights_that_are_no_numbers_are_refused_by_name_and_place(bad, name, place, tmp_path):
    """FAULTS B025."""
    config = DECODERS["llama"][0]
    weights = random_weights(decoder_shapes(config), 7)
    weights[name][place] = bad
    write_folder(tmp_path, config, weights)
    spelled = ",".join(map(str, place))
    with pytest.raises(compress.Error, match=rf"{re.escape(name)}.*\[{spelled}\]") as caught:
        compress.load(tmp_path)
    assert caught.value.code == 3


def test_large_bfloat16_norm_weights_stay_finite(tmp_path):
    """FAULTS B028: 70144 is a bfloat16 and past the largest half."""
    config = DECODERS["llama"][0]
    weights = random_weights(decoder_shapes(config), 7)
    weights["model.norm.weight"][:] = 70144.0
    write_folder(tmp_path, config, weights, "BF16")
    ids = ids_of(8)
    got = compress.load(tmp_path).run({"input_ids": ids})["logits"][0]
    assert np.isfinite(got).all()
    assert_close(got, decoder_logits(config, weights, ids[0]))


def test_sequence_past_the_positions_is_refused(tmp_path):
    config = DECODERS["llama"][0]
    write_folder(tmp_path, config, random_weights(decoder_shapes(config), 7))
    with pytest.raises(compress.Error, match="expected positions below 128.*found 128"):
        compress.load(tmp_path).run({"input_ids": ids_of(129)})


def test_token_past_the_vocabulary_is_refused(tmp_path):
    config = DECODERS["llama"][0]
    write_folder(tmp_path, config, random_weights(decoder_shapes(config), 7))
    with pytest.raises(compress.Error, match="found 61 at position 0"):
        compress.load(tmp_path).run({"input_ids": np.array([[61]])})


def stories_tokenizer(path):
    """llama2.c's rule on its vocabulary of 512: bytes, then merges of the best score, from the left among equals."""
    raw = path.read_bytes()
    pieces, scores, at = [], [], 4
    while at < len(raw):
        score, length = struct.unpack_from("<fi", raw, at)
        pieces.append(raw[at + 8 : at + 8 + length])
        scores.append(score)
        at += 8 + length
    ids = {piece: i for i, piece in reversed(list(enumerate(pieces)))}

    def joined(left, right):
        token = ids.get(pieces[left] + pieces[right])
        return (-np.inf, -1) if token is None else (scores[token], token)

    def encode(text):
        tokens = [ids[b" "]]
        for character in text:
            piece = character.encode()
            tokens += [ids[piece]] if piece in ids else [byte + 3 for byte in piece]
        pairs = [joined(*pair) for pair in zip(tokens, tokens[1:])]  # (score, id), best first found by max
        while pairs:
            best, token = max(pairs, key=lambda pair: pair[0])
            if best == -np.inf:
                break
            at = pairs.index((best, token))
            tokens[at : at + 2] = [token]
            first = max(at - 1, 0)
            pairs[first : at + 2] = [joined(*pair) for pair in zip(tokens[first : at + 1], tokens[first + 1 : at + 2])]
        return [1, *tokens]

    return encode


def test_stories260k_has_its_perplexity(shared_data):
    """DATA.md: each line BOS + tokens, cut to 512, mean over 7,706 predicted tokens: 5.2191 (1.65232 nats)."""
    folder = shared_data / "stories260k"
    encode = stories_tokenizer(folder / "tok512.bin")
    graph = compress.load(folder)
    total, count = 0.0, 0
    for line in (folder / "tinystories_eval.txt").read_text().splitlines():
        ids = np.array(encode(line)[:512])
        logits = graph.run({"input_ids": ids[None]})["logits"][0, :-1].astype(np.float64)
        top = logits.max(-1, keepdims=True)
        log_sum = np.log(np.exp(logits - top).sum(-1)) + top[:, 0]
        total += (log_sum - logits[np.arange(len(ids) - 1), ids[1:]]).sum()
        count += len(ids) - 1
    assert count == 7706
    assert np.exp(total / count) == pytest.approx(5.2191, abs=1e-4)


def test_stories260k_gives_the_logits_of_a_plain_forward_pass(shared_data):
    folder = shared_data / "stories260k"
    config = json.loads((folder / "config.json").read_text())
    ids = ids_of(300, 512)
    want = decoder_logits(config, read_safetensors(folder / "model.safetensors"), ids[0])
    np.testing.assert_allclose(compress.load(folder).run({"input_ids": ids})["logits"][0], want, rtol=0, atol=1e-4)
