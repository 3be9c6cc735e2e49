// Writes small checkpoint folders, sound and unsound.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"

namespace ctk::graph::hf::test {

// A folder of its own for each test, removed after it.
class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::temp_directory_path() /
            ("ctk_" + std::string(info->test_suite_name()) + "_" + info->name() + "_" + std::to_string(::getpid()));
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string path(const std::string& name) const { return (root_ / name).string(); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary | std::ios::trunc) << bytes;
  }

  // header behind its length, then data.
  static std::string file_of(const std::string& header, const std::string& data) {
    std::string bytes(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i));
    return bytes + header + data;
  }
  // A file of tensors [name, shape] of one type, of 32 or 16 bits; every byte is `fill`.
  static std::string file_of_tensors(const std::vector<std::pair<std::string, std::vector<std::size_t>>>& tensors,
                                     char fill = '\0', const std::string& dtype = "F32") {
    std::string header = "{";
    std::size_t offset = 0;
    for (const auto& [name, shape] : tensors) {
      std::size_t bytes = dtype == "F32" ? 4 : 2;
      std::string sizes;
      for (std::size_t size : shape) {
        bytes *= size;
        sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
      }
      header += (offset == 0 ? "\"" : ",\"") + name + R"(":{"dtype":")" + dtype + R"(","shape":[)" + sizes +
                R"(],"data_offsets":[)" + std::to_string(offset) + "," + std::to_string(offset + bytes) + "]}";
      offset += bytes;
    }
    header += "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    return file_of(header, std::string(offset, fill));
  }

  template <class T>
  static void expect_error(const Result<T>& result, const std::vector<std::string>& words) {
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::input);
    for (const std::string& word : words) {
      EXPECT_NE(result.error().message.find(word), std::string::npos) << word << " in: " << result.error().message;
    }
  }

  std::filesystem::path root_;
};

}  // namespace ctk::graph::hf::test
