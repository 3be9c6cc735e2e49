// Weights are held once: packed, and neither read nor kept in memory as the file has them afterwards.
#include "runtime/packed_weights.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/file.h"
#include "core/quant_tensor.h"
#include "graph/floats.h"
#include "runtime/cpu_executor.h"
#include "tests/support/graph_builder.h"

namespace ctk::runtime {
namespace {

using graph::ValueId;
using test::GraphBuilder;

constexpr std::int64_t kChannels = 512, kReduction = 2048;  // 1 MB of codes of 8 bits

// y = x W^T with the weight at `bytes`, which the graph borrows: f32, bf16, or codes of a scheme.
graph::Graph product(const std::string& form, const void* bytes, std::shared_ptr<const void> owner) {
  GraphBuilder b;
  const ValueId x = b.input("x", {-1, kReduction});
  const Shape shape{kChannels, kReduction};
  const bool is_coded = form[0] == 'w';
  const QuantScheme scheme = is_coded ? parse_scheme(form).value() : QuantScheme{};
  ValueId w;
  if (is_coded) {
    QuantTensor coded;
    coded.scheme = scheme;
    coded.codes = Tensor::borrowed(code_dtype(scheme.weight_bits), shape, bytes, std::move(owner));
    coded.scales.assign(kChannels * groups_of(shape, 0, scheme), 0.0078125f);
    coded.method = "test";
    w = b.graph.add_value("w", DType::f32, GraphBuilder::declared(shape));
    b.graph.value(w).quantized = std::make_shared<const QuantTensor>(std::move(coded));
  } else {
    const DType held = form == "bf16" ? DType::bf16 : DType::f32;
    w = b.constant("w", Tensor::borrowed(held, shape, bytes, std::move(owner)));
    b.graph.value(w).dtype = DType::f32;
  }
  const ValueId y = b.node("Gemm", {x, w}, "y", {{"transB", std::int64_t{1}}});
  b.graph.node(b.graph.value(y).producer).scheme = scheme;
  if (scheme.is_integer_activation()) {
    b.graph.value(x).activation_quant = b.graph.value(y).activation_quant = ActivationQuant{0.05f, 128};
  }
  b.graph.add_output(y);
  return std::move(b.graph);
}

std::size_t weight_bytes(const std::string& form) {
  const std::size_t bits = form == "f32" ? 32 : form == "bf16" ? 16 : form[1] == '4' ? 4 : 8;
  return kChannels * kReduction * bits / 8;
}

// Bytes that are finite floats of either width, and codes of any.
std::string weight_of(const std::string& form) {
  std::string bytes(weight_bytes(form), '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 4 == 3 ? 0x3c : i * 7 % 61);
  return bytes;
}

class PackedWeightsOf : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Forms, PackedWeightsOf, testing::Values("w8a8_c", "w4a8_c", "w4a16_g32", "bf16", "f32"),
                         [](const auto& info) { return std::string(info.param); });

Result<std::vector<float>> run(CpuExecutor& executor, std::int64_t rows) {
  const Tensor x = test::varied({rows, kReduction});
  CTK_TRY(const auto outputs, executor.run(std::span(&x, 1)));
  return test::values_of(outputs[0]);
}

// Memory that can be taken away.
struct Guarded {
  explicit Guarded(const std::string& bytes) : size(bytes.size()) {
    memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(memory, bytes.data(), size);
  }
  Guarded(const Guarded&) = delete;
  ~Guarded() { ::munmap(memory, size); }
  void take_away() { ASSERT_EQ(::mprotect(memory, size, PROT_NONE), 0); }
  std::size_t size;
  void* memory;
};

TEST_P(PackedWeightsOf, ServeFurtherPlansWithoutTheWeight) {
  const std::string bytes = weight_of(GetParam());
  Guarded weight(bytes);
  const graph::Graph graph = product(GetParam(), weight.memory, nullptr);
  const auto packed = std::make_shared<PackedWeights>();
  const auto first = CpuExecutor::create(graph, {{3, kReduction}}, {{}, true, packed});
  ASSERT_TRUE(first) << first.error().message;
  weight.take_away();
  const auto second = CpuExecutor::create(graph, {{1, kReduction}}, {{}, true, packed});
  ASSERT_TRUE(second) << second.error().message;
  const auto three = run(**first, 3), one = run(**second, 1);
  ASSERT_TRUE(three && one);
  // varied() gives the first row of three what it gives one.
  EXPECT_TRUE(std::equal(one->begin(), one->end(), three->begin()));
  EXPECT_TRUE(std::any_of(one->begin(), one->end(), [](float y) { return y != 0.0f; }));
}

// Resident bytes of the mapping that begins at `address`.
std::size_t resident_bytes(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool is_ours = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      is_ours = begin == reinterpret_cast<std::uintptr_t>(address);
    std::size_t kilobytes = 0;
    if (is_ours && std::sscanf(line.c_str(), "Rss: %zu kB", &kilobytes) == 1) return kilobytes << 10;
  }
  ADD_FAILURE() << "no such mapping";
  return 0;
}

TEST_P(PackedWeightsOf, LeaveNothingOfTheMappedFileInMemory) {
  const std::string path = std::filesystem::temp_directory_path() / ("ctk_packed_" + std::to_string(::getpid()));
  ASSERT_TRUE(write_file(path, weight_of(GetParam())));
  const MappedFile file = MappedFile::open(path).value();
  std::filesystem::remove(path);
  std::size_t sum = 0;
  for (std::byte b : file.bytes()) sum += static_cast<std::size_t>(b);
  ASSERT_GT(sum, 0u);
  ASSERT_GE(resident_bytes(file.bytes().data()), file.bytes().size());
  const graph::Graph graph = product(GetParam(), file.bytes().data(), file.owner());
  const auto executor = CpuExecutor::create(graph, {{3, kReduction}});
  ASSERT_TRUE(executor) << executor.error().message;
  EXPECT_EQ(resident_bytes(file.bytes().data()), 0u);
}

}  // namespace
}  // namespace ctk::runtime
