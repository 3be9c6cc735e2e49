"""Checkpoints whose weights are codes (GPTQ, AWQ, compressed-tensors): the same numbers as the dense model, in and out again."""

import json
import os
import subprocess
import sys

import numpy as np
import onnx
import packed_checkpoints as pc
import pytest
from onnx import numpy_helper

from conftest import DATA, onnxruntime_outputs, relative_error

STORIES = DATA / "stories260k"
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False, "sym": False, "damp_percent": 0.1,
        "true_sequential": True, "model_name_or_path": "x", "checkpoint_format": "gptq"}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "gemm", "modules_to_not_convert": None}


def export(run, tmp_path, model, formats, out="out"):
    (tmp_path / f"{out}.yaml").write_text(f"model: {model}\noutput: {tmp_path / out}\nstages:\n  - export: {{formats: [{', '.join(formats)}]}}\n")
    done = run("run", tmp_path / f"{out}.yaml", "--force")
    assert done.code == 0, done.err
    report = json.loads((tmp_path / out / "report.json").read_text())
    return tmp_path / out, report


def notes(report):
    return [w["text"] for w in report["warnings"] if w["code"] == "model"]


def weights_of(path):
    """{name: array} of the constants of Gemm."""
    graph = onnx.load(str(path)).graph
    values = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    return {n.name: values[n.input[1]] for n in graph.node if n.op_type == "Gemm"}


def logits_of(path, config=pc.CONFIG):
    ids = np.random.default_rng(5).integers(0, config["vocab_size"], (1, 17))
    return onnxruntime_outputs(path, {"input_ids": ids})[0]


def check_same_model(run, tmp_path, packed, plain, quantization, config=pc.CONFIG):
    """The packed folder and the dense one as float graphs: weights bit by bit, logits within 1e-5. Gives the packed one's report."""
    coded = pc.write_folder(tmp_path / "coded", packed, quantization, config)
    dense = pc.write_folder(tmp_path / "dense", plain, config=config)
    got, report = export(run, tmp_path, coded, ["onnx"], "got")
    want, _ = export(run, tmp_path, dense, ["onnx"], "want")
    a, b = weights_of(got / "model.onnx"), weights_of(want / "model.onnx")
    assert a.keys() == b.keys() and len(a) == 15
    for name, weight in b.items():
        np.testing.assert_array_equal(a[name], weight, name)
        np.testing.assert_array_equal(weight, plain[name + ".weight"].astype(np.float32), name)
    assert relative_error(logits_of(got / "model.onnx"), logits_of(want / "model.onnx")) <= 1e-5
    return report


def schemes(report):
    return {layer["name"]: layer["scheme"] for layer in report["layers"]}


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("size", [32, -1, 40])  # 40: the last group is ragged
@pytest.mark.parametrize("form", ["gptq", "gptq_v2"])
def test_gptq_is_its_dense_model(compress_run, tmp_path, bits, size, form):
    def pack(codes, zeros, scales):
        return pc.pack_gptq(codes, zeros, scales, bits, size, form == "gptq")

    packed, plain = pc.packed_model(pack, bits, size, False)
    report = check_same_model(compress_run, tmp_path, packed, plain, {**GPTQ, "bits": bits, "group_size": size, "checkpoint_format": form})
    scheme = f"w{bits}a16_" + ("c" if size == -1 else f"g{size}") + "_affine"
    found = schemes(report)
    assert [found[m] for m in pc.linears()] == [scheme] * 14 and found["lm_head"] == "fp32"
    assert f"14 weights are the codes of the file (gptq, {scheme})" in notes(report)


def test_symmetric_gptq_has_no_zero_points(compress_run, tmp_path):
    packed, plain = pc.packed_model(lambda *a: pc.pack_gptq(*a, 4, 32), 4, 32, True)
    report = check_same_model(compress_run, tmp_path, packed, plain, {**GPTQ, "sym": True})
    assert schemes(report)["model.layers.1.mlp.up_proj"] == "w4a16_g32"


