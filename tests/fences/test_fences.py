"""Walls of the code: who may include whom, where third parties stay, what every folder carries. Pure text, no build."""

import collections
import functools
import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import ROOT

# A folder includes only from lower lines, or from itself. The longest name that fits a path is its layer.
LAYERS = {"core": 0, "graph": 1, "kernels": 1, "search": 1, "data": 1, "graph/onnx": 2, "graph/hf": 2, "train": 2,
          "calibrate": 2, "runtime": 2, "graph/gguf": 3, "export": 4, "compress": 5, "python": 6}
# What a layer may see of the lower lines where that is less than all of them.
SEES = {"graph": {"core"}, "kernels": {"core"}, "search": {"core"}, "data": {"core"}, "graph/onnx": {"core", "graph"}, "graph/hf": {"core", "graph"}, "train": {"core", "graph"},
        "graph/gguf": {"core", "graph", "graph/hf"},
        "runtime": {"core", "graph", "kernels"}}
TORCH_FILES = ("train/torch/",)
PRODUCT = (*sorted({name.split("/")[0] for name in LAYERS}), "cmake", "configs")
TEXT = {".cpp", ".h", ".def", ".py", ".txt", ".cmake", ".yaml", ".json", ".md", ".toml", ".sh", ".ipynb"}


