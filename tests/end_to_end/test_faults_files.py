"""Known faults of other tools that ours must not have: configuration, written files, paths, hostile models."""

import hashlib
import os
import resource
import signal
import subprocess

import numpy as np
import onnx
import pytest
from conftest import is_sanitized, model_of, run_measured, small_cnn
from onnx import TensorProto
from quantized import F32, compress_model, gaussian, node, one_layer

CONFIG, INPUT = 2, 3
MODEL_FILES = {"onnx_qdq": "model_qdq.onnx", "bundle": "model.ctkb", "onnx": "model.onnx"}


def digest(path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# --- configuration -------------------------------------------------------------------------------------------------------
PIPELINE = """model: net.onnx
output: out
data:
  calibrate: {path: data.npz}
stages:
  - calibrate: {method: minmax}
  - quantize: {method: rtn, scheme: w8a8_c}
  - export: {formats: [bundle]}
"""
QUANTIZE = "quantize: {method: rtn, scheme: w8a8_c}"
# What is written instead, and the words the message must hold: line, key and the nearest that exists.
WRONG = {
    "misspelt_key": ((QUANTIZE, "quantize: {method: rtn, bitz: 4}"), ["pipeline.yaml:7", "quantize", "bitz", "bits"]),
    "key_one_level_too_high": (("output: out", "output: out\ngroup_size: 32"), ["pipeline.yaml:3", "group_size", "quantize"]),
    "word_for_a_number": ((QUANTIZE, 'quantize: {method: rtn, bits: "four"}'), ["pipeline.yaml:7", "bits", "four"]),
    "same_key_twice": (("output: out", "output: out\noutput: elsewhere"), ["pipeline.yaml:3", "output"]),
    "unknown_stage": (("- calibrate:", "- calibrat:"), ["pipeline.yaml:6", "calibrat", "calibrate"]),
}


@pytest.fixture
def ready(job):
    job.write(small_cnn(), {"x": gaussian(16, 3, 8, 8)})
    (job.folder / "pipeline.yaml").write_text(PIPELINE)
    return job


@pytest.mark.parametrize("case", WRONG)
def test_b081_a_wrong_key_is_refused_with_its_line_and_the_nearest(ready, case):
    (old, new), words = WRONG[case]
    (ready.folder / "pipeline.yaml").write_text(PIPELINE.replace(old, new))
    outcome = ready.run()
    assert outcome.code == CONFIG
    for word in words:
        assert word in outcome.error
    assert not ready.output.exists()


def test_b081_all_wrong_keys_are_told_at_once(ready):
    text = PIPELINE
    for name in ("misspelt_key", "key_one_level_too_high", "unknown_stage"):
        text = text.replace(*WRONG[name][0])
    (ready.folder / "pipeline.yaml").write_text(text)
    outcome = ready.run()
    assert outcome.code == CONFIG
    for word in ("bitz", "group_size", "calibrat:", "pipeline.yaml:8"):
        assert word in outcome.error or word == "calibrat:" and "calibrat" in outcome.error


def test_b081_an_empty_file_is_refused(ready):
    (ready.folder / "pipeline.yaml").write_text("")
    outcome = ready.run()
    assert outcome.code == CONFIG and "pipeline.yaml" in outcome.error and "model" in outcome.error


# --- written files -------------------------------------------------------------------------------------------------------
def limit_to_64_kib():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))


@pytest.mark.parametrize("format", MODEL_FILES)
def test_b084_a_full_disk_leaves_nothing_under_the_final_name(job, format):
    job.write(one_layer("Gemm", {"W": gaussian(512, 512)}, ["N", 512], ["N", 512]), {"x": gaussian(8, 512)})
    job.pipeline(calibrate={}, formats=[format], threads=1)
    outcome = job.run(preexec_fn=limit_to_64_kib)
    assert outcome.code == INPUT, outcome.err
    assert "out" in outcome.error and "File too large" in outcome.error
    assert not (job.output / MODEL_FILES[format]).exists() and not list(job.folder.rglob("*.part.*"))
    assert job.run().code == 0   # what was left behind is not taken for a result
    assert (job.output / MODEL_FILES[format]).stat().st_size > 65536


