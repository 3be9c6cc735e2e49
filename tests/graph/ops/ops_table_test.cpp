// Walks ops.def: a row without rules, without a test file, or that falls over on hostile input, fails here.
#include <array>
#include <cctype>
#include <filesystem>

#include "core/random.h"
#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

struct Row {
  Op op;
  const char* name;
};
constexpr Row kRows[] = {
#define CTK_OP(name) {Op::name, #name},
#include "graph/ops.def"
#undef CTK_OP
};

// "LeakyRelu" -> "leaky_relu", "RMSNormalization" -> "rms_normalization": a capital before a small letter starts a
// word.
std::string snake_case(const std::string& name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto is_small = [&](std::size_t at) {
      return at < name.size() && std::islower(static_cast<unsigned char>(name[at])) != 0;
    };
    if (!is_small(i) && is_small(i + 1) && !out.empty()) out += '_';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return out;
}

class OpsTable : public testing::TestWithParam<Row> {};

TEST_P(OpsTable, HasRulesThatInferAndEvaluate) {
  const OpRules& rules = rules_of(GetParam().op);
  EXPECT_NE(rules.infer, nullptr);
  EXPECT_NE(rules.evaluate, nullptr);
  EXPECT_GE(rules.min_inputs, 0);
  EXPECT_TRUE(rules.max_inputs == -1 || rules.max_inputs >= rules.min_inputs);
  EXPECT_EQ(name_of(GetParam().op), GetParam().name);
  EXPECT_EQ(op_from_type("", GetParam().name), GetParam().op);
  EXPECT_EQ(op_from_type("some.other.domain", GetParam().name), Op::unknown);
}

TEST_P(OpsTable, HasItsOwnSourceAndTestFile) {
  const std::filesystem::path root = CTK_SOURCE_DIR;
  const std::string stem = snake_case(GetParam().name);
  EXPECT_TRUE(std::filesystem::exists(root / "graph/ops" / (stem + ".cpp"))) << stem;
  EXPECT_TRUE(std::filesystem::exists(root / "tests/graph/ops" / (stem + "_test.cpp"))) << stem;
}

// Any number of inputs of any type and shape, known or not, with attributes from anywhere: an error or an answer, and
// an answer's shapes can be counted.
TEST_P(OpsTable, SurvivesRandomForms) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  constexpr std::array<std::int64_t, 12> kDims = {0, 1, 1, 1, 2, 2, 3, 4, 7, -1, kHuge, std::int64_t{1} << 31};
  constexpr std::array<DType, 10> kTypes = {DType::f32, DType::f32, DType::f32, DType::i64,     DType::i64,
                                            DType::i32, DType::u8,  DType::i4,  DType::boolean, DType::string};
  constexpr const char* kLists[] = {"pads", "strides",        "dilations",    "kernel_shape", "perm",
                                    "axes", "output_padding", "output_shape", "split",        "value_ints"};
  constexpr const char* kNumbers[] = {"axis",      "group", "transA",     "transB",       "keepdims",
                                      "ceil_mode", "to",    "block_size", "output_dtype", "num_outputs",
                                      "allowzero", "start", "end",        "value_int"};
  constexpr const char* kTexts[] = {"auto_pad", "mode", "approximate", "coordinate_transformation_mode"};
  constexpr const char* kWords[] = {"SAME_UPPER", "SAME_LOWER", "VALID", "constant", "edge", "reflect", "linear", ""};
  constexpr std::uint64_t kSeed = 20240607;
  Random random(kSeed, GetParam().name);
  const auto pick = [&](const auto& list) { return list[random.below(std::size(list))]; };
  for (int round = 0; round < 3000; ++round) {
    std::vector<InferInput> inputs(random.below(6));
    std::vector<Tensor> tensors(inputs.size());
    for (InferInput& input : inputs) {
      if (random.below(12) == 0) continue;
      Shape shape(random.below(5));
      for (std::int64_t& dim : shape) dim = pick(kDims);
      const DType dtype = pick(kTypes);
      input = unknown(dtype, shape);
      const auto count = element_count(shape);
      if (dtype == DType::string || !count || *count > 64 || random.below(3) == 0) continue;
      Tensor tensor = Tensor::zeros(dtype, shape).value();
      if (dtype == DType::i64) {
        for (std::int64_t& value : tensor.mutable_values<std::int64_t>()) value = pick(kDims);
      }
      input.info.constant = tensor;
    }
    AttributeList attributes;
    for (std::uint64_t i = random.below(5); i > 0; --i) {
      Ints list(random.below(5));
      for (std::int64_t& value : list) value = pick(kDims);
      switch (random.below(3)) {
        case 0:
          attributes.push_back({pick(kLists), list});
          break;
        case 1:
          attributes.push_back({pick(kNumbers), pick(kDims)});
          break;
        default:
          attributes.push_back({pick(kTexts), std::string(pick(kWords))});
      }
    }
    const std::size_t outputs = 1 + random.below(3);
    const auto infos = infer_op(GetParam().name, inputs, attributes, outputs);
    if (!infos) {
      EXPECT_FALSE(infos.error().message.empty());
      continue;
    }
    for (const ValueInfo& info : *infos) {
      ASSERT_TRUE(element_count(info.shape).has_value()) << "seed " << kSeed << ", round " << round;
      if (info.constant) {
        EXPECT_EQ(info.constant->shape(), info.shape);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, OpsTable, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ctk::graph::test
