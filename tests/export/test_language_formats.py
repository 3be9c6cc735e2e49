"""Written language models by readers that are not ours: weights have the graph's bits in every format, ONNX Runtime runs them."""

import json
import sys

import numpy as np
import onnx
import pytest
from conftest import ROOT, small_cnn
from onnx import numpy_helper

sys.path.insert(0, str(ROOT / "tests" / "python"))
from decoder_reference import decoder_logits, decoder_shapes, random_weights, safetensors_bytes  # noqa: E402

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
          "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 61,
          "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "torch_dtype": "bfloat16"}
TOKENIZER = {"added_tokens": [{"id": 1, "content": "<s>", "special": True}], "normalizer": None,
             "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
             "model": {"type": "BPE", "byte_fallback": False, "vocab": {"a": 0, "b": 3, "ab": 4}, "merges": ["a b"]}}


@pytest.fixture
def export(compress_run, tmp_path):
    def run(scheme, formats, config=CONFIG, extra="", code=0, **shapes):
        net = tmp_path / "net"
        net.mkdir(exist_ok=True)
        (net / "config.json").write_text(json.dumps(config))
        (net / "tokenizer.json").write_text(json.dumps(TOKENIZER))
        (net / "model.safetensors").write_bytes(safetensors_bytes(random_weights(decoder_shapes(config, **shapes), 7)))
        pipeline = tmp_path / "p.yaml"
        pipeline.write_text(f"model: net\noutput: out\nstages:\n  - quantize: {{method: rtn, scheme: {scheme}{extra}}}\n"
                            f"  - export: {{formats: [{', '.join(formats)}]}}\n")
        done = compress_run("run", pipeline)
        assert done.code == code, done.err
        return tmp_path / "out" if code == 0 else done.error

    return run


def initializers(path):
    graph = onnx.load(str(path)).graph
    return {i.name: numpy_helper.to_array(i) for i in graph.initializer}, list(graph.node)


def unpacked(words, bits, width):
    """Unsigned numbers [rows, width] of rows of bytes, lowest bits first."""
    rows = words.reshape(len(words), -1)
    numbers = rows if bits == 8 else np.stack([rows & 15, rows >> 4], -1).reshape(len(rows), -1)
    return numbers[:, :width].astype(np.int32)


def weights_of_nbits(path):
    """{module: float32 [out, in]} of MatMulNBits, as its operator's documentation has it."""
    values, nodes = initializers(path)
    out = {}
    for node in nodes:
        if node.op_type != "MatMulNBits":
            continue
        a = {x.name: x.i for x in node.attribute}
        n, k, bits, block = a["N"], a["K"], a["bits"], a["block_size"]
        blocks = -(-k // block)
        codes = unpacked(values[node.input[1]].reshape(n, -1), bits, blocks * block)
        scales = values[node.input[2]].reshape(n, blocks)
        zeros = np.full((n, blocks), 1 << (bits - 1))
        if len(node.input) > 3 and node.input[3]:
            zeros = unpacked(values[node.input[3]].reshape(n, -1), bits, blocks)
        whole = (codes - np.repeat(zeros, block, 1)).astype(np.float32) * np.repeat(scales, block, 1)
        assert (codes == np.repeat(zeros, block, 1))[:, k:].all()  # padding stands for 0
        out[node.name] = whole[:, :k]
    return out


def read_safetensors(path):
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + length])
    kinds = {"F32": np.float32, "F16": np.float16, "I32": np.int32, "I64": np.int64}
    header.pop("__metadata__", None)
    return {name: np.frombuffer(raw[8 + length:][slice(*t["data_offsets"])], kinds[t["dtype"]]).reshape(t["shape"])
            for name, t in header.items()}


def weights_of_checkpoint(folder):
    """{module: float32 [out, in]} of packed layers, by config_groups as compressed-tensors reads them."""
    tensors = read_safetensors(folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())["quantization_config"]
    assert config["quant_method"] == "compressed-tensors" and config["format"] == "pack-quantized"
    packed = [n.removesuffix(".weight_packed") for n in tensors if n.endswith(".weight_packed")]
    out = {}
    for module in packed:
        groups = [g for g in config["config_groups"].values() if module in g["targets"] or g["targets"] == ["Linear"]]
        assert len(groups) == 1 and module not in config["ignore"]
        grid = groups[0]["weights"]
        bits, (rows, width) = grid["num_bits"], tensors[module + ".weight_shape"]
        codes = unpacked(tensors[module + ".weight_packed"].view(np.uint8), bits, width)
        scales = tensors[module + ".weight_scale"].astype(np.float32)
        zeros = np.full(scales.shape, 1 << (bits - 1))
        if not grid["symmetric"]:
            words = np.ascontiguousarray(tensors[module + ".weight_zero_point"].T)
            zeros = unpacked(words.view(np.uint8), bits, rows).T
        size = grid["group_size"] if grid["strategy"] == "group" else width
        out[module] = (codes - np.repeat(zeros, size, 1)).astype(np.float32) * np.repeat(scales, size, 1)
    return out


