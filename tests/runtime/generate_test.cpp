// Reading a text token by token gives what running the whole sequence gives.
#include "runtime/generate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/parallel.h"
#include "tests/support/tiny_decoder.h"

namespace ctk::runtime {
namespace {

using kernels::CacheForm;
using Ids = std::vector<std::int64_t>;

Ids text(std::size_t count, std::uint64_t seed = 1) {
  Random random(seed, "text");
  Ids ids(count);
  for (auto& id : ids) id = static_cast<std::int64_t>(random.below(37));
  return ids;
}

// Logits behind the last token, by the graph as it was built, run over all of them.
std::vector<float> whole(const Ids& ids) {
  const graph::Graph graph = test::tiny_decoder();
  const Tensor input = Tensor::of<std::int64_t>({1, static_cast<std::int64_t>(ids.size())}, ids);
  auto executor = CpuExecutor::create(graph, {input.shape()});
  EXPECT_TRUE(executor.has_value());
  const auto outputs = (*executor)->run(std::span(&input, 1));
  EXPECT_TRUE(outputs.has_value());
  const auto logits = (*outputs)[0].values<float>();
  return {logits.end() - 37, logits.end()};
}

std::unique_ptr<Generator> make(GenerateOptions options = {}) {
  auto made = Generator::create(test::tiny_decoder(), options);
  EXPECT_TRUE(made.has_value()) << made.error().message;
  return std::move(*made);
}

std::vector<float> copy(const Result<std::span<const float>>& logits) {
  EXPECT_TRUE(logits.has_value()) << logits.error().message;
  return {logits->begin(), logits->end()};
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double{a[i]} - double{b[i]}));
  return most;
}

double largest(const std::vector<float>& a) {
  double most = 0;
  for (float x : a) most = std::max(most, std::abs(double{x}));
  return most;
}

// Relative to the largest logit: float caches add the same numbers in the same order; halves carry 2^-11 of each key
// and value, codes 1/254 of the largest of a head, through two layers.
struct Form {
  CacheForm form;
  double bound;
};
constexpr Form kForms[] = {{CacheForm::f32, 1e-5}, {CacheForm::f16, 4e-3}, {CacheForm::i8, 4e-2}};

TEST(Generator, AppendedTokensGiveTheLogitsOfTheWholeText) {
  const Ids ids = text(40);
  for (const Form& form : kForms) {
    GenerateOptions options;
    options.cache = form.form;
    const auto generator = make(options);
    std::vector<float> got = copy(generator->read(std::span(ids).first(5)));
    for (std::size_t i = 5; i < ids.size(); ++i) {
      const std::vector<float> want = whole({ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(i)});
      EXPECT_LE(largest_difference(got, want), form.bound * largest(want)) << i << " tokens, form " << int(form.form);
      got = copy(generator->append(ids[i]));
    }
  }
}

TEST(Generator, ChunksAndThreadsChangeNoBit) {
  const Ids ids = text(50);
  for (const Form& form : kForms) {
    std::vector<float> first;
    for (int threads : {1, 2}) {
      set_threads(threads);
      for (std::size_t chunk : {1u, 3u, 16u, 64u}) {
        GenerateOptions options;
        options.cache = form.form;
        options.chunk = chunk;
        const std::vector<float> got = copy(make(options)->read(ids));
        if (first.empty()) first = got;
        EXPECT_EQ(got, first) << "chunk " << chunk << ", threads " << threads << ", form " << int(form.form);
      }
    }
    set_threads(1);
  }
}

TEST(Generator, KeepsWhatTwoTextsBeginWith) {
  Ids first = text(30), second = text(30);
  second[20] = (first[20] + 1) % 37;
  const auto generator = make();
  copy(generator->read(first));
  EXPECT_EQ(generator->reused(), 0u);
  const std::vector<float> got = copy(generator->read(second));
  EXPECT_EQ(generator->reused(), 20u);
  EXPECT_EQ(got, copy(make()->read(second)));
  // All known: the last token is read again for its logits.
  EXPECT_EQ(copy(generator->read(second)), got);
  EXPECT_EQ(generator->reused(), 29u);
  // A beginning of what is known.
  EXPECT_EQ(copy(generator->read(std::span(second).first(10))), copy(make()->read(std::span(second).first(10))));
  EXPECT_EQ(generator->tokens().size(), 10u);
}

