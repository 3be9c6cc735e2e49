"""torchrun with the Python module of the build under test, for tests of several processes."""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

import pytest
from conftest import ROOT


def package(folder: pathlib.Path) -> pathlib.Path:
    """A folder for PYTHONPATH with the module of the program under test; skips where it or LibTorch is missing."""
    pytest.importorskip("torch.distributed")
    build = pathlib.Path(os.environ.get("CTK_COMPRESS", ROOT / "build/release/bin/compress")).resolve().parent.parent
    built = [*(build / "python/compress").glob("_core*.so"), build / "bin/libctk_train.so", build / "bin/libctk_cbc.so"]
    if len(built) < 3 or not all(path.exists() for path in built):
        pytest.skip("the build has no Python module or no trainer")
    home = folder / "site/compress"
    shutil.copytree(ROOT / "python/compress", home)
    for path in built:
        shutil.copy(path, home)  # a link would be followed to where nothing lies beside it
    return home.parent


def environment(site: pathlib.Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}


def torchrun(site: pathlib.Path, size: int, *words, timeout=300, **kwargs) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={size}", "-m", "compress", *map(str, words)]
    return subprocess.run(command, env=environment(site), capture_output=True, text=True, timeout=timeout, **kwargs)


def alone(site: pathlib.Path, *words, timeout=300) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "compress", *map(str, words)], env=environment(site), capture_output=True, text=True, timeout=timeout)


def start_by_hand(site: pathlib.Path, words) -> list[subprocess.Popen]:
    """One process for each list of words, as torchrun would start it, but nobody ends the others when one dies."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    group = {"WORLD_SIZE": str(len(words)), "LOCAL_WORLD_SIZE": str(len(words)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return [subprocess.Popen([sys.executable, "-m", "compress", *map(str, mine)], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env={**environment(site), **group, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank, mine in enumerate(words)]


def by_hand(site: pathlib.Path, words, timeout=120) -> list[tuple[int, str, str]]:
    children = start_by_hand(site, words)
    told = [child.communicate(timeout=timeout) for child in children]
    return [(child.returncode, *texts) for child, texts in zip(children, told)]


def wait_for(is_there, seconds=60) -> None:
    end = time.monotonic() + seconds
    while not is_there():
        assert time.monotonic() < end
        time.sleep(0.002)
