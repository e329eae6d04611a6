// The protobuf wire format against bytes written by hand from its specification, and the writer
// against the reader.
#include "io/bytes/protobuf.hpp"

#include "base/text.hpp"
#include "io/io_testing.hpp"

namespace loom::core {
namespace {

using test::bytes_of;
using test::expect_error;

std::string str(std::initializer_list<int> bytes) {
  std::string out;
  for (const int b : bytes) out += static_cast<char>(b);
  return out;
}

// The first field of a message "M".
Result<ProtoField> first(const std::string& bytes) {
  ProtoReader reader(bytes_of(bytes), "f", "M");
  return reader.next();
}

TEST(Protobuf, ReadsTheExamplesOfTheSpecification) {
  // Field 1 = 150; field 2 = "testing" (developers.google.com, "Encoding").
  const std::string bytes = str({0x08, 0x96, 0x01, 0x12, 0x07}) + "testing";
  ProtoReader reader(bytes_of(bytes), "f", "M");
  const auto number = reader.next();
  ASSERT_TRUE(number.ok());
  EXPECT_EQ(number->number, 1u);
  EXPECT_EQ(*reader.integer(*number, "a"), 150);
  const auto text = reader.next();
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*reader.text(*text, "b"), "testing");
  EXPECT_EQ(text->begin, 5u);
  EXPECT_TRUE(reader.done());
}

TEST(Protobuf, ReadsEveryWireType) {
  struct Row {
    std::string bytes;
    WireType wire;
    uint64_t value;
  };
  const std::vector<Row> rows = {
      {str({0x08, 0x00}), WireType::varint, 0},
      {str({0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01}), WireType::varint,
       UINT64_MAX},
      {str({0x09, 1, 2, 3, 4, 5, 6, 7, 8}), WireType::fixed64, 0x0807060504030201},
      {str({0x0D, 1, 2, 3, 4}), WireType::fixed32, 0x04030201},
      {str({0x0A, 0x00}), WireType::bytes, 0},
  };
  for (const Row& row : rows) {
    const auto field = first(row.bytes);
    ASSERT_TRUE(field.ok()) << field.error().str();
    EXPECT_EQ(field->wire, row.wire);
    EXPECT_EQ(field->value, row.value);
  }
}

TEST(Protobuf, RefusesWhatIsNoField) {
  struct Row {
    std::string bytes, error;
  };
  const std::string ten(10, static_cast<char>(0x80));
  const std::vector<Row> rows = {
      {str({0x80}), "f: at byte 1: M needs 1 bytes, 0 remain"},
      {str({0x00, 0x01}), "f: at byte 0: M: field number 0 cannot be"},
      {str({0x80, 0x80, 0x80, 0x80, 0x10}), "f: at byte 0: M: field number 536870912 cannot be"},
      {str({0x0B}), "f: at byte 0: M: field 1 is a group, which is not read"},
      {str({0x0C}), "f: at byte 0: M: field 1 is a group, which is not read"},
      {str({0x0E}), "f: at byte 0: M: field 1 has a wire type that does not exist"},
      {str({0x0F}), "f: at byte 0: M: field 1 has a wire type that does not exist"},
      {str({0x08}), "f: at byte 1: M: field 1 needs 1 bytes, 0 remain"},
      {str({0x08}) + ten + str({1}), "f: at byte 11: M: field 1: a varint of more than 64 bits"},
      {str({0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02}),
       "f: at byte 11: M: field 1: a varint of more than 64 bits"},
      {str({0x09, 1, 2}), "f: at byte 1: M: field 1 needs 8 bytes, 2 remain"},
      {str({0x0D, 1, 2}), "f: at byte 1: M: field 1 needs 4 bytes, 2 remain"},
      {str({0x0A, 0x05, 1}), "f: at byte 2: M: field 1 needs 5 bytes, 1 remain"},
      {str({0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01}),
       "f: at byte 11: M: field 1 needs 18446744073709551615 bytes, 0 remain"},
  };
  for (const Row& row : rows) expect_error(first(row.bytes), Code::bad_file, row.error);
}

TEST(Protobuf, RefusesValuesOfAnotherKind) {
  const std::string bytes = str({0x0A, 0x01, 0xFF});
  ProtoReader reader(bytes_of(bytes), "f", "M");
  const auto field = reader.next();
  ASSERT_TRUE(field.ok());
  expect_error(reader.integer(*field, "a"), Code::bad_file,
               "f: at byte 0: M.a: expected a varint, found a string or message");
  expect_error(reader.f32(*field, "a"), Code::bad_file,
               "f: at byte 0: M.a: expected 4 bytes, found a string or message");
  expect_error(reader.text(*field, "a"), Code::bad_file, "f: at byte 0: M.a: invalid UTF-8");
  std::vector<float> floats;
  expect_error(reader.floats(*field, "a", 9, floats), Code::bad_file,
               "f: at byte 0: M.a: 1 bytes are not a multiple of 4-byte values");
  std::vector<int64_t> whole;
  expect_error(reader.integers(*field, "a", 9, whole), Code::bad_file,
               "f: at byte 3: a needs 1 bytes, 0 remain");
}

TEST(Protobuf, StopsListsAtTheirCap) {
  ProtoWriter writer;
  writer.integers(1, {1, 2, 3});
  ProtoReader reader(bytes_of(writer.str()), "f", "M");
  const auto field = reader.next();
  ASSERT_TRUE(field.ok());
  std::vector<int64_t> out;
  expect_error(reader.integers(*field, "a", 2, out), Code::bad_file,
               "f: at byte 0: M.a: more than 2 values");
}

TEST(Protobuf, StopsAtItsDepth) {
  ProtoWriter inner;
  inner.integer(1, 1);
  for (int i = 0; i < ProtoReader::kMaxDepth; ++i) {
    ProtoWriter outer;
    outer.message(1, inner);
    inner = outer;
  }
  ProtoReader reader(bytes_of(inner.str()), "f", "M");
  for (int depth = 1; depth < ProtoReader::kMaxDepth; ++depth) {
    const auto field = reader.next();
    ASSERT_TRUE(field.ok());
    auto next = reader.enter(*field, "N");
    ASSERT_TRUE(next.ok()) << next.error().str();
    reader = std::move(*next);
  }
  const auto field = reader.next();
  ASSERT_TRUE(field.ok());
  expect_error(reader.enter(*field, "N"), Code::bad_file,
               "f: at byte 235: N.N: nested deeper than 100 messages");
}

TEST(Protobuf, ReadsPackedAndSingleValuesAlike) {
  ProtoWriter writer;
  writer.integers(1, {-1, 300});
  writer.integer(1, 5);
  writer.floats(2, {0.5f, -2.0f});
  writer.f32(2, 4.0f);
  ProtoReader reader(bytes_of(writer.str()), "f", "M");
  std::vector<int64_t> whole;
  std::vector<float> floats;
  while (!reader.done()) {
    const auto field = reader.next();
    ASSERT_TRUE(field.ok());
    if (field->number == 1) {
      ASSERT_TRUE(reader.integers(*field, "a", 9, whole).ok());
    } else {
      ASSERT_TRUE(reader.floats(*field, "b", 9, floats).ok());
    }
  }
  EXPECT_EQ(whole, (std::vector<int64_t>{-1, 300, 5}));
  EXPECT_EQ(floats, (std::vector<float>{0.5f, -2.0f, 4.0f}));
}

}  // namespace
}  // namespace loom::core
