#include "compress/transform/methods.h"

#include <algorithm>
#include <array>

namespace ctk::transform {
namespace {

std::string never(const graph::Graph&) {
  return "";
}

constexpr std::array kMethods{
    Method{"smoothquant", "range of activations moved into weights, where both are codes", run_smoothquant, never},
    Method{"awq", "weights that matter most made larger before they are rounded", run_awq, never},
    Method{"hadamard", "outliers of a decoder spread over all features by rotations", run_hadamard, refuse_hadamard},
};

}  // namespace

std::span<const Method> methods() {
  return kMethods;
}

const Method* find_method(std::string_view name) {
  const auto found = std::ranges::find(kMethods, name, &Method::name);
  return found == kMethods.end() ? nullptr : &*found;
}

}  // namespace ctk::transform
