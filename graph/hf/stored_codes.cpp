#include "graph/hf/stored_codes.h"

#include <algorithm>
#include <cmath>

#include "core/printable.h"
#include "graph/hf/packed_words.h"

namespace ctk::graph::hf {

using ctk::to_string;

namespace {

constexpr const char* kDamaged = "Download the checkpoint again, or correct quantization_config";

class ModuleReader {
 public:
  ModuleReader(const Checkpoint& checkpoint, const CodeGroup& group, const std::string& module, const Shape& shape)
      : checkpoint_(checkpoint),
        group_(group),
        module_(module),
        shape_(shape),
        out_(static_cast<std::size_t>(shape[0])),
        in_(static_cast<std::size_t>(shape[1])),
        size_(group.group_size == 0 ? in_ : static_cast<std::size_t>(group.group_size)),
        groups_((in_ + size_ - 1) / size_),
        middle_(1 << (group.bits - 1)) {}

  Result<StoredCodes> read() {
    switch (group_.form) {
      case CodeForm::gptq:
        CTK_CHECK(read_gptq());
        break;
      case CodeForm::awq:
        CTK_CHECK(read_awq());
        break;
      case CodeForm::packed:
        CTK_CHECK(read_packed());
        break;
      case CodeForm::integers:
        CTK_CHECK(read_integers());
        break;
      case CodeForm::dense:
        CTK_CHECK(read_dense());
        break;
    }
    return std::move(result_);
  }

 private:
  Error wrong(const std::string& part, const std::string& expected, const std::string& found,
              const std::string& remedy = kDamaged) const {
    return input_error(checkpoint_.folder() + ": tensor \"" + printable(module_ + part) + "\": expected " + expected +
                       ", found " + found + ". " + remedy);
  }
  bool has(const std::string& part) const { return checkpoint_.find(module_ + part) != nullptr; }
  std::string bits() const { return std::to_string(group_.bits) + " bits"; }
  std::string by_config() const {
    return " by " + group_.key + " (" + bits() + ", " +
           (group_.is_tensor_wide    ? "one scale"
            : group_.group_size == 0 ? "a scale a row"
                                     : "groups of " + std::to_string(group_.group_size)) +
           ")";
  }

  // The tensor, which must be of one of the types and of one of the shapes.
  Result<Tensor> tensor(const std::string& part, const std::vector<DType>& types, const std::vector<Shape>& shapes) {
    const StoredTensor* stored = checkpoint_.find(module_ + part);
    if (stored == nullptr) return wrong(part, "one beside the other tensors of the layer", "none");
    if (!stored->dtype || std::ranges::find(types, *stored->dtype) == types.end()) {
      std::string names;
      for (DType type : types) names += (names.empty() ? "" : ", ") + std::string(name_of(type));
      return wrong(part, "type " + names, stored->type);
    }
    if (std::ranges::find(shapes, stored->shape) == shapes.end())
      return wrong(part, "shape " + to_string(shapes[0]) + by_config(), to_string(stored->shape));
    result_.tensors.push_back(module_ + part);
    return checkpoint_.tensor(module_ + part);
  }

  // Scales in the file's order, finite.
  Result<Tensor> scales(const std::string& part, const std::vector<Shape>& shapes) {
    CTK_TRY(const Tensor stored, tensor(part, {DType::f16, DType::bf16, DType::f32}, shapes));
    CTK_TRY(const Tensor floats, to_f32(stored));
    const auto is_bad = [](float v) { return !std::isfinite(v); };
    const auto values = floats.values<float>();
    if (const auto first = std::ranges::find_if(values, is_bad); first != values.end()) {
      return wrong(part, "finite scales",
                   std::to_string(std::ranges::count_if(values, is_bad)) + " NaN or infinite, the first at " +
                       std::to_string(first - values.begin()) + " of " + to_string(floats.shape()),
                   "Repair the checkpoint");
    }
    return floats;
  }

  Shape shape_of(std::size_t rows, std::size_t columns) const {
    return {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)};
  }

  // Rows of a file that run along inputs and groups, turned: [lines, out] -> [out, lines].
  template <class T>
  std::vector<T> turned(const std::vector<T>& from, std::size_t lines) const {
    std::vector<T> to(from.size());
    for (std::size_t l = 0; l < lines; ++l) {
      for (std::size_t o = 0; o < out_; ++o) to[o * lines + l] = from[l * out_ + o];
    }
    return to;
  }

