"""Writers of GPTQ, AWQ and compressed-tensors checkpoints in numpy, from the definitions of the formats.

Codes and zero points are unsigned, codes [out, in], zero points and scales [out, groups].
"""

import json
import sys

import numpy as np

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "python"))
from decoder_reference import decoder_shapes, random_weights  # noqa: E402

# 8 heads over 4: heads / kv_heads is not kv_heads (FAULTS B022), and every side is a multiple of 32.
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
          "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 61,
          "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "torch_dtype": "float16"}
TOKENIZER = {"added_tokens": [{"id": 1, "content": "<s>", "special": True}], "normalizer": None,
             "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
             "model": {"type": "BPE", "byte_fallback": False, "vocab": {"a": 0, "b": 3, "ab": 4}, "merges": ["a b"]}}
TYPES = {np.dtype(np.float32): "F32", np.dtype(np.float16): "F16", np.dtype(np.int32): "I32", np.dtype(np.int64): "I64",
         np.dtype(np.int8): "I8", np.dtype(np.uint16): "BF16"}


def write_tensors(path, tensors):
    """bfloat16 comes as its bits in uint16."""
    header, data = {}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": TYPES[array.dtype], "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def write_folder(folder, tensors, quantization=None, config=CONFIG):
    folder.mkdir(exist_ok=True)
    config = {**config, **({"quantization_config": quantization} if quantization else {})}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    write_tensors(folder / "model.safetensors", tensors)
    return folder


def linears(config=CONFIG):
    return [n.removesuffix(".weight") for n in decoder_shapes(config) if n.endswith("_proj.weight")]


def floats(config=CONFIG, seed=7):
    return random_weights(decoder_shapes(config), seed)


