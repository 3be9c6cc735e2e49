"""Writes a checkpoint of Llama's type with random weights in bfloat16, as safetensors shards: to measure memory and time at
sizes nobody keeps at hand.

    python write_decoder.py OUT [--layers 28] [--hidden 1536] [--intermediate 8960] [--heads 12] [--kv-heads 2]
                            [--vocab 151936] [--tokenizer FOLDER]

The defaults are Qwen2-1.5B's shapes: 1.54 billion parameters, 3.1 GB. Weights are normal with the deviation of a layer whose
outputs have the size of its inputs; the tokenizer is copied from a folder, whose ids must lie below the vocabulary.
"""
import argparse
import json
import pathlib
import shutil

import numpy as np

SHARD_BYTES = 1 << 30


def tensors(a):
    width, kv = a.hidden, a.hidden // a.heads * a.kv_heads
    yield "model.embed_tokens.weight", (a.vocab, width)
    for i in range(a.layers):
        layer = f"model.layers.{i}."
        yield layer + "input_layernorm.weight", (width,)
        yield layer + "post_attention_layernorm.weight", (width,)
        for name, rows in (("q", width), ("k", kv), ("v", kv)):
            yield f"{layer}self_attn.{name}_proj.weight", (rows, width)
            yield f"{layer}self_attn.{name}_proj.bias", (rows,)
        yield layer + "self_attn.o_proj.weight", (width, width)
        yield layer + "mlp.gate_proj.weight", (a.intermediate, width)
        yield layer + "mlp.up_proj.weight", (a.intermediate, width)
        yield layer + "mlp.down_proj.weight", (width, a.intermediate)
    yield "model.norm.weight", (width,)


def values(name, shape, random):
    """bfloat16 as uint16: the upper halves of floats."""
    if len(shape) == 1:
        floats = np.zeros(shape, np.float32) if name.endswith(".bias") else np.ones(shape, np.float32)
    else:
        floats = random.standard_normal(shape, dtype=np.float32)
        floats *= 0.02 if "embed" in name else shape[1] ** -0.5
    return (floats.view(np.uint32) >> 16).astype(np.uint16)


def write_shard(path, shard, random):
    header, offset = {}, 0
    for name, shape in shard:
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, shape in shard:
            file.write(values(name, shape, random).tobytes())


def write(a):
    out = pathlib.Path(a.out)
    out.mkdir(parents=True, exist_ok=True)
    shards, size = [[]], 0
    for name, shape in tensors(a):
        if size > SHARD_BYTES:
            shards.append([])
            size = 0
        shards[-1].append((name, shape))
        size += 2 * int(np.prod(shape))
    random = np.random.default_rng(7)
    places = {}
    for i, shard in enumerate(shards):
        file = f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
        write_shard(out / file, shard, random)
        places |= {name: file for name, _ in shard}
    (out / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    (out / "config.json").write_text(json.dumps({
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": a.hidden,
        "intermediate_size": a.intermediate, "num_hidden_layers": a.layers, "num_attention_heads": a.heads,
        "num_key_value_heads": a.kv_heads, "vocab_size": a.vocab, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
        "rope_theta": 1e6, "hidden_act": "silu", "tie_word_embeddings": True, "torch_dtype": "bfloat16"}))
    if a.tokenizer:
        shutil.copy(pathlib.Path(a.tokenizer) / "tokenizer.json", out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    for name, size in (("layers", 28), ("hidden", 1536), ("intermediate", 8960), ("heads", 12), ("kv-heads", 2),
                       ("vocab", 151936)):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--tokenizer")
    write(parser.parse_args())


if __name__ == "__main__":
    main()
