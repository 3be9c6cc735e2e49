"""A step of distillation: our trainer beside the same loop in PyTorch, in turn, processor time of each step.

Usage: python tests/bench/train_step.py TRAIN_BENCH [--steps 6] [--rounds 3] [--threads 1]
ResNet-20 with batch normalizations learns from ResNet-56, whose normalizations are folded on both sides; batch 128,
T 4, alpha 0.9, SGD with Nesterov momentum. TRAIN_BENCH is the program of train_bench.cpp. Models from CTK_DATA.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("CTK_DATA", ROOT / "../shared/data")).resolve() / "cifar10"


def peer(steps, batch, threads):
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.set_num_threads(threads)

    def conv(inside, outside, kernel, stride, norm):
        layer = nn.Conv2d(inside, outside, kernel, stride, kernel // 2, bias=not norm)
        return nn.Sequential(layer, nn.BatchNorm2d(outside)) if norm else layer

    class Block(nn.Module):
        def __init__(self, inside, outside, stride, norm):
            super().__init__()
            self.first = conv(inside, outside, 3, stride, norm)
            self.second = conv(outside, outside, 3, 1, norm)
            self.shortcut = nn.Identity() if inside == outside else conv(inside, outside, 1, stride, norm)

        def forward(self, x):
            return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))

    def resnet(blocks, norm):
        layers, inside = [conv(3, 16, 3, 1, norm), nn.ReLU()], 16
        for outside in (16, 32, 64):
            for _ in range(blocks):
                layers.append(Block(inside, outside, 1 if inside == outside else 2, norm))
                inside = outside
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))

    torch.manual_seed(0)
    student, teacher = resnet(3, True).train(), resnet(9, False).eval()
    optimizer = torch.optim.SGD(student.parameters(), 0.02, momentum=0.9, nesterov=True)
    x, y = torch.rand(batch, 3, 32, 32) * 4 - 2, torch.arange(batch) % 10
    rows = []
    for _ in range(steps):
        images, labels = x.clone(), y.clone()
        with torch.no_grad():
            wanted = F.log_softmax(teacher(images) / 4, 1)
        logits = student(images)
        soft = F.kl_div(F.log_softmax(logits / 4, 1), wanted, reduction="batchmean", log_target=True) * 16
        loss = 0.9 * soft + 0.1 * F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        use = resource.getrusage(resource.RUSAGE_SELF)
        rows.append((use.ru_utime + use.ru_stime, time.perf_counter(), use.ru_minflt))
    cpu, wall, faults = ([b[i] - a[i] for a, b in zip(rows, rows[1:])] for i in range(3))
    print(json.dumps({"cpu": cpu, "wall": wall, "faults": faults, "peak_mb": use.ru_maxrss // 1024}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if options.bench == "peer":
        return peer(options.steps, 128, options.threads)
    models = [str(DATA / f"resnet{depth}_cifar10_jpeg.onnx") for depth in (20, 56)]
    commands = {
        "ours": [options.bench, *models, str(options.steps), "128", str(options.threads)],
        "PyTorch": [sys.executable, __file__, "peer", "--steps", str(options.steps), "--threads", str(options.threads)],
    }
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    found = {name: [] for name in commands}
    for _ in range(options.rounds):
        for name, command in commands.items():
            run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
            found[name].append(json.loads(run.stdout))
    medians = {}
    for name, runs in found.items():
        middle = {key: statistics.median(v for run in runs for v in run[key]) for key in ("cpu", "wall", "faults")}
        medians[name] = middle["cpu"]
        least = min(v for run in runs for v in run["cpu"])
        print(
            f"{name:8s} {middle['cpu']:.3f} s of processor time a step (least {least:.3f}), {middle['wall']:.3f} s, "
            f"{middle['faults']:.0f} page faults, {max(run['peak_mb'] for run in runs)} MB"
        )
    print(f"speed of ours / PyTorch's: {medians['PyTorch'] / medians['ours']:.2f}")


if __name__ == "__main__":
    main()
