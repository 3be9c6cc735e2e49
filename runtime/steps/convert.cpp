// Steps that change a value's form (float <-> codes) or layout, inserted where producers and consumers differ.
#include "kernels/convert/convert.h"

#include "core/parallel.h"
#include "kernels/select.h"
#include "runtime/plan_builder.h"

namespace ctk::runtime {
namespace {

constexpr std::size_t kGrain = 16384;  // elements a thread takes at least: below this starting a team costs more

class QuantizeStep final : public Step {
 public:
  QuantizeStep(const kernels::ConvertRow& row, ActivationQuant q, std::size_t count, bool to_codes, int from, int to)
      : row_(row), q_(q), count_(count), to_codes_(to_codes) {
    label = to_codes ? "quantize" : "dequantize";
    Step::row = row.name;
    reads = {from};
    writes = {to};
  }

  Status run(const RunContext& context) override {
    parallel_for(count_, kGrain, [&](std::size_t begin, std::size_t end) {
      if (to_codes_) {
        row_.quantize(context.at<float>(reads[0]) + begin, q_.scale, q_.zero_point,
                      context.at<std::uint8_t>(writes[0]) + begin, end - begin);
      } else {
        row_.dequantize(context.at<std::uint8_t>(reads[0]) + begin, q_.scale, q_.zero_point,
                        context.at<float>(writes[0]) + begin, end - begin);
      }
    });
    return {};
  }

 private:
  const kernels::ConvertRow& row_;
  ActivationQuant q_;
  std::size_t count_;
  bool to_codes_;
};

class LayoutStep final : public Step {
 public:
  LayoutStep(const kernels::ConvertRow& row, ImageExtent extent, bool is_codes, bool to_last, int from, int to)
      : row_(row), extent_(extent), is_codes_(is_codes), to_last_(to_last) {
    label = to_last ? "to_channels_last" : "to_channels_first";
    Step::row = row.name;
    reads = {from};
    writes = {to};
  }

  Status run(const RunContext& context) override {
    const std::size_t image = extent_.channels * extent_.pixels;
    parallel_for(extent_.batch, 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t b = begin; b < end; ++b) {
        if (is_codes_) {
          const auto* x = context.at<std::uint8_t>(reads[0]) + b * image;
          auto* y = context.at<std::uint8_t>(writes[0]) + b * image;
          (to_last_ ? row_.to_channels_last_u8 : row_.to_channels_first_u8)(x, y, extent_.channels, extent_.pixels);
        } else {
          const auto* x = context.at<float>(reads[0]) + b * image;
          auto* y = context.at<float>(writes[0]) + b * image;
          (to_last_ ? row_.to_channels_last_f32 : row_.to_channels_first_f32)(x, y, extent_.channels, extent_.pixels);
        }
      }
    });
    return {};
  }

 private:
  const kernels::ConvertRow& row_;
  ImageExtent extent_;
  bool is_codes_, to_last_;
};

}  // namespace

std::unique_ptr<Step> make_quantize_step(PlanBuilder& builder, graph::ValueId id, int from, int to) {
  return std::make_unique<QuantizeStep>(kernels::select(kernels::convert_rows(), builder.isas()), builder.note(id),
                                        elements(builder.shape(id)), true, from, to);
}

std::unique_ptr<Step> make_dequantize_step(PlanBuilder& builder, graph::ValueId id, int from, int to) {
  return std::make_unique<QuantizeStep>(kernels::select(kernels::convert_rows(), builder.isas()), builder.note(id),
                                        elements(builder.shape(id)), false, from, to);
}

std::unique_ptr<Step> make_layout_step(PlanBuilder& builder, graph::ValueId id, Form form, Layout to_layout, int from,
                                       int to) {
  return std::make_unique<LayoutStep>(kernels::select(kernels::convert_rows(), builder.isas()),
                                      image_extent(builder.shape(id)), form == Form::codes,
                                      to_layout == Layout::channels_last, from, to);
}

}  // namespace ctk::runtime