  // Numbers [lines, out], each line packed along the outputs.
  std::vector<std::uint8_t> unpack_lines(const Tensor& words, std::size_t lines, WordOrder order) const {
    const std::size_t width = words.size() / std::max<std::size_t>(1, lines);
    std::vector<std::uint8_t> numbers(lines * out_);
    for (std::size_t l = 0; l < lines; ++l) {
      unpack_line({words.values<std::int32_t>().data() + l * width, 1}, group_.bits, order,
                  std::span(numbers).subspan(l * out_, out_));
    }
    return numbers;
  }

  Status take_group_scales() {
    CTK_TRY(const Tensor stored, scales(".scales", {shape_of(groups_, out_)}));
    const auto values = stored.values<float>();
    result_.scales = turned(std::vector<float>(values.begin(), values.end()), groups_);
    return {};
  }

  Status read_gptq() {
    const std::size_t bit_count = static_cast<std::size_t>(group_.bits);
    if (in_ * bit_count % 32 != 0 || out_ * bit_count % 32 != 0) {
      return wrong(".qweight", "rows and columns that fill words of 32 bits at " + bits(), to_string(shape_),
                   "Take the checkpoint before it was quantized");
    }
    CTK_TRY(const Tensor words, tensor(".qweight", {DType::i32}, {shape_of(in_ * bit_count / 32, out_)}));
    result_.codes.resize(out_ * in_);
    for (std::size_t o = 0; o < out_; ++o) {
      unpack_line({words.values<std::int32_t>().data() + o, out_}, group_.bits, WordOrder::stream,
                  std::span(result_.codes).subspan(o * in_, in_));
    }
    CTK_TRY(const Tensor packed, tensor(".qzeros", {DType::i32}, {shape_of(groups_, out_ * bit_count / 32)}));
    std::vector<std::uint8_t> zeros = unpack_lines(packed, groups_, WordOrder::stream);
    if (group_.stores_zero_less_one) CTK_CHECK(add_one(zeros));
    CTK_CHECK(check_middle(".qzeros", zeros));
    result_.zeros = turned(zeros, groups_);
    CTK_CHECK(take_group_scales());
    return read_order(".g_idx");
  }

  // One reader takes the number that 1 more does not fit for 0, another for 2^bits.
  Status add_one(std::vector<std::uint8_t>& zeros) const {
    const int most = (1 << group_.bits) - 1;
    for (std::size_t i = 0; i < zeros.size(); ++i) {
      if (zeros[i] == most) {
        return wrong(".qzeros", "zero points less one, up to " + std::to_string(most - 1),
                     std::to_string(most) + " for output " + std::to_string(i % out_) + " of group " +
                         std::to_string(i / out_) + ", which readers take for different numbers",
                     "Quantize again, or save it with checkpoint_format gptq_v2");
      }
      ++zeros[i];
    }
    return {};
  }

  // Readers of symmetric checkpoints do not look at zero points: others are a contradiction.
  Status check_middle(const std::string& part, const std::vector<std::uint8_t>& zeros) const {
    if (!group_.is_symmetric.value_or(false)) return {};
    for (std::size_t i = 0; i < zeros.size(); ++i) {
      if (zeros[i] == middle_) continue;
      return wrong(part, "zero points of " + std::to_string(middle_) + ", as symmetric codes of " + bits() + " have",
                   std::to_string(zeros[i]) + " for output " + std::to_string(i % out_) + " of group " +
                       std::to_string(i / out_));
    }
    return {};
  }

  Status read_awq() {
    if (out_ % 8 != 0) {
      return wrong(".qweight", "a multiple of 8 outputs", to_string(shape_),
                   "Take the checkpoint before it was quantized");
    }
    CTK_TRY(const Tensor words, tensor(".qweight", {DType::i32}, {shape_of(in_, out_ / 8)}));
    result_.codes = turned(unpack_lines(words, in_, WordOrder::awq), in_);
    CTK_TRY(const Tensor packed, tensor(".qzeros", {DType::i32}, {shape_of(groups_, out_ / 8)}));
    const std::vector<std::uint8_t> zeros = unpack_lines(packed, groups_, WordOrder::awq);
    CTK_CHECK(check_middle(".qzeros", zeros));
    result_.zeros = turned(zeros, groups_);
    return take_group_scales();
  }

