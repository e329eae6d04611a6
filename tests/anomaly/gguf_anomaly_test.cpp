// Damage to GGUF files: cut at every byte, every single bit flipped. The format has no checksum, so
// a flip in a value or in the data is undetected. Accepted files must be consistent, and a flip in
// the data changes no structure. Nothing crashes, and no read is out of bounds.
#include <algorithm>

#include "anomaly/damage.hpp"
#include "formats/gguf/file.hpp"
#include "formats/gguf_bytes.hpp"
#include "io/io_testing.hpp"

namespace loom::core {
namespace {

using test::expect_plain_error;
using test::flip;

using test::bytes_of;
using test::GgufBytes;

struct Sample {
  std::string bytes;
  size_t data_start;
};

// Values of most types and four tensors, padding everywhere.
Sample sample() {
  GgufBytes file(4, 6);
  file.key("general.architecture", GgufType::string).text("llama");
  file.key("general.alignment", GgufType::u32).u32(32);
  file.key("eps", GgufType::f32).f32(1e-5f);
  file.key("yes", GgufType::boolean).u8(1);
  file.array("tokens", GgufType::string, 3).text("a").text("").text("bcd");
  file.array("types", GgufType::i32, 3).u32(1).u32(2).u32(3);
  file.tensor("w.0", {3, 2}, 0, 0);
  file.tensor("w.1", {32, 2}, 2, 32);
  file.tensor("none", {0, 7}, 1, 96);
  file.tensor("w.2", {256}, 14, 96);
  file.pad();
  const size_t data_start = file.str().size();
  file.data(24).pad().data(36).pad().data(210).pad();
  return {file, data_start};
}

bool same_structure(const Gguf& a, const Gguf& b) {
  return std::equal(a.entries().begin(), a.entries().end(), b.entries().begin(), b.entries().end(),
                    [](const TensorEntry& x, const TensorEntry& y) {
                      return x.name == y.name && x.dtype == y.dtype && x.shape == y.shape &&
                             x.offset == y.offset && x.bytes == y.bytes;
                    });
}

// Sizes match types, tensors are consecutive inside the file, and every value can be read.
void expect_consistent(const Gguf& file, std::span<const std::byte> bytes) {
  uint64_t end = 0;
  for (size_t i = 0; i < file.entries().size(); ++i) {
    const TensorEntry& entry = file.entries()[i];
    const auto count = static_cast<uint64_t>(entry.count());
    EXPECT_EQ(count / file.type(i).values * file.type(i).bytes, entry.bytes);
    EXPECT_GE(entry.offset, end);
    ASSERT_LE(entry.offset, bytes.size());
    ASSERT_LE(entry.bytes, bytes.size() - entry.offset);
    end = entry.offset + entry.bytes;
    EXPECT_EQ(file.bytes(i).size(), entry.bytes);
    std::vector<float> values(count);
    (void)file.to_f32(i, 0, entry.count(), values.data());
  }
  for (const GgufValue& value : file.metadata()) {
    EXPECT_EQ(file.find_value(value.key), &value);
    double sum = 0;
    for (uint64_t i = 0; i < value.count(); ++i) sum += value.number(i);
    (void)sum;
    EXPECT_FALSE(value.describe().empty());
  }
}

TEST(GgufAnomaly, EveryTruncationIsRefused) {
  const Sample whole = sample();
  ASSERT_TRUE(Gguf::parse(bytes_of(whole.bytes), "f").ok());
  for (size_t size = 0; size < whole.bytes.size(); ++size) {
    // A separate copy: a sanitizer sees a read past its end.
    const std::string cut(whole.bytes.data(), size);
    const auto file = Gguf::parse(bytes_of(cut), "f");
    if (size == whole.data_start + 96 + 210) continue;  // it is complete without the last padding
    ASSERT_FALSE(file.ok()) << size;
    expect_plain_error(file.error());
  }
}

TEST(GgufAnomaly, EveryFlippedBitIsRefusedOrLeavesAConsistentFile) {
  const Sample whole = sample();
  const auto good = Gguf::parse(bytes_of(whole.bytes), "f");
  ASSERT_TRUE(good.ok()) << good.error().str();
  expect_consistent(*good, bytes_of(whole.bytes));
  size_t refused = 0;
  for (size_t i = 0; i < whole.bytes.size() * 8; ++i) {
    const std::string flipped = flip(whole.bytes, i);
    const auto file = Gguf::parse(bytes_of(flipped), "f");
    if (!file.ok()) {
      refused += i / 8 < whole.data_start ? 1 : 0;
      expect_plain_error(file.error());
      continue;
    }
    expect_consistent(*file, bytes_of(flipped));
    EXPECT_TRUE(i / 8 < whole.data_start || same_structure(*file, *good)) << i;
  }
  // Only names, keys, values and types of one size can change unseen.
  EXPECT_GT(refused, whole.data_start * 8 / 2);
}

TEST(GgufAnomaly, EveryByteReplacedByEveryOtherIsRefusedOrConsistent) {
  const Sample whole = sample();
  for (size_t at = 0; at < whole.data_start; ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = whole.bytes;
      changed[at] = static_cast<char>(value);
      const auto file = Gguf::parse(bytes_of(changed), "f");
      if (file.ok()) expect_consistent(*file, bytes_of(changed));
    }
  }
}

}  // namespace
}  // namespace loom::core