TEST(Generator, GoesBackToWhatATextBeganWith) {
  const Ids ids = text(24);
  auto generator = make({.context = 32, .cache = CacheForm::f32, .chunk = 8});
  EXPECT_EQ(generator->chunk_reader(), nullptr);
  ASSERT_TRUE(generator->read(ids));
  EXPECT_NE(generator->chunk_reader(), nullptr);
  generator->keep(10);
  EXPECT_EQ(Ids(generator->tokens().begin(), generator->tokens().end()), Ids(ids.begin(), ids.begin() + 10));
  const std::vector<float> again = copy(generator->append(ids[10]));
  auto fresh = make({.context = 32, .cache = CacheForm::f32, .chunk = 8});
  ASSERT_TRUE(fresh->read(Ids(ids.begin(), ids.begin() + 10)));
  EXPECT_EQ(again, copy(fresh->append(ids[10])));
  generator->keep(100);  // no more than there are
  EXPECT_EQ(generator->tokens().size(), 11u);
}

TEST(Generator, SlidesWhenFull) {
  const Ids ids = text(21);
  GenerateOptions options;
  options.context = 20;
  const auto generator = make(options);
  copy(generator->read(std::span(ids).first(20)));
  const std::vector<float> got = copy(generator->append(ids[20]));
  // The first token, the latest (20 - 1) / 2 = 9 of the rest, and the new one.
  Ids kept = {ids[0]};
  kept.insert(kept.end(), ids.begin() + 11, ids.end());
  EXPECT_EQ(Ids(generator->tokens().begin(), generator->tokens().end()), kept);
  EXPECT_EQ(got, copy(make(options)->read(kept)));
}

TEST(Generator, RunsOnForeverInTheLeastContext) {
  GenerateOptions options;
  options.context = 2;
  const auto generator = make(options);
  copy(generator->read(text(2)));
  for (std::int64_t id = 0; id < 10; ++id) copy(generator->append(id));
  EXPECT_EQ(generator->tokens().back(), 9);
}

TEST(Generator, CachesAreSizedByContextAndForm) {
  // 2 layers of keys and values of 2 heads of 8 for 32 tokens: 2 * 2 * 2 * 8 * 32 = 2048 elements; codes have a scale
  // for each head and token beside them.
  GenerateOptions options;
  options.context = 32;
  options.cache = CacheForm::f32;
  EXPECT_EQ(make(options)->cache_bytes(), 2048u * 4);
  options.cache = CacheForm::f16;
  EXPECT_EQ(make(options)->cache_bytes(), 2048u * 2);
  options.cache = CacheForm::i8;
  EXPECT_EQ(make(options)->cache_bytes(), 2048u + 2 * 2 * 2 * 32 * 4);
}

TEST(Generator, RefusesTextsItCannotRead) {
  GenerateOptions options;
  options.context = 8;
  const auto generator = make(options);
  const auto message = [&](const Ids& ids) {
    const auto read = generator->read(ids);
    return read ? std::string() : read.error().message;
  };
  EXPECT_NE(message({}).find("expected a text of one token or more, found none"), std::string::npos);
  EXPECT_NE(message(text(9)).find("expected a text of at most 8 tokens, the context, found 9"), std::string::npos);
  EXPECT_NE(message({3, 37}).find("expected token ids below 37, the model's vocabulary, found 37"), std::string::npos);
  EXPECT_NE(message({-1}).find("found -1"), std::string::npos);
  EXPECT_EQ(message({3, 36}), "");
}

TEST(Generator, RefusesAContextTheModelHasNoPositionsFor) {
  GenerateOptions options;
  options.context = 65;
  const auto made = Generator::create(test::tiny_decoder(), options);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, ErrorCode::config);
  EXPECT_NE(made.error().message.find("expected from 2 to 64 tokens"), std::string::npos) << made.error().message;
}

TEST(Generator, RefusesGraphsThatAreNoLanguageModel) {
  graph::Graph graph;
  const graph::ValueId x = graph.add_value("x", DType::f32, graph::DeclaredShape{{1, ""}, {3, ""}});
  graph.add_input(x);
  graph::Node node;
  node.op_type = "Relu";
  node.inputs = {x};
  node.outputs = {graph.add_value("y", DType::f32)};
  graph.add_output(node.outputs[0]);
  graph.add_node(std::move(node));
  const auto made = Generator::create(std::move(graph), {});
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, ErrorCode::input);
  EXPECT_NE(made.error().message.find("expected a language model"), std::string::npos);
  EXPECT_NE(made.error().message.find("found input \"x\" f32 [1,3]"), std::string::npos) << made.error().message;
}

}  // namespace
}  // namespace ctk::runtime
