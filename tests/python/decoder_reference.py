"""A plain numpy forward pass of Llama's family and of BERT, in float64, and checkpoint folders to compare on.

Written from the models' papers and Hugging Face's field names, not from our reader: it shares no code with it.
"""

from __future__ import annotations

import json
import math
import pathlib
import struct

import numpy as np

TYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16, "I64": np.int64}


def read_safetensors(path) -> dict[str, np.ndarray]:
    """name -> array; bfloat16 comes as float32."""
    raw = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    tensors = {}
    for name, entry in json.loads(raw[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        array = np.frombuffer(raw[8 + length + begin : 8 + length + end], TYPES[entry["dtype"]])
        if entry["dtype"] == "BF16":
            array = (array.astype(np.uint32) << 16).view(np.float32)
        tensors[name] = array.reshape(entry["shape"])
    return tensors


def safetensors_bytes(tensors: dict[str, np.ndarray], dtype="F32") -> bytes:
    header, chunks, offset = {}, [], 0
    for name, array in tensors.items():
        if dtype == "BF16":
            data = (np.ascontiguousarray(array, np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
        else:
            data = np.ascontiguousarray(array, TYPES[dtype]).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + len(data)]}
        chunks.append(data)
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(chunks)


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def erf(x):
    return np.vectorize(math.erf)(x)


ACTIVATIONS = {
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "gelu_pytorch_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}


def frequencies(config, size):
    """Inverse frequencies and the factor of both tables."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    theta = rope.get("rope_theta", config.get("rope_theta", 10000.0))
    f = theta ** -(np.arange(0, size, 2) / size)
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "linear":
        return f / rope["factor"], 1.0
    if kind == "llama3":
        context, turns = rope["original_max_position_embeddings"], 2 * np.pi / f
        blend = (context / turns - rope["low_freq_factor"]) / (rope["high_freq_factor"] - rope["low_freq_factor"])
        return f * (np.clip(blend, 0, 1) + (1 - np.clip(blend, 0, 1)) / rope["factor"]), 1.0
    if kind == "yarn":
        context = rope["original_max_position_embeddings"]
        bounds = [size * math.log(context / (turns * 2 * math.pi)) / (2 * math.log(theta)) for turns in (32, 1)]
        low, high = max(math.floor(bounds[0]), 0), min(math.ceil(bounds[1]), size - 1)
        ramp = np.clip((np.arange(size // 2) - low) / (high - low), 0, 1)
        return f * (1 - ramp) + f / rope["factor"] * ramp, 0.1 * math.log(rope["factor"]) + 1
    return f, 1.0


def rotate(x, config):
    """x [T, heads, size]: element i and i + size / 2 turn by position * frequency i."""
    f, factor = frequencies(config, x.shape[-1])
    angles = np.arange(x.shape[0])[:, None, None] * f
    cos, sin = np.cos(angles) * factor, np.sin(angles) * factor
    a, b = np.split(x, 2, -1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def attend(q, k, v, is_causal):
    """q [T, heads, size], k and v [T, kv_heads, size] -> [T, heads * size]."""
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scores = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(q.shape[-1])
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[1:], bool)), scores, -np.inf)
    return np.einsum("hqk,khd->qhd", softmax(scores), v).reshape(len(q), -1)


def decoder_logits(config, weights, ids):
    w = {name: array.astype(np.float64) for name, array in weights.items()}
    is_gemma = config["model_type"] == "gemma"
    heads = config["num_attention_heads"]
    size = config.get("head_dim") or config["hidden_size"] // heads
    act = ACTIVATIONS[config.get("hidden_act", "silu")]

    def norm(name, x):
        scale = w[name + ".weight"] + (1 if is_gemma else 0)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + config["rms_norm_eps"]) * scale

    def linear(name, x):
        return x @ w[name + ".weight"].T + w.get(name + ".bias", 0)

    x = w["model.embed_tokens.weight"][ids]
    if is_gemma:
        x = x * math.sqrt(config["hidden_size"])
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        h = norm(layer + "input_layernorm", x)
        q, k, v = (linear(f"{layer}self_attn.{p}_proj", h).reshape(len(ids), -1, size) for p in "qkv")
        if layer + "self_attn.q_norm.weight" in w:
            q, k = norm(layer + "self_attn.q_norm", q), norm(layer + "self_attn.k_norm", k)
        h = attend(rotate(q, config), rotate(k, config), v, True)
        x = x + linear(layer + "self_attn.o_proj", h)
        h = norm(layer + "post_attention_layernorm", x)
        h = act(linear(layer + "mlp.gate_proj", h)) * linear(layer + "mlp.up_proj", h)
        x = x + linear(layer + "mlp.down_proj", h)
    head = w["model.embed_tokens.weight"] if config["tie_word_embeddings"] else w["lm_head.weight"]
    return norm("model.norm", x) @ head.T


def encoder_states(config, weights, ids):
    w = {name: array.astype(np.float64) for name, array in weights.items()}
    heads = config["num_attention_heads"]

    def norm(name, x):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + config["layer_norm_eps"])
        return scaled * w[name + ".weight"] + w[name + ".bias"]

    def linear(name, x):
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    table = "embeddings.{}_embeddings.weight".format
    x = w[table("word")][ids] + w[table("position")][: len(ids)] + w[table("token_type")][0]
    x = norm("embeddings.LayerNorm", x)
    for i in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{i}."
        q, k, v = (linear(f"{layer}attention.self.{p}", x).reshape(len(ids), heads, -1) for p in ("query", "key", "value"))
        h = linear(layer + "attention.output.dense", attend(q, k, v, False))
        x = norm(layer + "attention.output.LayerNorm", x + h)
        h = ACTIVATIONS[config["hidden_act"]](linear(layer + "intermediate.dense", x))
        x = norm(layer + "output.LayerNorm", x + linear(layer + "output.dense", h))
    return x


def decoder_shapes(config, *, qkv_bias=False, all_bias=False, qk_norm=False) -> dict[str, tuple[int, ...]]:
    d, f, heads = config["hidden_size"], config["intermediate_size"], config["num_attention_heads"]
    size = config.get("head_dim") or d // heads
    shapes = {"model.embed_tokens.weight": (config["vocab_size"], d), "model.norm.weight": (d,)}
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], d)
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        rows = {"self_attn.q_proj": (heads * size, d), "self_attn.k_proj": (config["num_key_value_heads"] * size, d),
                "self_attn.v_proj": (config["num_key_value_heads"] * size, d), "self_attn.o_proj": (d, heads * size),
                "mlp.gate_proj": (f, d), "mlp.up_proj": (f, d), "mlp.down_proj": (d, f)}
        for name, shape in rows.items():
            shapes[layer + name + ".weight"] = shape
            if all_bias or (qkv_bias and name[-6:] in ("q_proj", "k_proj", "v_proj")):
                shapes[layer + name + ".bias"] = shape[:1]
        norms = {"input_layernorm": d, "post_attention_layernorm": d}
        norms |= {"self_attn.q_norm": size, "self_attn.k_norm": size} if qk_norm else {}
        shapes |= {layer + name + ".weight": (width,) for name, width in norms.items()}
    return shapes


def encoder_shapes(config) -> dict[str, tuple[int, ...]]:
    d, f = config["hidden_size"], config["intermediate_size"]
    shapes = {"embeddings.word_embeddings.weight": (config["vocab_size"], d),
              "embeddings.position_embeddings.weight": (config["max_position_embeddings"], d),
              "embeddings.token_type_embeddings.weight": (2, d)}
    rows, norms = {}, ["embeddings.LayerNorm"]
    for i in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{i}."
        rows |= {f"{layer}attention.self.{p}": (d, d) for p in ("query", "key", "value")}
        rows |= {layer + "attention.output.dense": (d, d), layer + "intermediate.dense": (f, d), layer + "output.dense": (d, f)}
        norms += [layer + "attention.output.LayerNorm", layer + "output.LayerNorm"]
    for name, shape in rows.items():
        shapes |= {name + ".weight": shape, name + ".bias": shape[:1]}
    for name in norms:
        shapes |= {name + ".weight": (d,), name + ".bias": (d,)}
    return shapes


def random_weights(shapes, seed) -> dict[str, np.ndarray]:
    """Numbers bfloat16 holds exactly, so that every stored type has the same function."""
    r = np.random.default_rng(seed)
    weights = {}
    for name, shape in shapes.items():
        centre = 1.0 if len(shape) == 1 and name.endswith("weight") else 0.0
        array = (centre + r.normal(0, 0.25, shape)).astype(np.float32)
        weights[name] = (array.view(np.uint32) & 0xFFFF0000).view(np.float32)
    return weights