@functools.cache
def files() -> list[str]:
    """Every committed file, or every file of the tree where there is no git."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True)
        if listed.returncode == 0:
            return [name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]
    skipped = {"build", "out", ".venv", ".git"}
    return [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file() and not skipped & set(p.relative_to(ROOT).parts)]


def sources(*folders) -> list[str]:
    return [f for f in files() if f.endswith((".cpp", ".h")) and (not folders or f.startswith(tuple(x + "/" for x in folders)))]


@functools.cache
def read(name) -> str:
    return (ROOT / name).read_text(errors="replace")


def layer_of(path) -> str | None:
    fitting = [name for name in LAYERS if path.startswith(name + "/")]
    return max(fitting, key=len, default=None)


def product_sources() -> list[str]:
    return [f for f in sources() if layer_of(f)]


def test_the_fences_see_the_code():
    assert len(product_sources()) > 100


def test_quoted_includes_start_at_the_root_and_exist():
    wrong = [(f, i) for f in sources() for i in re.findall(r'^\s*#include "([^"]+)"', read(f), re.M) if not (ROOT / i).exists()]
    assert [w for w in wrong if not w[1].startswith("tests/") and w[0].split("/")[0] != "tests"] == []


def test_includes_point_down_the_layers():
    wrong = []
    for file in product_sources():
        mine = layer_of(file)
        for included in re.findall(r'^\s*#include "([^"]+)"', read(file), re.M):
            theirs = layer_of(included)
            if theirs == mine or included == file:
                continue
            allowed = theirs is not None and LAYERS[theirs] < LAYERS[mine] and theirs in SEES.get(mine, LAYERS)
            if not allowed:
                wrong.append(f"{file} -> {included}")
    assert wrong == []


def test_torch_stays_in_the_trainer():
    headers = re.compile(r'#include [<"](torch|ATen|c10|caffe2|tensorpipe)/')
    assert [f for f in sources() if headers.search(read(f)) and not f.startswith(TORCH_FILES)] == []


def test_protobuf_stays_in_the_onnx_reader_and_writer():
    headers = re.compile(r'#include [<"](google/protobuf/|[\w/]*\.pb\.h)')
    assert [f for f in product_sources() if headers.search(read(f)) and not f.startswith("graph/onnx/")] == []


def test_no_using_namespace_std():
    assert [f for f in sources() if re.search(r"\busing\s+namespace\s+std\b", read(f))] == []


def test_no_paths_of_one_machine():
    machine = re.compile(r"""(?<![\w.}/)-])/(work|tmp|root|farm|home)/""")
    product = [f for f in files() if f.split("/")[0] in PRODUCT and pathlib.PurePath(f).suffix in TEXT]
    assert [f for f in product if machine.search(read(f))] == []


def test_library_code_neither_prints_nor_exits():
    speech = re.compile(r"\bstd::(cout|cerr|clog)\b|(?<![\w:.>])(std::)?(printf|puts|exit)\s*\(")
    inside = [f for f in product_sources() if layer_of(f) not in ("compress", "python")]
    assert [f for f in inside if speech.search(re.sub(r'//.*|"(\\.|[^"\\])*"', "", read(f)))] == []


def test_every_code_folder_tells_what_it_does_in_40_lines():
    folders = {layer_of(f) for f in product_sources()} - {None}
    lengths = {f: len(read(f"{f}/README.md").splitlines()) if (ROOT / f / "README.md").exists() else None for f in folders}
    assert {f: n for f, n in lengths.items() if n is None or n > 40} == {}


def test_folders_of_more_than_three_files_have_a_readme():
    """Rows of a kernel kind do not count: kernels/README.md tells what they are."""
    rows = re.compile(r"/(x86|arm)_\w+\.cpp$|/scalar\.cpp$|/kernels\.def$")
    code = [f for f in files() if f.split("/")[0] in set(PRODUCT) - {"configs"} and not rows.search(f)]
    count = collections.Counter(str(pathlib.PurePath(f).parent) for f in code if not f.endswith((".md", "CMakeLists.txt")))
    large = [*(folder for folder, n in count.items() if n > 3), "tests"]
    assert len(large) > 15
    lengths = {f: len(read(f"{f}/README.md").splitlines()) if (ROOT / f / "README.md").exists() else None for f in large}
    assert {f: n for f, n in lengths.items() if n is None or n > 40} == {}


def test_no_test_file_is_longer_than_400_lines():
    tests = [f for f in files() if f.startswith("tests/") and f.endswith((".cpp", ".h", ".py"))]
    assert {f: n for f in tests if (n := len(read(f).splitlines())) > 400} == {}


def test_no_product_file_is_longer_than_400_lines():
    tables = (".def", ".json", ".ipynb")
    product = [f for f in files() if f.split("/")[0] in PRODUCT and pathlib.PurePath(f).suffix in TEXT and not f.endswith(tables)]
    assert {f: n for f in product if (n := len(read(f).splitlines())) > 400} == {}


def snake(name) -> str:
    return re.sub(r"(?<!^)(?=[A-Z][a-z])", "_", name).lower()


def test_every_operator_has_its_file_and_its_test():
    operators = re.findall(r"^CTK_OP\((\w+)\)", read("graph/ops.def"), re.M)
    assert len(operators) > 50
    wanted = [place for op in operators for place in (f"graph/ops/{snake(op)}.cpp", f"tests/graph/ops/{snake(op)}_test.cpp")]
    assert [place for place in wanted if not (ROOT / place).exists()] == []


def test_every_kernel_kind_is_tested():
    kinds = [f.split("/")[1] for f in files() if re.fullmatch(r"kernels/\w+/kernels\.def", f)]
    tests = "\n".join(read(f) for f in sources("tests") if f.startswith("tests/kernels/"))
    assert len(kinds) > 5
    assert [kind for kind in kinds if f'#include "kernels/{kind}/' not in tests] == []


def test_isa_objects_hand_no_code_to_the_rest_of_the_program():
    """A weak symbol compiled for AVX could be the copy the linker keeps for everybody, and crash older processors."""
    objects = [*sorted((ROOT / "build/release").rglob("x86_*.cpp.o")), *sorted((ROOT / "build/aarch64").rglob("arm_*.cpp.o"))]
    if not objects or not shutil.which("nm"):
        pytest.skip("no objects in build/release, or no nm")
    listed = subprocess.run(["nm", "-C", "--defined-only", "-A", *map(str, objects)], capture_output=True, text=True, check=True).stdout
    weak = [line.replace(str(ROOT), "") for line in listed.splitlines() if re.search(r":\S* [VWvwu] ", line)]
    assert weak == []


def test_sources_are_formatted():
    binary = next(iter((ROOT / ".venv/lib").glob("python3*/site-packages/clang_format/data/bin/clang-format")), None)
    if binary is None:
        pytest.skip("no clang-format in .venv")
    formatted = [f for f in files() if f.endswith((".h", ".cpp", ".c"))]
    done = subprocess.run([binary, "--dry-run", "-Werror", *formatted], cwd=ROOT, capture_output=True, text=True)
    assert sorted({line.split(":")[0] for line in done.stderr.splitlines() if "clang-format-violations" in line}) == []
