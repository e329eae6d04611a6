// ByteReader: values, bounds, and the offset in every error.
#include "io/bytes/byte_reader.hpp"

#include "io/io_testing.hpp"

namespace loom::core {
namespace {

using test::bytes_of;
using test::expect_error;

TEST(ByteReader, ReadsLittleEndianNumbersInOrder) {
  const std::string text("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f", 15);
  ByteReader reader(bytes_of(text), "f");
  EXPECT_EQ(*reader.u8("a"), 0x01);
  EXPECT_EQ(*reader.u16("b"), 0x0302);
  EXPECT_EQ(*reader.u32("c"), 0x07060504u);
  EXPECT_EQ(*reader.u64("d"), 0x0f0e0d0c0b0a0908ull);
  EXPECT_EQ(reader.remaining(), 0u);
  EXPECT_EQ(reader.offset(), 15u);
}

TEST(ByteReader, NamesFieldAndOffsetAndStaysWhereItWas) {
  ByteReader reader(bytes_of("abc"), "x.bin");
  ASSERT_TRUE(reader.skip(1, "lead").ok());
  expect_error(reader.u32("the magic"), Code::bad_file,
               "x.bin: at byte 1: the magic needs 4 bytes, 2 remain");
  expect_error(reader.u64("the size"), Code::bad_file,
               "x.bin: at byte 1: the size needs 8 bytes, 2 remain");
  EXPECT_EQ(*reader.u16("rest"), 0x6362);
  expect_error(reader.u8("one more"), Code::bad_file,
               "x.bin: at byte 3: one more needs 1 bytes, 0 remain");
  expect_error(reader.u16("two more"), Code::bad_file,
               "x.bin: at byte 3: two more needs 2 bytes, 0 remain");
}

TEST(ByteReader, RefusesCountsThatWouldWrap) {
  ByteReader reader(bytes_of("abcdef"), "f");
  ASSERT_TRUE(reader.skip(5, "lead").ok());
  for (const uint64_t count : {uint64_t{2}, UINT64_MAX, UINT64_MAX - 4}) {
    EXPECT_FALSE(reader.take(count, "data").ok()) << count;
    EXPECT_FALSE(reader.skip(count, "data").ok()) << count;
  }
  EXPECT_EQ(reader.take(1, "data")->size(), 1u);
  EXPECT_TRUE(reader.take(0, "nothing").ok());
}

TEST(ByteReader, MakesErrorsAtItsOffset) {
  ByteReader reader(bytes_of("abc"), "f");
  ASSERT_TRUE(reader.skip(2, "lead").ok());
  EXPECT_EQ(reader.error("bad version 9").str(), "f: at byte 2: bad version 9");
}

}  // namespace
}  // namespace loom::core
