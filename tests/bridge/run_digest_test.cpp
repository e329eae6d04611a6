// The texts of a checkpoint have a digest: a flipped bit in them is damage, not a different run.
#include <array>

#include "e2e/temp_folder.hpp"
#include "io/io_testing.hpp"
#include "train_io/weights/training_parts.hpp"

namespace loom::core {
namespace {

TEST(RunDigest, TellsATextThatWasNotSaved) {
  const test::TempFolder folder;
  SafeMetadata metadata = {{"loom", "x"}, {"network", "{\"a\": \"\xC3\xA9\"}"}, {"options", "{}"}};
  add_digest(metadata);
  const std::array<float, 2> values = {1, 2};
  std::vector<SafeOutput> tensors;
  tensors.push_back({"w", SafeDType::f32, {2}, std::as_bytes(std::span(values))});
  const std::string path = folder.path() + "/c.safetensors";
  ASSERT_TRUE(write_safetensors(path, std::move(tensors), metadata).ok());
  const auto whole = open_weights(path);
  ASSERT_TRUE(whole.ok()) << whole.error().str();
  EXPECT_TRUE(check_digest(*whole).ok());
  std::string bytes = folder.read("c.safetensors");
  bytes[bytes.find("network") + 13] ^= 1;
  const auto damaged = open_weights(folder.write("d.safetensors", bytes));
  ASSERT_TRUE(damaged.ok()) << damaged.error().str();
  const Status status = check_digest(*damaged);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(code_name(status.error().code), code_name(Code::bad_file));
}

}  // namespace
}  // namespace loom::core
