#include "compress/quantize/value_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>

namespace ctk::quantization {
namespace {

Tensor counted(std::int64_t size, float from) {
  Tensor tensor = Tensor::zeros(DType::f32, {size}).value();
  const auto values = tensor.mutable_values<float>();
  std::iota(values.begin(), values.end(), from);
  return tensor;
}

class ValueStoreTest : public ::testing::Test {
 protected:
  ValueStoreTest() {
    std::string name = (std::filesystem::temp_directory_path() / "ctk_values_XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~ValueStoreTest() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(ValueStoreTest, KeepsInMemoryUpToTheBoundAndTheRestInAFile) {
  ValueStore store(4000, folder_ / "made");
  std::vector<ValueStore::Held> held;
  for (int i = 0; i < 5; ++i) held.push_back(store.keep(counted(400, static_cast<float>(1000 * i))).value());
  EXPECT_EQ(store.in_memory(), 3200u);  // two of 1600 bytes fit below 4000
  EXPECT_EQ(store.in_file(), 4800u);
  for (int i = 0; i < 5; ++i) {
    const Tensor back = held[static_cast<std::size_t>(i)].read().value();
    EXPECT_EQ(back.shape(), (Shape{400}));
    EXPECT_EQ(back.values<float>()[399], static_cast<float>(1000 * i + 399));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "made"));  // the file has no name
}

TEST_F(ValueStoreTest, GivesRoomBackWithTheLastCopy) {
  ValueStore store(2000, folder_);
  auto first = std::make_unique<ValueStore::Held>(store.keep(counted(400, 0)).value());
  const ValueStore::Held copy = *first;
  auto second = std::make_unique<ValueStore::Held>(store.keep(counted(400, 0)).value());
  EXPECT_EQ(store.in_file(), 1600u);
  first.reset();
  EXPECT_EQ(store.in_memory(), 1600u);
  second.reset();
  EXPECT_EQ(store.in_file(), 0u);
  EXPECT_EQ(copy.read().value().values<float>()[1], 1.0f);
}

TEST_F(ValueStoreTest, WithoutAFolderAllStaysInMemory) {
  ValueStore store(1);
  const auto held = store.keep(counted(400, 0));
  EXPECT_EQ(store.in_memory(), 1600u);
}

TEST_F(ValueStoreTest, SaysWhereThereIsNoRoom) {
  ValueStore store(1, "/proc/nothing");
  const auto held = store.keep(counted(400, 0));
  ASSERT_FALSE(held.has_value());
  EXPECT_EQ(held.error().code, ErrorCode::input);
  EXPECT_NE(held.error().message.find("/proc/nothing"), std::string::npos) << held.error().message;
  EXPECT_EQ(store.in_file(), 0u);
}

}  // namespace
}  // namespace ctk::quantization