def weights_of_gguf(path):
    gguf = pytest.importorskip("gguf")
    names = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    heads = {"attn_q": CONFIG["num_attention_heads"], "attn_k": CONFIG["num_key_value_heads"]}
    out = {}
    for t in gguf.GGUFReader(str(path)).tensors:
        parts = t.name.split(".")
        if parts[0] != "blk" and t.name != "output.weight" or "norm" in t.name:
            continue
        w = gguf.dequantize(t.data, t.tensor_type).astype(np.float32).reshape([int(n) for n in t.shape[::-1]])
        kind = parts[2] if parts[0] == "blk" else ""
        if kind in heads:  # back from interleaved rows
            w = w.reshape(heads[kind], -1, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)
        out[f"model.layers.{parts[1]}.{names[kind]}" if kind else "lm_head"] = w
    return out


def check_same(got, want):
    assert got.keys() == want.keys() and len(want) == 15
    for module, w in want.items():
        assert got[module].dtype == np.float32
        np.testing.assert_array_equal(got[module], w, module)  # floats that are equal have equal bits, but for 0 and -0


def floats_of(path):
    values, nodes = initializers(path)
    return {n.name: values[n.input[1]] for n in nodes if n.op_type == "Gemm"}


@pytest.mark.parametrize("scheme", ["w4a16_g32", "w8a16_g32"])
def test_three_formats_hold_the_same_bits(export, scheme):
    out = export(scheme, ["gguf", "safetensors", "onnx_nbits", "onnx"])
    want = floats_of(out / "model.onnx")
    check_same(weights_of_nbits(out / "model_nbits.onnx"), want)
    check_same(weights_of_checkpoint(out / "hf"), want)
    check_same(weights_of_gguf(out / "model.gguf"), want)


@pytest.mark.parametrize("scheme", ["w4a16_g64_affine", "w4a16_g32_affine", "w8a16_g32_affine", "w3a16_g32", "w6a16_g64", "w4a16_c", "w4a8_g32"])
def test_other_grids_are_held_where_a_format_can(export, scheme):
    # 96 inputs: with groups of 64 the last is ragged.
    out = export(scheme, ["safetensors", "onnx_nbits", "onnx"])
    want = floats_of(out / "model.onnx")
    check_same(weights_of_nbits(out / "model_nbits.onnx"), want)
    check_same(weights_of_checkpoint(out / "hf"), want)


def test_rows_no_group_divides_are_refused_by_name(export):
    error = export("w4a16_g32", ["safetensors"], {**CONFIG, "intermediate_size": 97}, code=3)
    assert 'safetensors: "model.layers.0.mlp.down_proj": scheme w4a16_g32' in error and "found 97 inputs" in error


def test_ragged_rows_keep_their_bits(export):
    # 76 = 2 * 32 + 12: padded, in groups of 4, as floats.
    out = export("w4a16_g32", ["gguf", "safetensors", "onnx_nbits", "onnx"], {**CONFIG, "intermediate_size": 76})
    want = floats_of(out / "model.onnx")
    check_same(weights_of_nbits(out / "model_nbits.onnx"), want)
    check_same(weights_of_checkpoint(out / "hf"), want)
    check_same(weights_of_gguf(out / "model.gguf"), want)
    notes = [w["text"] for w in json.loads((out / "report.json").read_text())["warnings"] if w["code"] == "export_note"]
    assert len(notes) == 2 and all("model.layers.1.mlp.down_proj" in n for n in notes)


def test_networks_without_tokens_are_refused(compress_run, tmp_path):
    onnx.save(small_cnn(), str(tmp_path / "m.onnx"))
    (tmp_path / "p.yaml").write_text("model: m.onnx\noutput: out\nstages:\n  - export: {formats: [onnx_nbits]}\n")
    refused = compress_run("run", tmp_path / "p.yaml")
    assert refused.code == 3 and "onnx_nbits: expected one input of token ids" in refused.error and "use onnx_qdq" in refused.error


