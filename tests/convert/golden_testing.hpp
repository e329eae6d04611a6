// The golden files of this folder: models that the official packages wrote, and the values that
// they hold by numpy (tools/goldens/convert_cases.py). A missing file fails the test.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "convert/convert.hpp"
#include "convert/model_report.hpp"
#include "io/files/file.hpp"
#include "io/io_testing.hpp"
#include "io/json/json.hpp"
#include "io/weights/safetensors_file.hpp"
#include "support/paths.hpp"

namespace loom::core::test {

inline std::string golden(std::string_view name) {
  return loom_test::source_path(cat("tests/convert/golden/", name));
}

inline JsonValue golden_facts() {
  const auto text = read_file(golden("expected.json"));
  EXPECT_TRUE(text.ok()) << text.error().str();
  auto json = parse_json(text.ok() ? *text : "{}", "expected.json");
  EXPECT_TRUE(json.ok());
  return *std::move(json);
}

// State dicts do not say their activation.
inline OpenOptions golden_options() {
  OpenOptions options;
  options.infer.activation = "relu";
  return options;
}

inline std::shared_ptr<const OpenedModel> opened(const std::string& path) {
  auto model = open_model(path, golden_options());
  EXPECT_TRUE(model.ok()) << path << ": " << model.error().str();
  if (!model.ok()) return nullptr;
  return std::make_shared<const OpenedModel>(*std::move(model));
}

using NamedValues = std::vector<std::pair<std::string, std::vector<float>>>;

inline NamedValues values_of(const TensorFile& file) {
  NamedValues out;
  for (size_t i = 0; i < file.entries().size(); ++i) {
    std::vector<float> values(static_cast<size_t>(file.entries()[i].count()));
    const Status read = file.to_f32(i, 0, file.entries()[i].count(), values.data());
    EXPECT_TRUE(read.ok()) << read.error().str();
    out.emplace_back(file.entries()[i].name, std::move(values));
  }
  return out;
}

// The parameters of a model file by path.
inline NamedValues parameters_of(const std::string& path) {
  const auto model = opened(path);
  if (model == nullptr) return {};
  const auto file = open_parameters(model);
  EXPECT_TRUE(file.ok()) << file.error().str();
  return file.ok() ? values_of(**file) : NamedValues();
}

// The values by numpy of the parameters of `file`, in the order of their paths.
inline NamedValues golden_values(std::string_view file) {
  static const NamedValues kAll = [] {
    const auto tensors = SafeTensorsFile::open(golden("expected.safetensors"));
    EXPECT_TRUE(tensors.ok()) << tensors.error().str();
    return tensors.ok() ? values_of(**tensors) : NamedValues();
  }();
  NamedValues out;
  const std::string prefix = cat(file, ":");
  for (const auto& [name, values] : kAll) {
    if (name.starts_with(prefix)) out.emplace_back(name.substr(prefix.size()), values);
  }
  EXPECT_FALSE(out.empty()) << file;
  return out;
}

// The values of one parameter; empty if there is none.
inline std::vector<float> find_values(const NamedValues& all, std::string_view name) {
  for (const auto& [path, values] : all) {
    if (path == name) return values;
  }
  ADD_FAILURE() << "no parameter " << name;
  return {};
}

// Equal in every bit: a negative zero too.
inline void expect_same_bits(const NamedValues& found, const NamedValues& expected) {
  EXPECT_EQ(found.size(), expected.size());
  for (const auto& [name, values] : expected) {
    const std::vector<float> have = find_values(found, name);
    ASSERT_EQ(have.size(), values.size()) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(std::bit_cast<uint32_t>(have[i]), std::bit_cast<uint32_t>(values[i]))
          << name << ", value " << i << ": " << have[i] << " is not " << values[i];
    }
  }
}

// Converts a golden file, and returns the path of the result.
inline std::string converted(const TemporaryFolder& folder, std::string_view from,
                             std::string_view to, WriteOptions options = {}) {
  options.with_weights = true;
  const auto model = opened(golden(from));
  ThreadPool pool(1);
  const std::string path = folder.path(to);
  if (model != nullptr) {
    const Status written = write_model(path, *model, options, pool);
    EXPECT_TRUE(written.ok()) << from << " to " << to << ": " << written.error().str();
  }
  return path;
}

}  // namespace loom::core::test
