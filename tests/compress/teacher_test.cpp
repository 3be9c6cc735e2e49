#include "compress/teacher.h"

#include <gtest/gtest.h>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

using graph::Graph;
using pipeline::pair_features;

// x [N, 3, 8, 8] -> `blocks` convolutions of `channels` with Relu, then one of half the size -> mean -> classes.
Graph net(std::int64_t channels, int blocks) {
  GraphBuilder b;
  auto h = b.input("x", {-1, 3, 8, 8});
  std::int64_t from = 3;
  for (int i = 0; i < blocks; ++i) {
    const std::string name = std::to_string(i);
    h = b.node("Conv", {h, b.constant("w" + name, varied({channels, from, 3, 3}, 3))}, "c" + name,
               {{"pads", Ints{1, 1, 1, 1}}});
    h = b.node("Relu", {h}, "r" + name);
    from = channels;
  }
  h = b.node("Conv", {h, b.constant("down", varied({channels, channels, 2, 2}, 4))}, "d", {{"strides", Ints{2, 2}}});
  h = b.node("Flatten", {b.node("GlobalAveragePool", {h}, "g")}, "f");
  b.output(b.node("MatMul", {h, b.constant("head", varied({channels, 4}, 5))}, "y"));
  return std::move(b.graph);
}

std::vector<std::string> names_of(const Graph& student, const Graph& teacher,
                                  const std::vector<train::FeaturePair>& pairs) {
  std::vector<std::string> names;
  for (const train::FeaturePair& pair : pairs)
    names.push_back(student.value(pair.student).name + "=" + teacher.value(pair.teacher).name);
  return names;
}

const std::vector<Shape> kShapes = {{1, 3, 8, 8}};

TEST(Teacher, PairsAreFoundByNameOfValueOrNode) {
  const Graph student = net(4, 1), teacher = net(6, 2);
  const auto pairs = pair_features(student, teacher, kShapes, {"r0 = Relu_r1", "d=d"}, "k");
  ASSERT_TRUE(pairs) << pairs.error().message;
  EXPECT_EQ(names_of(student, teacher, *pairs), (std::vector<std::string>{"r0=r1", "d=d"}));
}

// Of each resolution as many as both have, the last with the last: at 8x8 the student's two of [c0, r0] stand at halves
// of the teacher's [c0, r0, c1, r1]; at 4x4 both have d; where the mean is taken g (1x1) and f (no places).
TEST(Teacher, AutoPairsWhatStandsAsFarAlong) {
  const Graph student = net(4, 1), teacher = net(6, 2);
  const auto pairs = pair_features(student, teacher, kShapes, {"auto"}, "k");
  ASSERT_TRUE(pairs) << pairs.error().message;
  EXPECT_EQ(names_of(student, teacher, *pairs), (std::vector<std::string>{"f=f", "g=g", "d=d", "c0=r0", "r0=r1"}));
}

TEST(Teacher, PairsThatCannotBeAreToldBeforeAnyWork) {
  const Graph student = net(4, 1), teacher = net(6, 2);
  const auto says = [&](const std::string& text, const std::string& words) {
    const auto pairs = pair_features(student, teacher, kShapes, {text}, "stages.distill.features");
    ASSERT_FALSE(pairs) << text;
    EXPECT_EQ(pairs.error().code, ErrorCode::config);
    EXPECT_NE(pairs.error().message.find(words), std::string::npos) << pairs.error().message;
    EXPECT_TRUE(pairs.error().message.starts_with("stages.distill.features: ")) << pairs.error().message;
  };
  says("r1 = r1", "expected a value or node of the student, found \"r1\"");
  says("r0 = r7", "expected a value or node of the teacher, found \"r7\"");
  says("r0 = d", "expected values of the same places, channels aside, found [1,4,8,8] and [1,6,4,4]");
  says("r0", "expected \"student value = teacher value\" or auto alone, found \"r0\"");
}

}  // namespace
}  // namespace ctk::test