def test_checkpoint_folder_is_whole(export):
    out = export("w4a16_g32", ["safetensors"], extra=", ignore: [lm_head]")
    manifest = {f["path"] for f in json.loads((out / "manifest.json").read_text())["files"]}
    assert {"hf/model.safetensors", "hf/config.json", "hf/tokenizer.json"} <= manifest
    config = json.loads((out / "hf/config.json").read_text())
    assert config["quantization_config"]["ignore"] == ["lm_head"] and config["torch_dtype"] == "float32"
    source = read_safetensors(out.parent / "net/model.safetensors")
    written = read_safetensors(out / "hf/model.safetensors")
    for name in ("lm_head.weight", "model.embed_tokens.weight", "model.norm.weight"):
        np.testing.assert_array_equal(written[name], source[name])
    assert "lm_head.weight_packed" not in written


def test_tied_head_stays_tied(export):
    out = export("w4a16_g32", ["safetensors"], {**CONFIG, "tie_word_embeddings": True})
    config = json.loads((out / "hf/config.json").read_text())
    assert config["tie_word_embeddings"] and config["quantization_config"]["ignore"] == ["lm_head"]
    assert not any("lm_head.weight_packed" in n for n in read_safetensors(out / "hf/model.safetensors"))


@pytest.mark.parametrize("head_dim", [16, 8])  # GroupQueryAttention turns q and k itself, or RotaryEmbedding before it
def test_onnx_runtime_generates_with_the_cache(export, head_dim):
    ort = pytest.importorskip("onnxruntime")
    out = export("w4a16_g32", ["onnx_nbits"], {**CONFIG, "head_dim": head_dim})
    session = ort.InferenceSession(str(out / "model_nbits.onnx"), providers=["CPUExecutionProvider"])
    ids = np.random.default_rng(3).integers(0, 61, (2, 9))

    def run(tokens, mask, cache):
        feeds = {"input_ids": tokens, "attention_mask": mask}
        for i in session.get_inputs()[2:]:
            feeds[i.name] = cache.get(i.name, np.zeros((2, 2, 0, head_dim), np.float32))
        names = [o.name for o in session.get_outputs()]
        results = dict(zip(names, session.run(names, feeds)))
        return results["logits"], {n.replace("present", "past_key_values"): v for n, v in results.items() if n != "logits"}

    whole, cache = run(ids, np.ones((2, 9), np.int64), {})
    assert whole.shape == (2, 9, 61) and len(cache) == 4
    first, cache = run(ids[:, :8], np.ones((2, 8), np.int64), {})
    last, cache = run(ids[:, 8:], np.ones((2, 9), np.int64), cache)
    # Other shapes of the same products sum in other orders.
    np.testing.assert_allclose(np.concatenate([first, last], 1), whole, rtol=0, atol=1e-4 * np.abs(whole).max())


QWEN2 = {**CONFIG, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"}
QWEN3 = {**CONFIG, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "head_dim": 16}


@pytest.mark.parametrize("config,shapes", [(CONFIG, {}), ({**CONFIG, "head_dim": 8}, {}), (QWEN2, {"qkv_bias": True}), (QWEN3, {"qk_norm": True})],
                         ids=["llama", "llama-heads-of-8", "qwen2", "qwen3"])
def test_onnx_runtime_computes_the_decoder(export, config, shapes):
    ort = pytest.importorskip("onnxruntime")
    out = export("w4a16_g32", ["onnx_nbits"], config, **shapes)
    session = ort.InferenceSession(str(out / "model_nbits.onnx"), providers=["CPUExecutionProvider"])
    ids = np.random.default_rng(5).integers(0, 61, (1, 11))
    feeds = {i.name: np.zeros((1, 2, 0, i.shape[3]), np.float32) for i in session.get_inputs()[2:]}
    (logits,) = session.run(["logits"], {"input_ids": ids, "attention_mask": np.ones((1, 11), np.int64), **feeds})
    weights = random_weights(decoder_shapes(config, **shapes), 7)
    weights.update({f"{module}.weight": w for module, w in weights_of_nbits(out / "model_nbits.onnx").items()})
    want = decoder_logits(config, weights, ids[0])
    np.testing.assert_allclose(logits[0], want, rtol=0, atol=2e-5 * np.abs(want).max())  # float32 against float64