  // Scales [out, groups], as wide as the strategy has them.
  Status take_row_scales() {
    const std::string part = ".weight_scale";
    if (group_.is_tensor_wide) {
      CTK_TRY(const Tensor stored, scales(part, {{1}, {}, {1, 1}}));
      result_.scales = {stored.values<float>()[0]};
      return {};
    }
    std::vector<Shape> shapes = {shape_of(out_, groups_)};
    if (group_.group_size == 0) shapes.push_back({shape_[0]});
    CTK_TRY(const Tensor stored, scales(part, shapes));
    result_.scales.assign(stored.values<float>().begin(), stored.values<float>().end());
    return {};
  }

  // Zero points as bytes, one beside each scale; they count from -2^(bits-1).
  Status take_byte_zeros() {
    const std::string part = ".weight_zero_point";
    std::vector<Shape> shapes = {shape_of(out_, groups_)};
    if (group_.is_tensor_wide) shapes = {{1}, {}, {1, 1}};
    if (!group_.is_tensor_wide && group_.group_size == 0) shapes.push_back({shape_[0]});
    CTK_TRY(const Tensor stored, tensor(part, {DType::i8, DType::i32, DType::i64}, shapes));
    CTK_TRY(const std::vector<std::int64_t> values, to_i64(stored));
    return take_signed(part, values, result_.zeros);
  }

  // Signed numbers of the width, as unsigned ones.
  Status take_signed(const std::string& part, std::span<const std::int64_t> values, std::vector<std::uint8_t>& into) {
    const auto is_bad = [&](std::int64_t v) { return v < -middle_ || v >= middle_; };
    if (const auto first = std::ranges::find_if(values, is_bad); first != values.end()) {
      return wrong(part,
                   "numbers from " + std::to_string(-middle_) + " to " + std::to_string(middle_ - 1) + " at " + bits(),
                   std::to_string(std::ranges::count_if(values, is_bad)) + " others, the first " +
                       std::to_string(*first) + " at " + std::to_string(first - values.begin()));
    }
    into.clear();
    for (std::int64_t v : values) into.push_back(static_cast<std::uint8_t>(v + middle_));
    return {};
  }

  Status read_packed() {
    const std::size_t stream = words_of(in_, group_.bits, WordOrder::stream),
                      slots = words_of(in_, group_.bits, WordOrder::slots);
    CTK_TRY(const Tensor words,
            tensor(".weight_packed", {DType::i32}, {shape_of(out_, stream), shape_of(out_, slots)}));
    // Older files leave the rest of a word unused where the width does not divide 32.
    const std::size_t width = words.size() / out_;
    const WordOrder order = width == stream ? WordOrder::stream : WordOrder::slots;
    result_.codes.resize(out_ * in_);
    for (std::size_t o = 0; o < out_; ++o) {
      unpack_line({words.values<std::int32_t>().data() + o * width, 1}, group_.bits, order,
                  std::span(result_.codes).subspan(o * in_, in_));
    }
    CTK_TRY(const Tensor sizes, tensor(".weight_shape", {DType::i64, DType::i32}, {{2}}));
    CTK_TRY(const std::vector<std::int64_t> stored, to_i64(sizes));
    if (stored != shape_) return wrong(".weight_shape", to_string(shape_) + " by config.json", to_string(stored));
    CTK_CHECK(take_row_scales());
    CTK_CHECK(read_packed_zeros(order));
    return read_order(".weight_g_idx");
  }

  Status read_packed_zeros(WordOrder order) {
    const std::string part = ".weight_zero_point";
    const StoredTensor* stored = checkpoint_.find(module_ + part);
    const std::size_t tall = words_of(out_, group_.bits, order);
    const bool is_packed = stored != nullptr && stored->dtype == DType::i32 &&
                           stored->shape == shape_of(tall, groups_) && !group_.is_tensor_wide;
    if (!is_packed) return read_zeros();
    CTK_TRY(const Tensor words, tensor(part, {DType::i32}, {stored->shape}));
    std::vector<std::uint8_t> line(out_);
    result_.zeros.resize(out_ * groups_);
    for (std::size_t g = 0; g < groups_; ++g) {
      unpack_line({words.values<std::int32_t>().data() + g, groups_}, group_.bits, order, line);
      for (std::size_t o = 0; o < out_; ++o) result_.zeros[o * groups_ + g] = line[o];
    }
    return check_zeros(part);
  }