def grid(weight, bits, size, symmetric, rng, scale=np.float16):
    """Codes near the weight: (codes, zeros, scales); size -1: a group is the row. Zero points of asymmetric ones are at least 1."""
    rows, width = weight.shape
    size = width if size == -1 else size
    groups = -(-width // size)
    top, middle = (1 << bits) - 1, 1 << (bits - 1)
    scales = (rng.uniform(0.5, 2.0, (rows, groups)) * np.abs(weight).max() / middle).astype(scale)
    zeros = np.full((rows, groups), middle) if symmetric else rng.integers(1, top + 1, (rows, groups))
    of = np.arange(width) // size
    codes = np.clip(np.rint(weight / scales.astype(np.float32)[:, of]) + zeros[:, of], 0, top).astype(np.int64)
    return codes, zeros, scales


def dense(codes, zeros, scales, size, order=None):
    of = np.arange(codes.shape[1]) // (codes.shape[1] if size == -1 else size) if order is None else order
    return (codes - zeros[:, of]).astype(np.float32) * scales.astype(np.float32)[:, of]


def pack_bits(numbers, bits):
    """[n, m] -> int32 [ceil(n * bits / 32), m]: down each column a stream of bits, lowest first."""
    planes = np.stack([(numbers >> b) & 1 for b in range(bits)], 1).reshape(-1, numbers.shape[1])
    planes = np.concatenate([planes, np.zeros((-len(planes) % 32, planes.shape[1]), planes.dtype)])
    words = (planes.reshape(-1, 32, planes.shape[1]).astype(np.uint64) << np.arange(32, dtype=np.uint64)[None, :, None]).sum(1)
    return words.astype(np.uint32).view(np.int32)


def pack_gptq(codes, zeros, scales, bits, size, v1=True, order=None):
    width = codes.shape[1]
    order = np.arange(width) // (width if size == -1 else size) if order is None else order
    return {"qweight": pack_bits(codes.T, bits), "qzeros": pack_bits((zeros - v1), bits).T.copy(),
            "scales": scales.T.copy(), "g_idx": order.astype(np.int32)}


def pack_awq_columns(numbers):
    """[n, m] -> int32 [n, m / 8]: nibble k of a word is column 0 2 4 6 1 3 5 7 of eight."""
    by_nibble = numbers.reshape(len(numbers), -1, 8)[:, :, [0, 2, 4, 6, 1, 3, 5, 7]].astype(np.uint64)
    return (by_nibble << (4 * np.arange(8, dtype=np.uint64))).sum(-1).astype(np.uint32).view(np.int32)


def pack_awq(codes, zeros, scales):
    return {"qweight": pack_awq_columns(codes.T), "qzeros": pack_awq_columns(zeros.T), "scales": scales.T.copy()}


def pack_tensors(codes, zeros, scales, bits, symmetric):
    """compressed-tensors, pack-quantized."""
    parts = {"weight_packed": pack_bits(codes.T, bits).T.copy(), "weight_scale": scales, "weight_shape": np.array(codes.shape)}
    return parts if symmetric else {**parts, "weight_zero_point": pack_bits(zeros, bits)}


def tensors_config(groups, ignore=("lm_head",), form="pack-quantized"):
    """groups: [(targets, weights)]"""
    return {"quant_method": "compressed-tensors", "format": form, "quantization_status": "compressed", "ignore": list(ignore),
            "config_groups": {f"group_{i}": {"targets": t, "weights": {"type": "int", **w}, "input_activations": None}
                              for i, (t, w) in enumerate(groups)}}


def packed_model(pack, bits, size, symmetric, modules=None, scale=np.float16, seed=3, config=CONFIG, order=None):
    """pack(codes, zeros, scales) -> parts. Tensors of the packed model, and those of the dense one with the same numbers."""
    rng = np.random.default_rng(seed)
    plain, packed = floats(config), {}
    for module in linears(config) if modules is None else modules:
        weight = plain[module + ".weight"]
        codes, zeros, scales = grid(weight, bits, size, symmetric, rng, scale)
        of = None
        if order is not None:
            of = order(weight.shape[1])
            parts = pack(codes, zeros, scales, of)
        else:
            parts = pack(codes, zeros, scales)
        plain[module + ".weight"] = dense(codes, zeros, scales, size, of)
        packed.update({f"{module}.{part}": array for part, array in parts.items()})
    left = {n: w for n, w in plain.items() if not any(p.startswith(n.removesuffix("weight")) for p in packed)}
    return {**left, **packed}, plain


# compressed-tensors writes a model in each form and reads it back: argv: floats, [[folder, bits, symmetric, form, strategy, size]].
PEER = """
import json, sys, torch
from safetensors.torch import load_file, save_file
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
source = load_file(sys.argv[1])
for folder, bits, symmetric, form, strategy, size in json.loads(sys.argv[2]):
    args = QuantizationArgs(num_bits=bits, symmetric=symmetric, strategy=strategy, group_size=size if size > 0 else None)
    scheme = QuantizationScheme(targets=["Linear"], weights=args, format=form)
    compressor = BaseCompressor.get_value_from_registry(form)
    packed, plain = {}, {}
    for name, weight in source.items():
        if not name.endswith("_proj.weight"):
            packed[name] = plain[name] = weight
            continue
        module = name.removesuffix(".weight")
        groups = weight.reshape(len(weight), -1, size if size > 0 else weight.shape[1])
        scale = (groups.amax(-1) - groups.amin(-1)) / (2 ** bits - 1)
        zero = torch.zeros_like(scale) if symmetric else torch.round(-groups.amin(-1) / scale) - 2 ** (bits - 1)
        state = {"weight": weight, "weight_scale": scale, "weight_zero_point": zero.to(torch.int8)}
        state = compressor.compress(state, scheme)
        packed.update({f"{module}.{part}": tensor.contiguous() for part, tensor in state.items()})
        plain[name] = compressor.decompress(state, scheme)["weight"].contiguous()
    save_file(packed, folder + "/coded.safetensors")
    save_file(plain, folder + "/dense.safetensors")
"""
