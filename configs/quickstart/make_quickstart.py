"""Make the quickstart's two files, beside this script: digits.npz (data) and digits_cnn.onnx (trained model).

In:  the 1,797 handwritten digits that scikit-learn ships (8x8, values 0..16); no network.
Out: digits.npz       x uint8 [1797, 1, 8, 8] (0..16), y int64 [1797], shuffled once; the last 500 are the test part.
     digits_cnn.onnx  image float32 [N, 1, 8, 8] (x / 16) -> logits float32 [N, 10], opset 17, BatchNormalization kept.
Cost: about a minute on one core. Seeded: the same machine and package versions give the same bytes.
Needs torch, scikit-learn, onnx and onnxruntime; running the quickstart needs none of them.
"""

import math
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from torch import nn

HERE = Path(__file__).resolve().parent
SEED = 0
TEST_COUNT = 500
EPOCHS = 40
BATCH_SIZE = 32
WIDTH = 32  # Channels of every layer: a multiple of 32, so that schemes with groups of 32 are legal.
MAX_ONNX_DIFF = 1e-4  # ONNX Runtime against torch: float32 sums in another order, logits of magnitude 10.
MIN_TEST_ACCURACY = 0.98
MAX_MODEL_BYTES = 150_000


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)

    x, y = shuffled_digits()
    np.savez_compressed(HERE / "digits.npz", x=x, y=y)

    image, label = torch.from_numpy(x).float() / 16, torch.from_numpy(y)
    model = DigitsCnn()
    train(model, image[:-TEST_COUNT], label[:-TEST_COUNT])

    path = HERE / "digits_cnn.onnx"
    path.write_bytes(to_onnx(model).SerializeToString(deterministic=True))
    check(path, model, image[-TEST_COUNT:], label[-TEST_COUNT:])


def shuffled_digits():
    """Return x uint8 [1797, 1, 8, 8] and y int64 [1797] in one fixed order; no picture occurs twice."""
    digits = load_digits()
    order = np.random.default_rng(SEED).permutation(len(digits.target))
    x = digits.images[order, None].astype(np.uint8)
    y = digits.target[order].astype(np.int64)
    # Were a picture there twice, it could stand in the train and the test part at once.
    assert len(np.unique(x.reshape(len(x), -1), axis=0)) == len(x), "digits: a picture occurs twice; remove it first."
    return x, y


class Block(nn.Module):
    """Conv-BN-Relu-Conv-BN plus the skip, Relu. kernel2 is the second convolution's; a stride of 2 puts a 1x1 Conv-BN
    on the skip."""

    def __init__(self, kernel2, stride=1, groups=1):
        super().__init__()
        self.conv1 = nn.Conv2d(WIDTH, WIDTH, 3, stride, padding=1, groups=groups, bias=False)
        self.bn1 = nn.BatchNorm2d(WIDTH)
        self.conv2 = nn.Conv2d(WIDTH, WIDTH, kernel2, padding=kernel2 // 2, bias=False)
        self.bn2 = nn.BatchNorm2d(WIDTH)
        self.shortcut = None
        if stride > 1:
            self.shortcut = nn.ModuleDict(
                {"conv": nn.Conv2d(WIDTH, WIDTH, 1, stride, bias=False), "bn": nn.BatchNorm2d(WIDTH)}
            )

    def forward(self, x):
        skip = x if self.shortcut is None else self.shortcut["bn"](self.shortcut["conv"](x))
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + skip)


class DigitsCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.ModuleDict(
            {"conv": nn.Conv2d(1, WIDTH, 3, padding=1, bias=False), "bn": nn.BatchNorm2d(WIDTH)}
        )
        self.blocks = nn.ModuleDict(
            {
                "block1": Block(kernel2=3),                # [32, 8, 8]
                "block2": Block(kernel2=1, groups=WIDTH),  # [32, 8, 8], depthwise then pointwise
                "block3": Block(kernel2=1, stride=2),      # [32, 4, 4]
                "block4": Block(kernel2=1, groups=WIDTH),  # [32, 4, 4], depthwise then pointwise
            }
        )
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x):
        x = F.relu(self.stem["bn"](self.stem["conv"](x)))
        for block in self.blocks.values():
            x = block(x)
        x = F.max_pool2d(x, 2)
        return self.head(x.mean((2, 3)))


