#include "calibrate/observer.h"

#include <array>

namespace ctk::calibrate {
namespace {

constexpr std::array<Observer, 4> kObservers{{
    {"minmax", "least and largest element", 1, choose_minmax},
    {"percentile", "clips the share (100 - percentile) % of the elements at each end", 2, choose_percentile},
    {"entropy", "least KL divergence between the distribution and its 256-level copy", 2, choose_entropy},
    {"mse", "least squared error of rounding and clipping together", 2, choose_mse},
}};

}  // namespace

std::span<const Observer> observers() {
  return kObservers;
}

Result<const Observer*> find_observer(std::string_view name) {
  std::string known;
  for (const Observer& observer : kObservers) {
    if (observer.name == name) return &observer;
    known += (known.empty() ? "" : ", ") + std::string(observer.name);
  }
  return config_error("calibrate.method: expected one of " + known + ", found \"" + std::string(name) + "\"");
}

}  // namespace ctk::calibrate
