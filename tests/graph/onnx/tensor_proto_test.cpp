// Every way a file can hold a tensor, and every way it can lie about one (FAULTS B097).
#include "tests/graph/onnx/model_maker.h"

namespace ctk::graph::onnx::test {
namespace {

// A model that only holds the tensor "T", made by `fill`.
template <class Fill>
ModelMaker with_tensor(const std::vector<std::int64_t>& dims, int type, Fill fill) {
  ModelMaker model(21, 10);
  model.input("x", {1});
  model.output("y", {1});
  model.node("Relu", {"x"}, {"y"});
  fill(model.tensor("T", dims, type));
  return model;
}

std::vector<double> numbers(const ModelMaker& model, DType dtype) {
  const Graph graph = must_read(model);
  const auto id = graph.find_value("T");
  if (!id) return {};
  const Tensor& tensor = *graph.value(*id).constant;
  EXPECT_EQ(tensor.dtype(), dtype);
  const auto wide = cast(tensor, DType::f64);
  const auto values = wide->values<double>();
  return {values.begin(), values.end()};
}

using Values = std::vector<double>;

TEST(OnnxTensor, ReadsTypedFields) {
  using Tensor = ::onnx::TensorProto;
  const auto add_ints = [](std::vector<int> values) {
    return [values](Tensor& t) {
      for (int v : values) t.add_int32_data(v);
    };
  };
  EXPECT_EQ(numbers(with_tensor({2}, 1,
                                [](Tensor& t) {
                                  t.add_float_data(1.5f);
                                  t.add_float_data(-2);
                                }),
                    DType::f32),
            (Values{1.5, -2}));
  EXPECT_EQ(numbers(with_tensor({1}, 11, [](Tensor& t) { t.add_double_data(0.1); }), DType::f64), (Values{0.1}));
  EXPECT_EQ(numbers(with_tensor({1}, 7, [](Tensor& t) { t.add_int64_data(-5); }), DType::i64), (Values{-5}));
  EXPECT_EQ(numbers(with_tensor({1}, 12, [](Tensor& t) { t.add_uint64_data(4000000000u); }), DType::u32),
            (Values{4e9}));
  EXPECT_EQ(numbers(with_tensor({1}, 13, [](Tensor& t) { t.add_uint64_data(9); }), DType::u64), (Values{9}));
  EXPECT_EQ(numbers(with_tensor({2}, 6, add_ints({1, -70000})), DType::i32), (Values{1, -70000}));
  EXPECT_EQ(numbers(with_tensor({2}, 3, add_ints({-128, 127})), DType::i8), (Values{-128, 127}));
  EXPECT_EQ(numbers(with_tensor({2}, 2, add_ints({0, 255})), DType::u8), (Values{0, 255}));
  EXPECT_EQ(numbers(with_tensor({1}, 5, add_ints({-300})), DType::i16), (Values{-300}));
  EXPECT_EQ(numbers(with_tensor({1}, 4, add_ints({65535})), DType::u16), (Values{65535}));
  EXPECT_EQ(numbers(with_tensor({2}, 9, add_ints({0, 1})), DType::boolean), (Values{0, 1}));
  EXPECT_EQ(numbers(with_tensor({2}, 10, add_ints({0x3c00, 0xc000})), DType::f16), (Values{1, -2}));
  EXPECT_EQ(numbers(with_tensor({1}, 16, add_ints({0x3fc0})), DType::bf16), (Values{1.5}));
  // Two 4-bit codes a value, low nibble first: 0x8f holds 15 -> -1 and 8 -> -8; then 0x07 holds 7.
  EXPECT_EQ(numbers(with_tensor({3}, 22, add_ints({0x8f, 0x07})), DType::i4), (Values{-1, -8, 7}));
  EXPECT_EQ(numbers(with_tensor({3}, 21, add_ints({0x8f, 0x07})), DType::u4), (Values{15, 8, 7}));
}

TEST(OnnxTensor, ReadsRawBytesInLittleEndianOrder) {
  using Tensor = ::onnx::TensorProto;
  const auto raw = [](std::string bytes) { return [bytes](Tensor& t) { t.set_raw_data(bytes); }; };
  EXPECT_EQ(numbers(with_tensor({2}, 5, raw(std::string("\x01\x02\xff\xff", 4))), DType::i16), (Values{513, -1}));
  EXPECT_EQ(numbers(with_tensor({1}, 1, raw(std::string("\x00\x00\xc0\x3f", 4))), DType::f32), (Values{1.5}));
  EXPECT_EQ(numbers(with_tensor({2}, 9, raw(std::string("\x00\x02", 2))), DType::boolean), (Values{0, 1}));
  EXPECT_EQ(numbers(with_tensor({1}, 22, raw("\xf8")), DType::i4), (Values{-8}));
  EXPECT_EQ(numbers(with_tensor({0, 3}, 1, [](Tensor&) {}), DType::f32), Values{});
}

TEST(OnnxTensor, ClearsTheUnusedNibbleSoThatEqualTensorsAreEqualBytes) {
  const Graph graph = must_read(with_tensor({1}, 22, [](::onnx::TensorProto& t) { t.set_raw_data("\xf8"); }));
  EXPECT_EQ(graph.value(*graph.find_value("T")).constant->raw()[0], std::byte{0x08});
}

TEST(OnnxTensor, RefusesSizesThatContradictTheDims) {
  using Tensor = ::onnx::TensorProto;
  const auto none = [](Tensor&) {};
  expect_error(read(with_tensor({4}, 1, [](Tensor& t) { t.set_raw_data("12345678"); })), ErrorCode::input,
               {"\"T\"", "16 bytes", "found 8"});
  expect_error(read(with_tensor({1}, 1, [](Tensor& t) { t.set_raw_data("12345678"); })), ErrorCode::input,
               {"\"T\"", "4 bytes", "found 8"});
  expect_error(read(with_tensor({2}, 1, [](Tensor& t) { t.add_float_data(1); })), ErrorCode::input, {"\"T\""});
  expect_error(read(with_tensor({2}, 1,
                                [](Tensor& t) {
                                  t.add_int64_data(1);
                                  t.add_int64_data(1);
                                })),
               ErrorCode::input, {"\"T\"", "found 0 in float_data"});
  expect_error(read(with_tensor({2}, 1, none)), ErrorCode::input, {"\"T\"", "no data"});
  expect_error(read(with_tensor({1}, 1,
                                [](Tensor& t) {
                                  t.set_raw_data("1234");
                                  t.add_float_data(1);
                                })),
               ErrorCode::input, {"\"T\"", "one data field"});
  expect_error(read(with_tensor({2}, 22,
                                [](Tensor& t) {
                                  t.add_int32_data(1);
                                  t.add_int32_data(1);
                                })),
               ErrorCode::input, {"\"T\"", "needs 1 values, found 2"});
}

TEST(OnnxTensor, RefusesNegativeAndHugeDimsWithoutAllocating) {
  using Tensor = ::onnx::TensorProto;
  const auto some = [](Tensor& t) { t.add_float_data(1); };
  const std::int64_t huge = std::int64_t{1} << 62;
  expect_error(read(with_tensor({-1}, 1, some)), ErrorCode::input, {"\"T\"", "-1"});
  expect_error(read(with_tensor({huge}, 1, some)), ErrorCode::input, {"\"T\""});
  expect_error(read(with_tensor({huge, 4, 0}, 1, some)), ErrorCode::input, {"\"T\""});
  expect_error(read(with_tensor({std::int64_t{1} << 40}, 1, some)), ErrorCode::input, {"\"T\"", "found fewer values"});
  expect_error(read(with_tensor(std::vector<std::int64_t>(100, 1), 1, some)), ErrorCode::input,
               {"\"T\"", "64 dimensions"});
}

TEST(OnnxTensor, RefusesTypesItDoesNotHold) {
  using Tensor = ::onnx::TensorProto;
  const auto raw = [](Tensor& t) { t.set_raw_data("1"); };
  expect_error(read(with_tensor({1}, 17, raw)), ErrorCode::input, {"\"T\"", "FLOAT8E4M3FN (17)"});
  expect_error(read(with_tensor({1}, 14, raw)), ErrorCode::input, {"\"T\"", "COMPLEX64"});
  expect_error(read(with_tensor({1}, 99, raw)), ErrorCode::input, {"\"T\"", "unknown (99)"});
  expect_error(read(with_tensor({1}, 0, raw)), ErrorCode::input, {"\"T\"", "UNDEFINED"});
}

TEST(OnnxTensor, RefusesValuesOutsideTheirType) {
  using Tensor = ::onnx::TensorProto;
  expect_error(read(with_tensor({1}, 3, [](Tensor& t) { t.add_int32_data(128); })), ErrorCode::input,
               {"\"T\"", "element 0 is 128", "i8"});
  expect_error(read(with_tensor({1}, 2, [](Tensor& t) { t.add_int32_data(-1); })), ErrorCode::input, {"is -1", "u8"});
}

TEST(OnnxTensor, KeepsEveryBitOfEveryTypeThroughWritingAndReading) {
  for (const int type : {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16, 21, 22}) {
    const bool is_narrow = type >= 21;
    const std::string bytes = type == 9 ? std::string("\x01\x00\x01\x01\x00\x00\x01\x00", 8)
                                        : std::string("\x01\x80\x7f\xff\x12\xc0\x7f\x80", 8);
    const int width = type == 7 || type == 11 || type == 13                ? 8
                      : type == 1 || type == 6 || type == 12               ? 4
                      : type == 4 || type == 5 || type == 10 || type == 16 ? 2
                                                                           : 1;
    const std::int64_t count = is_narrow ? 16 : 8 / width;
    const auto written =
        must_write(must_read(with_tensor({count}, type, [&](::onnx::TensorProto& t) { t.set_raw_data(bytes); })));
    ASSERT_EQ(written.graph().initializer_size(), 1);
    EXPECT_EQ(written.graph().initializer(0).raw_data(), bytes) << "type " << type;
    EXPECT_EQ(written.graph().initializer(0).data_type(), type);
    EXPECT_EQ(written.graph().initializer(0).dims(0), count);
  }
}

}  // namespace
}  // namespace ctk::graph::onnx::test
