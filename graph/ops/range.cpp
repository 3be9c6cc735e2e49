#include <cmath>

#include "graph/ops/movement.h"

namespace ctk::graph {
namespace {

constexpr std::int64_t kMaxCount = std::int64_t{1} << 48;

template <class T>
struct Progression {
  T start{}, limit{}, delta{};
};

template <class T, class Inputs>
Progression<T> read(const Inputs& at) {
  return {*static_cast<const T*>(at(0)), *static_cast<const T*>(at(1)), *static_cast<const T*>(at(2))};
}

// ceil((limit - start) / delta), at least 0. The differences of 64-bit numbers need one bit more.
template <class T>
Result<std::int64_t> count_integers(const Progression<T>& p) {
  if (p.delta == 0) return input_error("delta: expected a step other than 0, found 0");
  const __int128 span = static_cast<__int128>(p.limit) - p.start, delta = p.delta;
  if (span == 0 || (span > 0) != (delta > 0)) return std::int64_t{0};
  const __int128 steps = delta > 0 ? delta : -delta, length = span > 0 ? span : -span;
  const __int128 count = (length - 1) / steps + 1;
  if (count > kMaxCount) return input_error("expected at most 2^48 elements, found more");
  return static_cast<std::int64_t>(count);
}

Result<std::int64_t> count_floats(const Progression<float>& p) {
  if (!std::isfinite(p.start) || !std::isfinite(p.limit) || !std::isfinite(p.delta) || p.delta == 0.0f) {
    return input_error("expected finite start and limit and a step other than 0, found " + std::to_string(p.start) +
                       ", " + std::to_string(p.limit) + " and " + std::to_string(p.delta));
  }
  const double count = std::ceil((static_cast<double>(p.limit) - p.start) / p.delta);
  if (count > static_cast<double>(kMaxCount)) return input_error("expected at most 2^48 elements, found more");
  return count > 0 ? static_cast<std::int64_t>(count) : std::int64_t{0};
}

template <class T>
void fill_integers(const Progression<T>& p, const MutableTensorView& to) {
  const std::size_t count = to.size();
  for (std::size_t i = 0; i < count; ++i) {
    to.as<T>()[i] = static_cast<T>(p.start + static_cast<__int128>(i) * p.delta);
  }
}

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const auto at = [&](std::size_t i) { return inputs[i].data; };
  if (outputs[0].dtype == DType::i64) {
    fill_integers(read<std::int64_t>(at), outputs[0]);
  } else if (outputs[0].dtype == DType::i32) {
    fill_integers(read<std::int32_t>(at), outputs[0]);
  } else {
    const auto p = read<float>(at);
    const std::size_t count = outputs[0].size();
    for (std::size_t i = 0; i < count; ++i) outputs[0].as<float>()[i] = p.start + static_cast<float>(i) * p.delta;
  }
  return {};
}

InferResult infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 3));
  CTK_CHECK(expect_dtype(inputs, 0, "start", {DType::f32, DType::i32, DType::i64}));
  const DType dtype = inputs[0].info.dtype;
  for (std::size_t i = 0; i < 3; ++i) {
    CTK_CHECK(expect_dtype(inputs, i, i == 0 ? "start" : i == 1 ? "limit" : "delta", {dtype}));
    if (!is_known(inputs, i)) {
      return input_error(
          "shape depends on data: start, limit and delta must be known before the run. Make them constants");
    }
    if (inputs[i].info.constant->size() != 1) {
      return input_error("input " + std::to_string(i) + ": expected a scalar, found shape " +
                         to_string(inputs[i].info.shape));
    }
  }
  const auto at = [&](std::size_t i) { return inputs[i].info.constant->data(); };
  CTK_TRY(const std::int64_t count, dtype == DType::i64   ? count_integers(read<std::int64_t>(at))
                                    : dtype == DType::i32 ? count_integers(read<std::int32_t>(at))
                                                          : count_floats(read<float>(at)));
  CTK_TRY(auto outputs, single_output(dtype, {count}));
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

}  // namespace

const OpRules& rules_Range() {
  static constexpr OpRules kRules{OpKind::other, 3, 3, infer, evaluate};
  return kRules;
}

}  // namespace ctk::graph
