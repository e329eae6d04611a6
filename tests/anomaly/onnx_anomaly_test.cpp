// Damage to ONNX files from PyTorch: cut at every byte, every single bit flipped. Each is refused
// in one line, or gives a model that reads back equal after writing, and then a network or another
// refusal. Nothing crashes, and no read is out of bounds.
#include "anomaly/damage.hpp"
#include "io/files/file.hpp"
#include "io/io_testing.hpp"
#include "onnx/import/import.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

using test::expect_one_line;
using test::flip;

using test::bytes_of;

std::string golden(const std::string& name) {
  const auto bytes = read_file(loom_test::source_path("tests/formats/golden/") + name);
  EXPECT_TRUE(bytes.ok());
  return bytes.ok() ? *bytes : "";
}

void expect_plain(const Error& error, size_t size) {
  expect_one_line(error);
  EXPECT_GE(error.offset, -1);
  EXPECT_LE(error.offset, static_cast<int64_t>(size));
}

// Whether the bytes are a network.
bool survives(const std::string& bytes) {
  const auto model = parse_onnx(bytes_of(bytes), "f");
  if (!model.ok()) {
    expect_plain(model.error(), bytes.size());
    return false;
  }
  const auto written = onnx_bytes(*model);
  EXPECT_TRUE(written.ok());
  const auto again = parse_onnx(bytes_of(*written), "f");
  EXPECT_TRUE(again.ok()) << again.error().str();
  if (again.ok()) {
    EXPECT_EQ(*onnx_bytes(*again), *written);
  }
  const auto network = import_onnx(*model, "f");
  if (!network.ok()) expect_plain(network.error(), bytes.size());
  return network.ok();
}

class OnnxAnomaly : public ::testing::TestWithParam<const char*> {};

TEST_P(OnnxAnomaly, EveryTruncationIsRefused) {
  const std::string whole = golden(GetParam());
  ASSERT_TRUE(survives(whole));
  for (size_t size = 0; size < whole.size(); ++size) {
    // A separate copy: a sanitizer sees a read past its end.
    const std::string cut(whole.data(), size);
    EXPECT_FALSE(survives(cut)) << size;
  }
}

TEST_P(OnnxAnomaly, EveryFlippedBitIsRefusedOrRead) {
  const std::string whole = golden(GetParam());
  size_t refused = 0;
  for (size_t i = 0; i < whole.size() * 8; ++i) {
    const std::string flipped = flip(whole, i);
    refused += survives(flipped) ? 0 : 1;
  }
  EXPECT_GT(refused, whole.size());
}

INSTANTIATE_TEST_SUITE_P(Files, OnnxAnomaly,
                         ::testing::Values("cnn1_script17.onnx", "batchnorm_dynamo18.onnx",
                                           "lstm_script17.onnx"),
                         [](const auto& c) {
                           std::string name = c.param;
                           return name.substr(0, name.find('_'));
                         });

}  // namespace
}  // namespace loom::core