def test_columns_dealt_out_by_g_idx_become_floats(compress_run, tmp_path):
    rng = np.random.default_rng(11)
    packed, plain = pc.packed_model(lambda c, z, s, of: pc.pack_gptq(c, z, s, 4, 32, order=of), 4, 32, False,
                                    order=lambda width: rng.permutation(np.arange(width) // 32))
    report = check_same_model(compress_run, tmp_path, packed, plain, {**GPTQ, "desc_act": True})
    assert set(schemes(report).values()) == {"fp32"}
    assert "14 weights have groups that are permuted (g_idx): they are dequantized to float32" in notes(report)
    # Written again they are float32, under a configuration without codes.
    out, _ = export(compress_run, tmp_path, tmp_path / "coded", ["safetensors"])
    assert "quantization_config" not in json.loads((out / "hf/config.json").read_text())
    again, _ = export(compress_run, tmp_path, out / "hf", ["onnx"], "again")
    for name, weight in weights_of(again / "model.onnx").items():
        np.testing.assert_array_equal(weight, plain[name + ".weight"], name)


@pytest.mark.parametrize("size", [32, -1])
def test_awq_is_its_dense_model(compress_run, tmp_path, size):
    packed, plain = pc.packed_model(pc.pack_awq, 4, size, False)
    report = check_same_model(compress_run, tmp_path, packed, plain, {**AWQ, "group_size": size})
    assert schemes(report)["model.layers.0.self_attn.k_proj"] == ("w4a16_g32_affine" if size == 32 else "w4a16_c_affine")


@pytest.mark.parametrize("bits, symmetric", [(2, True), (3, False), (4, True), (4, False), (5, True), (8, True), (8, False)])
@pytest.mark.parametrize("strategy", ["group", "channel"])
def test_compressed_tensors_is_its_dense_model(compress_run, tmp_path, bits, symmetric, strategy):
    size = 32 if strategy == "group" else -1
    packed, plain = pc.packed_model(lambda *a: pc.pack_tensors(*a, bits, symmetric), bits, size, symmetric)
    weights = {"num_bits": bits, "symmetric": symmetric, "strategy": strategy, "group_size": size if size > 0 else None}
    report = check_same_model(compress_run, tmp_path, packed, plain, pc.tensors_config([(["Linear"], weights)]))
    grid = f"w{bits}a16_" + ("g32" if size > 0 else "c")
    # Eight bits reach -128, which symmetric codes of ours leave out: a zero point of 0 makes room.
    assert schemes(report)["model.layers.0.mlp.down_proj"] in (grid + "_affine",) if not symmetric or bits == 8 else (grid,)


@pytest.mark.parametrize("form", ["int-quantized", "naive-quantized"])
def test_bytes_and_bfloat16_scales(compress_run, tmp_path, form):
    def pack(codes, zeros, scales):
        bits = scales.astype(np.float32).view(np.uint32)
        assert not (bits & 0xffff).any()
        return {"weight": (codes - 128).astype(np.int8), "weight_scale": (bits >> 16).astype(np.uint16),
                "weight_zero_point": (zeros - 128).astype(np.int8)}

    def bfloat(x):
        return (np.asarray(x, np.float32).view(np.uint32) & 0xffff0000).view(np.float32)

    rng, plain, packed = np.random.default_rng(3), pc.floats(), {}
    for module in pc.linears():
        codes, zeros, scales = pc.grid(plain[module + ".weight"], 8, -1, False, rng, np.float32)
        scales = bfloat(scales)
        plain[module + ".weight"] = pc.dense(codes, zeros, scales, -1)
        packed.update({f"{module}.{part}": array for part, array in pack(codes, zeros, scales).items()})
    packed = {**{n: w for n, w in plain.items() if n not in packed}, **packed}
    config = pc.tensors_config([(["Linear"], {"num_bits": 8, "symmetric": False, "strategy": "channel"})], form=form)
    report = check_same_model(compress_run, tmp_path, packed, plain, config)
    assert schemes(report)["model.layers.0.mlp.gate_proj"] == "w8a16_c_affine"


def test_layers_left_out_and_groups_by_pattern(compress_run, tmp_path):  # FAULTS B089
    names = pc.linears()
    left = ["model.layers.1.self_attn.k_proj"]
    eight = [n for n in names if n.endswith("down_proj")]
    four = [n for n in names if n not in left + eight]
    low, plain = pc.packed_model(lambda *a: pc.pack_tensors(*a, 4, True), 4, 32, True, four)
    high, more = pc.packed_model(lambda *a: pc.pack_tensors(*a, 8, False), 8, -1, False, eight)
    packed = {n: w for n, w in low.items() if not any(n.startswith(m) for m in eight)}
    packed.update({n: w for n, w in high.items() if any(n.startswith(m) for m in eight)})
    plain.update({m + ".weight": more[m + ".weight"] for m in eight})
    config = pc.tensors_config([(["Linear"], {"num_bits": 4, "strategy": "group", "group_size": 32}),
                                (["re:.*down_proj$"], {"num_bits": 8, "strategy": "channel", "symmetric": False})],
                               ["lm_head", "re:model\\.layers\\.1\\.self_attn\\.k_proj"])
    report = check_same_model(compress_run, tmp_path, packed, plain, config)
    found = schemes(report)
    assert {found[n] for n in four} == {"w4a16_g32"} and {found[n] for n in eight} == {"w8a16_c_affine"} and found[left[0]] == "fp32"
    assert not any("does not leave them out" in n for n in notes(report))
    # Not listed: said, and read as what is stored.
    config["ignore"] = ["lm_head"]
    pc.write_folder(tmp_path / "coded", packed, config)
    _, report = export(compress_run, tmp_path, tmp_path / "coded", ["onnx"])
    assert any(n.startswith("1 layers are stored as floats") and left[0] in n for n in notes(report))
    # Written again, the lists name exactly those.
    config["ignore"] = ["lm_head", *left]
    pc.write_folder(tmp_path / "coded", packed, config)
    out, _ = export(compress_run, tmp_path, tmp_path / "coded", ["safetensors"])
    written = json.loads((out / "hf/config.json").read_text())["quantization_config"]
    assert sorted(written["ignore"]) == sorted(["lm_head", *left])
    again, _ = export(compress_run, tmp_path, out / "hf", ["onnx"], "again")
    for name, weight in weights_of(again / "model.onnx").items():
        np.testing.assert_array_equal(weight, plain[name + ".weight"], name)


def test_an_embedding_of_codes_is_read_as_floats(compress_run, tmp_path):
    packed, plain = pc.packed_model(lambda *a: pc.pack_tensors(*a, 4, True), 4, 32, True, [*pc.linears(), "model.embed_tokens", "lm_head"])
    config = pc.tensors_config([(["Linear", "Embedding"], {"num_bits": 4, "strategy": "group", "group_size": 32})], [])
    report = check_same_model(compress_run, tmp_path, packed, plain, config)
    assert {"15 weights are the codes of the file (compressed-tensors, w4a16_g32)",
            "1 weights are of tables, which are read as floats: they are dequantized to float32"} <= set(notes(report))
    out, _ = export(compress_run, tmp_path, tmp_path / "coded", ["safetensors"])
    again, _ = export(compress_run, tmp_path, out / "hf", ["onnx"], "again")
    np.testing.assert_array_equal(logits_of(again / "model.onnx"), logits_of(tmp_path / "got/model.onnx"))


def test_shards_and_stale_copies(compress_run, tmp_path):  # FAULTS B088
    packed, plain = pc.packed_model(lambda *a: pc.pack_gptq(*a, 4, 32), 4, 32, False)
    coded = pc.write_folder(tmp_path / "coded", packed, GPTQ)
    (coded / "model.safetensors").unlink()
    halves = [dict(list(packed.items())[i::2]) for i in (0, 1)]
    index = {n: f"model-{i}.safetensors" for i, half in enumerate(halves) for n in half}
    stale = next(n for n in halves[1] if n.endswith("qweight"))
    halves[0][stale] = np.zeros_like(packed[stale])
    for i, half in enumerate(halves):
        pc.write_tensors(coded / f"model-{i}.safetensors", half)
    (coded / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    out, report = export(compress_run, tmp_path, coded, ["onnx"])
    for name, weight in weights_of(out / "model.onnx").items():
        np.testing.assert_array_equal(weight, plain[name + ".weight"], name)
    assert any(stale in n and "passed over" in n for n in notes(report))
    (coded / "model-1.safetensors").unlink()
    refused = compress_run("graph", "show", coded)
    assert refused.code == 3 and 'found no "model-1.safetensors"' in refused.error


def test_codes_reach_every_format(compress_run, tmp_path):
    packed, plain = pc.packed_model(lambda *a: pc.pack_gptq(*a, 4, 32), 4, 32, True)
    coded = pc.write_folder(tmp_path / "coded", packed, {**GPTQ, "sym": True})
    out, _ = export(compress_run, tmp_path, coded, ["bundle", "gguf", "onnx", "onnx_nbits", "safetensors"])
    logits = logits_of(out / "model.onnx")
    for name in ("model.gguf", "hf", "model.ctkb"):  # heads of q and k turned and back: B022
        again, report = export(compress_run, tmp_path, out / name, ["onnx"], "again")
        for module, weight in weights_of(again / "model.onnx").items():
            np.testing.assert_array_equal(weight, plain[module + ".weight"], f"{name} {module}")
        np.testing.assert_array_equal(logits_of(again / "model.onnx"), logits)
    # Four bits and a half scale a group of 32: B090.
    assert (out / "hf/model.safetensors").stat().st_size < 1.02 * (coded / "model.safetensors").stat().st_size
    feeds = {"input_ids": np.random.default_rng(5).integers(0, 61, (1, 17)), "attention_mask": np.ones((1, 17), np.int64)}
    nbits = onnx.load(str(out / "model_nbits.onnx"))
    feeds.update({i.name: np.zeros((1, 4, 0, 8), np.float32) for i in nbits.graph.input if i.name.startswith("past_key")})
    import onnxruntime as ort
    session = ort.InferenceSession(nbits.SerializeToString(), providers=["CPUExecutionProvider"])
    assert relative_error(session.run(["logits"], feeds)[0], logits) <= 1e-5


def test_quantizing_codes_again_is_refused_before_work(compress_run, tmp_path):
    packed, _ = pc.packed_model(lambda *a: pc.pack_gptq(*a, 4, 32), 4, 32, True)
    coded = pc.write_folder(tmp_path / "coded", packed, {**GPTQ, "sym": True})
    (tmp_path / "p.yaml").write_text(f"model: {coded}\noutput: out\nstages:\n  - quantize: {{method: rtn, scheme: w4a16_g32}}\n")
    refused = compress_run("run", tmp_path / "p.yaml")
    assert refused.code == 3 and "its weight is coded already (w4a16_g32)" in refused.error


def test_a_bias_of_zeros_that_the_model_has_not_is_nothing(compress_run, tmp_path):
    packed, plain = pc.packed_model(lambda *a: {**pc.pack_gptq(*a, 4, 32), "bias": np.zeros(len(a[0]), np.float16)}, 4, 32, True)
    check_same_model(compress_run, tmp_path, packed, plain, {**GPTQ, "sym": True})
    packed["model.layers.0.mlp.up_proj.bias"][3] = 1
    pc.write_folder(tmp_path / "coded", packed, {**GPTQ, "sym": True})
    refused = compress_run("graph", "show", tmp_path / "coded")
    assert refused.code == 3 and 'found 1 more, the first "model.layers.0.mlp.up_proj.bias"' in refused.error


def changed(name, change):
    def apply(packed, config):
        packed[name] = change(packed[name])
    return apply


def without(name):
    return lambda packed, config: packed.pop(name)


def config_with(**keys):
    return lambda packed, config: config.update(keys)


def nan_at_5(scales):
    scales = scales.copy()
    scales.flat[5] = np.nan
    return scales


UP = "model.layers.0.mlp.up_proj"
BAD = {
    "shape": (changed(UP + ".qweight", lambda w: w[:-1]), [f'tensor "{UP}.qweight": expected shape [8,96]', "4 bits", "found [7,96]"]),
    "group": (config_with(group_size=24), ['qzeros": expected shape [3,8]', "groups of 24", "found [2,8]"]),
    "bits": (config_with(bits=6), ["config.json: quantization_config.bits: expected 2, 3, 4 or 8, found 6"]),
    "width": (config_with(bits=8), ['qweight": expected shape [16,64]', "8 bits", "found [8,64]"]),
    "nan": (changed(UP + ".scales", nan_at_5), [f'tensor "{UP}.scales": expected finite scales, found 1 NaN or infinite, the first at 5 of [2,96]']),
    "infinite": (changed(UP + ".scales", lambda s: s * np.float16(np.inf)), [f'tensor "{UP}.scales"', "found 192 NaN or infinite, the first at 0"]),
    "zeros": (without(UP + ".qzeros"), [f'tensor "{UP}.qzeros": expected one beside the other tensors of the layer, found none']),
    "order": (lambda p, c: (p.pop(UP + ".g_idx"), c.update(desc_act=True)), [f'tensor "{UP}.g_idx"', "desc_act", "found none"]),
    "range": (changed(UP + ".g_idx", lambda g: g + 1), [f'tensor "{UP}.g_idx": expected groups from 0 to 1', "found 32 others, the first 2 at 32"]),
    "contradiction": (config_with(modules_to_not_convert=["up_proj"]), [f'expected a group for "{UP}", which is stored as codes, found it left out']),
    "both": (lambda p, c: p.update({UP + ".weight": np.zeros((96, 64), np.float32)}), [f'module "{UP}": expected qweight or weight, found both']),
    "symmetric": (config_with(sym=True), ['qzeros": expected zero points of 8']),
    "form": (config_with(checkpoint_format="marlin"), ["quantization_config.checkpoint_format: expected gptq or gptq_v2, found \"marlin\""]),
    "key": (config_with(rotation="hadamard"), ["quantization_config.rotation: expected no such key, found \"hadamard\""]),
    "method": (config_with(quant_method="fp8"), ["quantization_config.quant_method: expected compressed-tensors, gptq or awq, found \"fp8\""]),
    "nowhere": (lambda p, c: c.clear(), ["quantization_config: expected one, as", "is stored as codes, found none"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_checkpoints_are_refused_before_work(compress_run, tmp_path, case):  # FAULTS B025
    packed, _ = pc.packed_model(lambda *a: pc.pack_gptq(*a, 4, 32), 4, 32, False)
    config, (change, words) = dict(GPTQ), BAD[case]
    change(packed, config)
    pc.write_folder(tmp_path / "coded", packed, config)
    (tmp_path / "p.yaml").write_text("model: coded\noutput: out\nstages:\n  - export: {formats: [bundle]}\n")
    refused = compress_run("run", tmp_path / "p.yaml")
    assert refused.code == 3 and refused.error.count("compress: error:") == 1
    assert all(word in refused.error for word in words), refused.error
    assert not (tmp_path / "out/model.ctkb").exists()


def test_headers_that_lie_are_refused(compress_run, tmp_path):  # FAULTS B095
    packed, _ = pc.packed_model(lambda *a: pc.pack_gptq(*a, 4, 32), 4, 32, False)
    path = pc.write_folder(tmp_path / "coded", packed, GPTQ) / "model.safetensors"
    whole = path.read_bytes()
    for old, new, words in ((b'"shape": [8, 96]', b'"shape": [9, 96]', "expected 3456 bytes for I32 [9,96], found 3072"),
                            (b'"dtype": "I32"', b'"dtype": "I64"', "bytes for I64"), (b'"dtype": "I32"', b'"dtype": "I33"', 'found "I33"')):
        assert old in whole
        path.write_bytes(whole.replace(old, new, 1))
        refused = compress_run("graph", "show", tmp_path / "coded")
        assert refused.code == 3 and words in refused.error and 'tensor "' in refused.error


EVAL = """
model: {model}
output: {output}
data:
  evaluate: {{path: {stories}/tinystories_eval.txt, lines: true, bos: true, context: 512, metric: perplexity}}
stages:
{stages}
"""


def perplexity(run, tmp_path, model):
    (tmp_path / "eval.yaml").write_text(EVAL.format(model=model, output=tmp_path / "unused", stories=STORIES, stages="  - validate: {against: [float]}"))
    done = run("eval", tmp_path / "eval.yaml", "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)["value"]


@pytest.mark.skipif(not STORIES.is_dir(), reason="CTK_DATA has no stories260k")
@pytest.mark.parametrize("scheme, difference", [("w4a16_c", 0), ("w8a16_c", 0), ("w4a16_g32", 1e-5), ("w4a16_g32_affine", 1e-5)])
def test_what_we_wrote_reads_back(compress_run, tmp_path, scheme, difference):
    # 172 inputs of down_proj are no whole groups: written in groups of 4, whose activations no kernel rounds to 16 bits.
    stages = f"  - quantize: {{method: rtn, scheme: {scheme}}}\n  - export: {{formats: [safetensors]}}\n  - validate: {{against: [float]}}"
    (tmp_path / "p.yaml").write_text(EVAL.format(model=STORIES, output=tmp_path / "out", stories=STORIES, stages=stages))
    done = compress_run("run", tmp_path / "p.yaml")
    assert done.code == 0, done.err
    before = json.loads((tmp_path / "out/report.json").read_text())["metric"]["final"]
    folder = tmp_path / "out/hf"
    assert perplexity(compress_run, tmp_path, folder) == pytest.approx(before, rel=max(difference, 1e-12))
    again, _ = export(compress_run, tmp_path, folder, ["safetensors"], "again")
    assert (again / "hf/model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
    a, b = (json.loads((f / "config.json").read_text()) for f in (folder, again / "hf"))
    assert a == b


CASES = [(4, True, "pack-quantized", "group", 32), (4, False, "pack-quantized", "group", 16), (3, False, "pack-quantized", "channel", -1),
         (8, True, "pack-quantized", "group", 32), (6, False, "pack-quantized", "group", 32), (2, True, "pack-quantized", "group", 32),
         (8, False, "naive-quantized", "channel", -1), (8, True, "int-quantized", "channel", -1)]


@pytest.fixture(scope="module")
def peer_folders(tmp_path_factory):
    """A folder for each case, with the model as compressed-tensors writes it and as it reads that back."""
    imports = "import compressed_tensors, torch, safetensors"
    pythons = [p for p in (os.environ.get("CTK_PEER_PYTHON"), os.environ.get("CTK_PYTHON"), sys.executable) if p]
    python = next((p for p in pythons if subprocess.run([p, "-c", imports], capture_output=True).returncode == 0), None)
    if python is None:
        pytest.skip("no Python with compressed-tensors, torch and safetensors: set CTK_PEER_PYTHON")
    root = tmp_path_factory.mktemp("peer")
    pc.write_tensors(root / "floats.safetensors", pc.floats())
    folders = {case: root / str(i) for i, case in enumerate(CASES)}
    for folder in folders.values():
        folder.mkdir()
    subprocess.run([python, "-c", pc.PEER, root / "floats.safetensors", json.dumps([(str(f), *c) for c, f in folders.items()])], check=True)
    return folders


@pytest.mark.parametrize("case", CASES, ids=str)
def test_compressed_tensors_own_writer_and_reader(compress_run, peer_folders, case):
    bits, symmetric, form, strategy, size = case
    weights = {"num_bits": bits, "symmetric": symmetric, "strategy": strategy, "group_size": size if size > 0 else None}
    root = peer_folders[case]
    for name, quantization in (("coded", pc.tensors_config([(["Linear"], weights)], form=form)), ("dense", None)):
        folder = pc.write_folder(root / name, {}, quantization)
        (root / f"{name}.safetensors").rename(folder / "model.safetensors")
    got, report = export(compress_run, root, root / "coded", ["onnx"], "got")
    want, _ = export(compress_run, root, root / "dense", ["onnx"], "want")
    a, b = weights_of(got / "model.onnx"), weights_of(want / "model.onnx")
    for module, weight in b.items():
        np.testing.assert_array_equal(a[module], weight, module)
    assert relative_error(logits_of(got / "model.onnx"), logits_of(want / "model.onnx")) <= 1e-5
    assert schemes(report)["model.layers.0.mlp.up_proj"].startswith(f"w{bits}a16")