def train(model, image, label):
    """Train in place: AdamW, one learning-rate cycle, pictures shifted, turned and scaled a little every time."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.02)
    step_count = EPOCHS * math.ceil(len(image) / BATCH_SIZE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=step_count)
    model.train()
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(image)).split(BATCH_SIZE):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(augmented(image[batch])), label[batch], label_smoothing=0.05)
            loss.backward()
            optimizer.step()
            schedule.step()
    model.eval()


def augmented(image):
    """Shift by up to one pixel, turn by up to 10 degrees, scale by up to 10 %. image: float32 [n, 1, 8, 8]."""

    def uniform(bound):
        return (torch.rand(len(image)) * 2 - 1) * bound

    angle, scale = uniform(math.radians(10)), 1 + uniform(0.1)
    pixel = 2 / image.shape[-1]  # affine_grid spans the picture from -1 to 1.
    cos, sin = torch.cos(angle) * scale, torch.sin(angle) * scale
    rows = [torch.stack([cos, -sin, uniform(pixel)], 1), torch.stack([sin, cos, uniform(pixel)], 1)]
    grid = F.affine_grid(torch.stack(rows, 1), list(image.shape), align_corners=False)
    return F.grid_sample(image, grid, align_corners=False)


class GraphWriter:
    """Collects ONNX nodes and weights. Every add_* takes its input's name and returns its output's name."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def add(self, op, name, inputs, output=None, **attributes):
        output = output or f"{name}.out"
        self.nodes.append(helper.make_node(op, inputs, [output], name=name, **attributes))
        return output

    def add_weight(self, name, tensor):
        self.weights.append(numpy_helper.from_array(tensor.detach().numpy(), name))
        return name

    def add_conv_bn(self, conv_name, bn_name, conv, bn, x):
        weight = self.add_weight(f"{conv_name}.weight", conv.weight)
        pads = [*conv.padding, *conv.padding]
        x = self.add("Conv", conv_name, [x, weight], kernel_shape=conv.kernel_size, strides=conv.stride, pads=pads,
                     dilations=conv.dilation, group=conv.groups)
        statistics = {"weight": bn.weight, "bias": bn.bias, "running_mean": bn.running_mean,
                      "running_var": bn.running_var}
        inputs = [x, *(self.add_weight(f"{bn_name}.{key}", value) for key, value in statistics.items())]
        return self.add("BatchNormalization", bn_name, inputs, epsilon=bn.eps)

    def add_block(self, name, block, x):
        skip = x
        if block.shortcut is not None:
            skip = self.add_conv_bn(f"{name}.shortcut.conv", f"{name}.shortcut.bn", block.shortcut["conv"],
                                    block.shortcut["bn"], x)
        x = self.add_conv_bn(f"{name}.conv1", f"{name}.bn1", block.conv1, block.bn1, x)
        x = self.add("Relu", f"{name}.relu1", [x])
        x = self.add_conv_bn(f"{name}.conv2", f"{name}.bn2", block.conv2, block.bn2, x)
        x = self.add("Add", f"{name}.add", [x, skip])
        return self.add("Relu", f"{name}.relu2", [x])


def to_onnx(model):
    """Write the model node by node, so that nothing is folded and every name is the module's."""
    graph = GraphWriter()
    x = graph.add_conv_bn("stem.conv", "stem.bn", model.stem["conv"], model.stem["bn"], "image")
    x = graph.add("Relu", "stem.relu", [x])
    for name, block in model.blocks.items():
        x = graph.add_block(name, block, x)
    x = graph.add("MaxPool", "pool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = graph.add("GlobalAveragePool", "average", [x])
    x = graph.add("Flatten", "flatten", [x], axis=1)
    weight, bias = graph.add_weight("head.weight", model.head.weight), graph.add_weight("head.bias", model.head.bias)
    graph.add("Gemm", "head", [x, weight, bias], output="logits", transB=1)

    inputs = [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 10])]
    # IR version 8 is the one that came with opset 17: older readers take it too.
    return helper.make_model(helper.make_graph(graph.nodes, "digits_cnn", inputs, outputs, graph.weights),
                             opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                             producer_name="make_quickstart")


def check(path, model, image, label):
    """Assert that the file is valid ONNX, small, computes what torch does, and is accurate on the test part."""
    onnx.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (logits,) = session.run(["logits"], {"image": image.numpy()})
    with torch.no_grad():
        diff = np.abs(logits - model(image).numpy()).max()
    correct = int((logits.argmax(1) == label.numpy()).sum())
    parameters = sum(p.numel() for p in model.parameters())
    print(f"digits.npz {(HERE / 'digits.npz').stat().st_size} bytes, {path.name} {path.stat().st_size} bytes, "
          f"{parameters} parameters")
    print(f"test accuracy {correct}/{len(label)} = {correct / len(label):.3f}, "
          f"onnxruntime against torch: largest difference {diff:.1e}")
    assert diff < MAX_ONNX_DIFF, f"logits differ by {diff}"
    assert correct >= MIN_TEST_ACCURACY * len(label), "test accuracy below the floor"
    assert path.stat().st_size < MAX_MODEL_BYTES, "model file too large"


if __name__ == "__main__":
    main()
