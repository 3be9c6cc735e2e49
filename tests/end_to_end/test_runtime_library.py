"""The runtime as a C library (runtime/ctk_runtime.h), through the shared library as others load it."""

from __future__ import annotations

import ctypes
import pathlib
import subprocess
import threading

import numpy as np
import pytest

import compress

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CONFIG, INPUT = 2, 3


class Info(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_size_t),
                ("dims", ctypes.c_int64 * 8), ("bytes", ctypes.c_size_t)]


@pytest.fixture(scope="module")
def library(program):
    for path in (program.parent / "libctk.so", program.parent.parent / "lib/libctk.so", ROOT / "build/release/bin/libctk.so"):
        if path.exists():
            break
    library = ctypes.CDLL(str(path))
    library.ctk_last_error.restype = ctypes.c_char_p
    library.ctk_version.restype = ctypes.c_char_p
    for name in ("ctk_input_count", "ctk_output_count", "ctk_activation_bytes", "ctk_packed_bytes"):
        getattr(library, name).restype = ctypes.c_size_t
        getattr(library, name).argtypes = [ctypes.c_void_p]
    return library


@pytest.fixture(scope="module")
def bundle(compress_run, tmp_path_factory):
    out = tmp_path_factory.mktemp("library")
    assert compress_run("run", ROOT / "configs/pipelines/quickstart.yaml", "--output", out).code == 0
    return out / "model.ctkb"


def load(library, path):
    model = ctypes.c_void_p()
    status = library.ctk_load(str(path).encode(), ctypes.byref(model))
    return status, model


def create(library, model, dims=None):
    instance = ctypes.c_void_p()
    given = (ctypes.c_int64 * len(dims))(*dims) if dims else None
    return library.ctk_create(model, given, ctypes.byref(instance)), instance


def run(library, instance, x):
    info = Info()
    assert library.ctk_instance_output(instance, ctypes.c_size_t(0), ctypes.byref(info)) == 0
    y = np.empty(tuple(info.dims[: info.rank]), np.float32)
    assert y.nbytes == info.bytes
    inputs = (ctypes.c_void_p * 1)(x.ctypes.data)
    outputs = (ctypes.c_void_p * 1)(y.ctypes.data)
    assert library.ctk_run(instance, inputs, outputs) == 0, library.ctk_last_error()
    return y


def pictures(count):
    return np.random.default_rng(0).uniform(0, 1, (count, 1, 8, 8)).astype(np.float32)


def expected(bundle, x):
    graph = compress.load(bundle)
    return next(iter(graph.run({next(iter(graph.inputs)): x}).values()))


def test_gives_the_numbers_the_module_gives(library, bundle):
    x = pictures(3)
    status, model = load(library, bundle)
    assert status == 0, library.ctk_last_error()
    info = Info()
    assert library.ctk_input_info(model, ctypes.c_size_t(0), ctypes.byref(info)) == 0
    assert list(info.dims[: info.rank])[1:] == list(x.shape)[1:]
    status, instance = create(library, model, x.shape)
    assert status == 0, library.ctk_last_error()
    library.ctk_free_model(model)  # instances keep what they need
    np.testing.assert_array_equal(run(library, instance, x), expected(bundle, x))
    library.ctk_free_instance(instance)


def test_two_instances_run_at_once_on_one_copy_of_the_weights(library, bundle):
    x = pictures(1)
    want = expected(bundle, x)
    library.ctk_set_threads(2)
    _, model = load(library, bundle)
    instances = [create(library, model)[1] for _ in range(2)]
    assert library.ctk_packed_bytes(instances[0]) == library.ctk_packed_bytes(instances[1]) > 0
    wrong = []

    def work(instance):
        for _ in range(300):
            if not np.array_equal(run(library, instance, x), want):
                wrong.append(1)

    threads = [threading.Thread(target=work, args=(i,)) for i in instances]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    for instance in instances:
        library.ctk_free_instance(instance)
    library.ctk_free_model(model)
    library.ctk_set_threads(1)


@pytest.mark.parametrize("cut", [0, 7, 100, 127, 128, 1000, -1])
def test_a_cut_bundle_is_an_error_with_its_path(library, bundle, tmp_path, cut):
    part = tmp_path / "part.ctkb"
    part.write_bytes(bundle.read_bytes()[:cut])
    status, _ = load(library, part)
    assert status == INPUT
    assert str(part) in library.ctk_last_error().decode()


def test_wrong_shapes_and_places_are_refused(library, bundle):
    assert load(library, "absent.ctkb")[0] == INPUT
    _, model = load(library, bundle)
    status, _ = create(library, model, [1, 1, 9, 8])
    assert status == INPUT and "9" in library.ctk_last_error().decode()
    status, _ = create(library, model, [1, 1, 2**62, 2**62])
    assert status == INPUT
    info = Info()
    assert library.ctk_input_info(model, ctypes.c_size_t(5), ctypes.byref(info)) == CONFIG
    library.ctk_free_model(model)


def test_the_example_prints_the_outputs(program, bundle, tmp_path):
    example = program.parent / "run_bundle"
    if not example.exists():
        example = ROOT / "build/release/bin/run_bundle"
    if not example.exists():
        pytest.skip("run_bundle is not built")
    x = pictures(1)
    x.tofile(tmp_path / "x.raw")
    done = subprocess.run([str(example), str(bundle), str(tmp_path / "x.raw")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.array(done.stdout.split(), np.float32), expected(bundle, x).ravel())


def test_shows_nothing_but_its_own_functions(library, program):
    listed = subprocess.run(["nm", "-D", "--defined-only", library._name], capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1] for line in listed.splitlines()]
    assert names and all(name.startswith("ctk_") for name in names)
