// Gemm and MatMul. Y = A B: dA = G B^T, dB = A^T G, each a product of kernels/gemm_fp32.
#include <vector>

#include "calibrate/packed_matrix.h"
#include "calibrate/reverse/matrix.h"
#include "calibrate/reverse/rules.h"
#include "graph/ops/elementwise.h"

namespace ctk::calibrate {
namespace {

// dA of one product, or its transpose: see add_product for who is who.
struct Product {
  std::size_t m, n, k;
  const float *a, *b, *g;                           // A [m, k], B [k, n], G [m, n]
  bool transposes_a = false, transposes_b = false;  // A lies as [k, m], B as [n, k]
};

void add_left(const Product& p, float* da) {
  // [m, k] += G [m, n] (B as [k, n])^T; lying as [k, m]: B [k, n] G^T
  const std::vector<float> b = p.transposes_b ? transposed(p.b, p.n, p.k) : std::vector<float>();
  const float* rows = p.transposes_b ? b.data() : p.b;
  if (p.transposes_a) {
    add_product(rows, p.g, p.k, p.m, p.n, da);
  } else {
    add_product(p.g, rows, p.m, p.k, p.n, da);
  }
}

void add_right(const Product& p, float* db) {
  // [k, n] += A^T G; lying as [n, k]: G^T A
  const std::vector<float> g = transposed(p.g, p.m, p.n);
  const std::vector<float> a = p.transposes_a ? std::vector<float>() : transposed(p.a, p.m, p.k);
  const float* columns = p.transposes_a ? p.a : a.data();  // [k, m]
  if (p.transposes_b) {
    add_product(g.data(), columns, p.n, p.k, p.m, db);
  } else {
    add_product(columns, g.data(), p.k, p.n, p.m, db);
  }
}

}  // namespace

Status reverse_gemm(const ReverseCall& call) {
  const auto& attributes = call.node.attributes;
  const TensorView& g = call.output_gradients[0];
  const float alpha = attributes.get_float("alpha", 1.0f), beta = attributes.get_float("beta", 1.0f);
  Product p{};
  p.transposes_a = attributes.get_int("transA", 0) != 0;
  p.transposes_b = attributes.get_int("transB", 0) != 0;
  p.m = static_cast<std::size_t>(g.shape[0]);
  p.n = static_cast<std::size_t>(g.shape[1]);
  p.k = static_cast<std::size_t>(call.inputs[0].shape[p.transposes_a ? 0 : 1]);
  p.a = call.inputs[0].as<float>();
  p.b = call.inputs[1].as<float>();
  const auto scaled = [&](float factor) {
    std::vector<float> values(g.as<float>(), g.as<float>() + g.size());
    for (float& v : values) v *= factor;
    return values;
  };
  const std::vector<float> factored = alpha == 1.0f ? std::vector<float>() : scaled(alpha);
  p.g = alpha == 1.0f ? g.as<float>() : factored.data();
  if (call.input_gradients[0].data != nullptr) add_left(p, call.input_gradients[0].as<float>());
  if (call.input_gradients[1].data != nullptr) add_right(p, call.input_gradients[1].as<float>());
  if (call.input_gradients.size() > 2 && call.input_gradients[2].data != nullptr) {
    const std::vector<float> values = scaled(beta);
    add_summed({DType::f32, g.shape, values.data()}, call.input_gradients[2]);
  }
  return {};
}

Status reverse_mat_mul(const ReverseCall& call) {
  Shape a = call.inputs[0].shape, b = call.inputs[1].shape, y = call.output_gradients[0].shape;
  if (a.size() == 1) {  // a row; the output lost that dimension
    a.insert(a.begin(), 1);
    y.insert(y.end() - (b.size() == 1 ? 0 : 1), 1);
  }
  if (b.size() == 1) {  // a column
    b.push_back(1);
    y.push_back(1);
  }
  Product p{};
  p.m = static_cast<std::size_t>(a[a.size() - 2]);
  p.k = static_cast<std::size_t>(a.back());
  p.n = static_cast<std::size_t>(b.back());
  const Shape a_batch(a.begin(), a.end() - 2), b_batch(b.begin(), b.end() - 2);
  const Shape batch(y.begin(), y.end() - 2);
  if (elements(b_batch) == 1) {  // one matrix for all rows of A
    p.m *= elements(batch);
    p.a = call.inputs[0].as<float>();
    p.b = call.inputs[1].as<float>();
    p.g = call.output_gradients[0].as<float>();
    if (call.input_gradients[0].data != nullptr) add_left(p, call.input_gradients[0].as<float>());
    if (call.input_gradients[1].data != nullptr) add_right(p, call.input_gradients[1].as<float>());
    return {};
  }
  using Pair = std::array<std::size_t, 2>;
  graph::for_each_broadcast_row<2>(
      batch, {&a_batch, &b_batch}, [&](const Pair& offsets, const Pair& steps, std::size_t out, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t at_a = (offsets[0] + i * steps[0]) * p.m * p.k;
          const std::size_t at_b = (offsets[1] + i * steps[1]) * p.k * p.n;
          Product one = p;
          one.a = call.inputs[0].data != nullptr ? call.inputs[0].as<float>() + at_a : nullptr;
          one.b = call.inputs[1].data != nullptr ? call.inputs[1].as<float>() + at_b : nullptr;
          one.g = call.output_gradients[0].as<float>() + (out + i) * p.m * p.n;
          if (call.input_gradients[0].data != nullptr) add_left(one, call.input_gradients[0].as<float>() + at_a);
          if (call.input_gradients[1].data != nullptr) add_right(one, call.input_gradients[1].as<float>() + at_b);
        }
      });
  return {};
}

}  // namespace ctk::calibrate
