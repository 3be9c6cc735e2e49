#include <array>

#include "calibrate/observers/observer.h"

namespace ctk::calibrate {
namespace {

constexpr std::array kObservers{
    Observer{"minmax", "least and largest number seen", 1, pick_minmax},
    Observer{"percentile", "leaves the same share of numbers out at both ends", 2, pick_percentile},
    Observer{"entropy", "least KL divergence of the quantized histogram", 2, pick_entropy},
    Observer{"mse", "least mean squared error of rounding and clipping", 2, pick_mse},
};

}  // namespace

std::span<const Observer> observers() { return kObservers; }

}  // namespace ctk::calibrate