def die_at(size):
    """The kernel kills the program in the middle of the write that would pass `size` bytes: nothing of it runs after that."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("format", MODEL_FILES)
def test_b084_a_run_killed_while_it_writes_leaves_nothing_under_the_final_name(job, format, share):
    job.write(one_layer("Gemm", {"W": gaussian(512, 512)}, ["N", 512], ["N", 512]), {"x": gaussian(8, 512)})
    job.pipeline(calibrate={}, formats=[format], threads=1)
    assert job.run().code == 0
    path = job.output / MODEL_FILES[format]
    whole = path.read_bytes()
    for old in [path, *job.output.glob("report.*"), job.output / "manifest.json"]:
        old.unlink()
    outcome = job.run(preexec_fn=die_at(max(4096, int(share * (len(whole) - 1)))))   # earlier stages write nothing: they are cached
    assert outcome.code == -signal.SIGXFSZ, outcome.err
    assert not path.exists() and not (job.output / "manifest.json").exists()
    (left,) = job.output.glob("*.part.*")
    assert left.name.startswith(path.name) and left.stat().st_size < len(whole)
    assert job.run().code == 0
    assert path.read_bytes() == whole
    assert not list(job.output.rglob("*.part.*"))   # nor does the torn file stay


@pytest.mark.parametrize("size", [100, 4096, 65536])
def test_b084_a_run_killed_while_it_keeps_a_stage_does_that_stage_again(job, size):
    job.write(one_layer("Gemm", {"W": gaussian(512, 512)}, ["N", 512], ["N", 512]), {"x": gaussian(8, 512)})
    job.pipeline(calibrate={}, formats=["onnx_qdq", "bundle"], threads=1)
    outcome = job.run(preexec_fn=die_at(size))
    assert outcome.code == -signal.SIGXFSZ, outcome.err
    assert [p for p in (job.output / ".cache").iterdir() if ".part." in p.name]
    assert job.run().code == 0
    killed = {name: (job.output / name).read_bytes() for name in ("model_qdq.onnx", "model.ctkb")}
    straight = job.run("--output", job.folder / "straight")
    assert straight.code == 0, straight.err
    assert killed == {name: (job.folder / "straight" / name).read_bytes() for name in killed}
    assert not list(job.output.rglob("*.part.*"))


def test_b084_only_torn_files_of_dead_runs_are_removed(job):
    job.write(one_layer("Gemm", {"W": gaussian(8, 8)}, ["N", 8], ["N", 8]), {"x": gaussian(8, 8)})
    job.pipeline(calibrate={}, formats=["bundle"], threads=1)
    job.output.mkdir()
    gone = subprocess.Popen(["true"])
    gone.wait()
    stay = [f"thesis.part.{gone.pid}", f"model.ctkb.part.{os.getpid()}", f"model.ctkb.part.{gone.pid}.bak", "model.ctkb.part."]
    for name in [*stay, f"model.ctkb.part.{gone.pid}", f"report.json.part.{gone.pid}"]:
        (job.output / name).write_text("half")
    assert job.run("--force").code == 0
    assert {p.name for p in job.output.iterdir() if ".part." in p.name} == set(stay)


def test_b085_a_second_run_replaces_and_the_input_stays(job):
    model = one_layer("Gemm", {"W": gaussian(64, 64)}, ["N", 64], ["N", 64])
    job.write(model, {"x": gaussian(8, 64)})
    onnx.save(model, job.folder / "net.onnx", save_as_external_data=True, location="net.data", size_threshold=0)
    job.pipeline(calibrate={}, formats=["onnx_qdq", "bundle", "onnx"], threads=1)
    inputs = {name: digest(job.folder / name) for name in ("net.onnx", "net.data", "data.npz")}
    sizes = []
    for words in ([], [], ["--force"]):
        assert job.run(*words).code == 0
        sizes.append({p.name: p.stat().st_size for p in job.output.iterdir() if p.suffix in (".onnx", ".ctkb", ".data")})
    assert sizes[0] == sizes[1] == sizes[2]
    assert {name: digest(job.folder / name) for name in inputs} == inputs


def test_b085_an_output_that_is_the_models_own_data_file_is_refused(job):
    model = one_layer("Gemm", {"W": gaussian(64, 64)}, ["N", 64], ["N", 64])
    job.write(model, {"x": gaussian(8, 64)})
    job.output.mkdir()
    onnx.save(model, job.output / "net.onnx", save_as_external_data=True, location="model_qdq.onnx", size_threshold=0)
    job.pipeline(calibrate={}, model="out/net.onnx", threads=1)
    before = digest(job.output / "model_qdq.onnx")
    for words in ([], ["--force"]):
        outcome = job.run(*words)
        assert outcome.code == CONFIG, outcome.err
        assert digest(job.output / "model_qdq.onnx") == before


def test_b087_names_beyond_ascii_everywhere(tmp_path, compress_run):
    from conftest import Job

    folder = tmp_path / "модель 重み"
    folder.mkdir()
    job = Job(folder, compress_run)
    model = one_layer("MatMul", {"вес": gaussian(8, 4)}, ["N", 8], ["N", 4])
    model.graph.node[0].name = "слой 1"
    job.write(model, {"x": gaussian(8, 8)}, name="a b.onnx")
    onnx.save(model, folder / "a b.onnx", save_as_external_data=True, location="вес.bin", size_threshold=0)
    os.rename(folder / "data.npz", folder / "数 据.npz")
    path = job.pipeline(calibrate={}, model="a b.onnx", output="вы ход", threads=1)
    path.write_text(path.read_text().replace("data.npz", "数 据.npz"))
    outcome = job.run(cwd="/")
    assert outcome.code == 0, outcome.err
    written = onnx.load(folder / "вы ход" / "model_qdq.onnx")
    assert any(n.name == "слой 1" for n in written.graph.node)


@pytest.mark.parametrize("scheme, share", [("w8a8_c", 0.30), ("w4a8_c", 0.20)])
def test_b090_the_result_holds_each_weight_once(job, scheme, share):
    model = one_layer("Gemm", {"W": gaussian(512, 512), "b": gaussian(512, seed=1)}, ["N", 512], ["N", 512])
    out = compress_model(job, model, {"x": gaussian(8, 512)}, scheme=scheme)
    source = (job.folder / "net.onnx").stat().st_size
    for name in ("model_qdq.onnx", "model.ctkb"):
        assert (job.output / name).stat().st_size <= share * source
    read = {i for n in out.model.graph.node for i in n.input} | {o.name for o in out.model.graph.output}
    assert [name for name in out.arrays if name not in read] == []


# --- hostile models ------------------------------------------------------------------------------------------------------
def external_model(folder, location):
    model = one_layer("MatMul", {"W": gaussian(8, 4)}, ["N", 8], ["N", 4])
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    (folder / "net.onnx").write_bytes(model.SerializeToString())


@pytest.mark.parametrize("form", ["parent", "through_a_folder", "absolute", "symbolic_link", "hard_link", "linked_folder"])
def test_b091_data_outside_the_models_folder_is_not_read(tmp_path, compress_run, form):
    folder, secret = tmp_path / "model", tmp_path / "secret.bin"
    (folder / "a").mkdir(parents=True)
    secret.write_bytes(gaussian(8, 4).tobytes())
    location = {"parent": "../secret.bin", "through_a_folder": "a/../../secret.bin", "absolute": str(secret), "linked_folder": "up/secret.bin"}.get(form, "link.bin")
    if form == "symbolic_link":
        os.symlink(secret, folder / "link.bin")
    elif form == "hard_link":
        os.link(secret, folder / "link.bin")
    elif form == "linked_folder":
        os.symlink(tmp_path, folder / "up")
    external_model(folder, location)
    outcome = compress_run("graph", "show", folder / "net.onnx")
    assert outcome.code == INPUT
    assert "W" in outcome.error and os.path.basename(location) in outcome.error


def test_b091_data_in_a_folder_below_works(tmp_path, compress_run):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/w.bin").write_bytes(gaussian(8, 4).tobytes())
    external_model(tmp_path, "sub/w.bin")
    assert compress_run("graph", "show", tmp_path / "net.onnx").code == 0


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_b091_links_under_the_written_names_are_replaced_and_not_written_through(job, link):
    job.write(one_layer("MatMul", {"W": gaussian(8, 4)}, ["N", 8], ["N", 4]), {"x": gaussian(8, 8)})
    job.pipeline(calibrate={}, formats=list(MODEL_FILES), threads=1)
    job.output.mkdir()
    names = [*MODEL_FILES.values(), "report.json", "report.md", "report.html", "manifest.json"]
    for name in names:
        (job.folder / f"secret {name}").write_text("mine")
        link(job.folder / f"secret {name}", job.output / name)
    outcome = job.run("--force")
    assert outcome.code == 0, outcome.err
    for name in names:
        assert (job.folder / f"secret {name}").read_text() == "mine"
        assert not (job.output / name).is_symlink() and (job.output / name).stat().st_size > 4


def test_b091_an_exported_model_does_not_point_at_the_data_file_of_its_source(job):
    (job.folder / "sub").mkdir()
    (job.folder / "sub/w.bin").write_bytes(gaussian(8, 4).tobytes())
    external_model(job.folder, "sub/w.bin")
    np.savez(job.folder / "data.npz", x=gaussian(8, 8))
    before = {p.relative_to(job.folder) for p in job.folder.rglob("*")}
    job.pipeline(calibrate={}, formats=["onnx_qdq", "onnx"], threads=1)
    assert job.run().code == 0
    for name in ("model_qdq.onnx", "model.onnx"):
        written = onnx.load(job.output / name, load_external_data=False)
        assert [t.name for t in written.graph.initializer if t.data_location == TensorProto.EXTERNAL] == []
    made = {p.relative_to(job.folder) for p in job.folder.rglob("*")} - before
    assert {p.parts[0] for p in made} == {"out", "pipeline.yaml"}
    assert (job.folder / "sub/w.bin").read_bytes() == gaussian(8, 4).tobytes()


def scalar_weight(op):
    return one_layer(op, {"W": np.float32(2)}, [1, 3] if op == "Gemm" else [1, 3, 4, 4], None)


def with_dims(dims):
    model = one_layer("MatMul", {"W": gaussian(3, 4)}, [2, 3], [2, 4])
    del model.graph.initializer[0].dims[:]
    model.graph.initializer[0].dims.extend(dims)
    return model


def with_dtype(number):
    model = with_dims([3, 4])
    model.graph.initializer[0].data_type = number
    return model


def cyclic():
    return model_of([node("Add", ["x", "b"], ["a"], "n1"), node("Relu", ["a"], ["b"], "n2")], {"x": ([2], F32)}, {"b": ([2], F32)}, {})


def nested_ifs(depth) -> bytes:
    """The bytes of a model of If in If, put together from inside out: protobuf's own objects would nest as deep."""
    def field(number, payload):
        size, length = len(payload), b""
        while True:
            length += bytes([size & 127 | (128 if size > 127 else 0)])
            size >>= 7
            if not size:
                break
        return bytes([number << 3 | 2]) + length + payload

    graph = b""
    for _ in range(depth):
        attribute = field(1, b"then_branch") + b"\xa0\x01\x05" + field(6, graph)
        graph = field(1, field(1, b"c") + field(2, b"y") + field(4, b"If") + field(5, attribute))
    return b"\x08\x08" + field(7, graph + field(2, b"g")) + field(8, b"\x10\x11")