  // Symmetric codes need none; zeros that old files store beside them are those of the middle.
  Status read_zeros() {
    if (*group_.is_symmetric && !has(".weight_zero_point")) {
      result_.zeros.assign(result_.scales.size(), static_cast<std::uint8_t>(middle_));
      return {};
    }
    CTK_CHECK(take_byte_zeros());
    return check_zeros(".weight_zero_point");
  }

  Status check_zeros(const std::string& part) const {
    if (!*group_.is_symmetric) return {};
    const auto first = std::ranges::find_if(result_.zeros, [&](std::uint8_t z) { return z != middle_; });
    if (first == result_.zeros.end()) return {};
    return wrong(part, "0, as " + group_.key + ".weights.symmetric says",
                 std::to_string(*first - middle_) + " at " + std::to_string(first - result_.zeros.begin()));
  }

  Status read_integers() {
    CTK_TRY(const Tensor stored, tensor(".weight", {DType::i8}, {shape_}));
    CTK_TRY(const std::vector<std::int64_t> values, to_i64(stored));
    CTK_CHECK(take_signed(".weight", values, result_.codes));
    CTK_CHECK(take_row_scales());
    CTK_CHECK(read_zeros());
    return read_order(".weight_g_idx");
  }

  // Codes where every float is exactly one's number; else the floats as they are.
  Status read_dense() {
    CTK_TRY(const Tensor stored, tensor(".weight", {DType::f16, DType::bf16, DType::f32}, {shape_}));
    CTK_CHECK(take_row_scales());
    CTK_CHECK(read_zeros());
    CTK_CHECK(read_order(".weight_g_idx"));
    CTK_TRY(const Tensor floats, to_f32(stored));
    const auto values = floats.values<float>();
    result_.codes.resize(values.size());
    bool is_on_grid = !result_.is_permuted;
    for (std::size_t i = 0; i < values.size() && is_on_grid; ++i) {
      const std::size_t at = scale_at(i / in_, i % in_ / size_);
      const float code = std::nearbyint(values[i] / result_.scales[at]) + static_cast<float>(result_.zeros[at]);
      is_on_grid = code >= 0 && code < static_cast<float>(2 * middle_) &&
                   (code - static_cast<float>(result_.zeros[at])) * result_.scales[at] == values[i];
      if (is_on_grid) result_.codes[i] = static_cast<std::uint8_t>(code);
    }
    if (is_on_grid) return {};
    result_.floats = floats;
    return {};
  }

  std::size_t scale_at(std::size_t row, std::size_t group) const {
    return result_.scales.size() == 1 ? 0 : row * groups_ + group;
  }

  // Which group each input belongs to, where it is not its place that says so.
  Status read_order(const std::string& part) {
    if (!has(part)) {
      if (!group_.orders_groups) return {};
      return wrong(part, "the group of each input, as " + group_.key + " orders columns (desc_act, actorder)", "none");
    }
    CTK_TRY(const Tensor stored, tensor(part, {DType::i32, DType::i64}, {{shape_[1]}}));
    CTK_TRY(result_.order, to_i64(stored));
    if (group_.form != CodeForm::gptq && std::ranges::all_of(result_.order, [](std::int64_t g) { return g == -1; })) {
      return {};  // never filled in
    }
    const auto is_bad = [&](std::int64_t g) { return g < 0 || g >= static_cast<std::int64_t>(groups_); };
    if (const auto first = std::ranges::find_if(result_.order, is_bad); first != result_.order.end()) {
      return wrong(part, "groups from 0 to " + std::to_string(groups_ - 1) + by_config(),
                   std::to_string(std::ranges::count_if(result_.order, is_bad)) + " others, the first " +
                       std::to_string(*first) + " at " + std::to_string(first - result_.order.begin()));
    }
    for (std::size_t i = 0; i < in_ && !result_.is_permuted; ++i)
      result_.is_permuted = result_.order[i] != static_cast<std::int64_t>(i / size_);
    return {};
  }

  const Checkpoint& checkpoint_;
  const CodeGroup& group_;
  const std::string& module_;
  const Shape& shape_;
  const std::size_t out_, in_, size_, groups_;
  const int middle_;  // what an unsigned number less it is signed
  StoredCodes result_;
};

}  // namespace

Result<StoredCodes> read_stored(const Checkpoint& checkpoint, const CodeGroup& group, const std::string& module,
                                const Shape& shape) {
  return ModuleReader(checkpoint, group, module, shape).read();
}

}  // namespace ctk::graph::hf
