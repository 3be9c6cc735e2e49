#include <cstdlib>
#include <filesystem>

#include "graph/hf/read.h"
#include "graph/onnx/read.h"
#include "graph/passes/passes.h"
#include "tests/train/trainer.h"

namespace ctk::test {
namespace {

struct Model {
  const char* path;
  Shape input;  // empty: tokens
};

class TrainModels : public testing::TestWithParam<Model> {};

// Float agreement on every model of the shared data, as read (batch normalizations in it) and cleaned up.
TEST_P(TrainModels, GiveWhatOurExecutorGives) {
  CTK_NEED_TRAINER(trainer);
  const char* data = std::getenv("CTK_DATA");
  if (data == nullptr) GTEST_SKIP() << "CTK_DATA names no folder";
  const std::string path = std::string(data) + "/" + GetParam().path;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  auto graph = graph::hf::is_checkpoint(path) ? graph::hf::read_hf(path) : graph::onnx::read_model(path);
  ASSERT_TRUE(graph) << graph.error().message;
  std::vector<Tensor> inputs;
  if (GetParam().input.empty()) {
    Ints tokens;
    for (std::int64_t i = 0; i < 48; ++i) tokens.push_back((i * 37 + 11) % 512);
    inputs.push_back(Tensor::of<std::int64_t>({1, 48}, tokens));
  } else {
    inputs.push_back(varied(GetParam().input, 9));
  }
  EXPECT_LE(disagreement(*trainer, *graph, inputs), 1e-4);
  ASSERT_TRUE(graph::run_passes(*graph));
  EXPECT_LE(disagreement(*trainer, *graph, inputs), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(All, TrainModels,
                         testing::Values(Model{"cifar10/resnet20_cifar10.onnx", {4, 3, 32, 32}},
                                         Model{"cifar10/resnet20_cifar10_jpeg.onnx", {4, 3, 32, 32}},
                                         Model{"cifar10/resnet56_cifar10_jpeg.onnx", {4, 3, 32, 32}},
                                         Model{"kws/kws_dscnn.onnx", {4, 1, 49, 10}},
                                         Model{"imagenet100/mobilenet_v2_imagenet.onnx", {1, 3, 224, 224}},
                                         Model{"tiny/ic_resnet8.onnx", {4, 3, 32, 32}},
                                         Model{"tiny/vww_mobilenet025.onnx", {1, 3, 96, 96}},
                                         Model{"tiny/ad_autoencoder.onnx", {4, 640}}, Model{"stories260k", {}}),
                         [](const auto& info) {
                           std::string name = std::filesystem::path(info.param.path).stem().string();
                           return name;
                         });

}  // namespace
}  // namespace ctk::test