HOSTILE = {
    "gemm_with_a_scalar": lambda: scalar_weight("Gemm"),
    "conv_with_a_scalar": lambda: scalar_weight("Conv"),
    "negative_dimension": lambda: with_dims([-3, 4]),
    "dimension_of_2_62": lambda: with_dims([2**62, 4]),
    "product_that_wraps": lambda: with_dims([2**33, 2**31]),
    "more_elements_than_bytes": lambda: with_dims([300, 400]),
    "unknown_dtype": lambda: with_dtype(99),
    "wider_dtype_than_bytes": lambda: with_dtype(TensorProto.DOUBLE),
    "cycle": cyclic,
    "ten_thousand_ifs": lambda: nested_ifs(10000),
    "thousand_ifs": lambda: nested_ifs(1000),
}


def refused_at_little_cost(job, case, words):
    """Runs the program on a hostile model; it must end with one message, not a signal, and take little memory."""
    made = HOSTILE[case]()
    (job.folder / "net.onnx").write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    outcome, usage = run_measured(words, job.folder / "log")
    assert outcome.code == INPUT, (outcome.code, outcome.err[-2000:])
    assert outcome.error and "\n" not in outcome.error
    assert is_sanitized() or usage.ru_maxrss * 1024 < 200e6
    return outcome.error


@pytest.mark.parametrize("case", [c for c in HOSTILE if not c.endswith("scalar")])
def test_b097_a_malformed_graph_is_not_read(job, case):
    assert "net.onnx" in refused_at_little_cost(job, case, ["graph", "show", str(job.folder / "net.onnx")])


@pytest.mark.parametrize("case", [c for c in HOSTILE if c.endswith("scalar")])
def test_b097_a_weight_without_dimensions_is_not_run(job, case):
    np.savez(job.folder / "data.npz", x=gaussian(8, *([3] if "gemm" in case else [3, 4, 4])))
    path = job.pipeline(calibrate={}, threads=1)
    message = refused_at_little_cost(job, case, ["run", str(path)])
    assert "layer" in message or "W" in message
    assert not list(job.output.glob("*.onnx"))
