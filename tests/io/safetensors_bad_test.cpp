// Handcrafted bad safetensors files, each with the exact text of its refusal. Offsets count from
// the start of the file; the header starts at byte 8.
#include "base/text.hpp"
#include "io/io_testing.hpp"
#include "io/weights/safetensors.hpp"

namespace loom::core {
namespace {

using test::bytes_of;
using test::expect_error;
using test::safetensors_file;
using test::safetensors_with_length;

struct Bad {
  std::string file;
  std::string error;
};

void check_bad_safe_tensors(const Bad& row) {
  expect_error(SafeTensors::parse(bytes_of(row.file), "f"), Code::bad_file, "f: " + row.error);
}

const std::vector<Bad> kFraming = {
    {"", "at byte 0: is empty; the download or the copy was not finished"},
    {"1234567", "at byte 0: the header length needs 8 bytes, 7 remain"},
    {safetensors_with_length(0, ""), "at byte 8: the header must begin with '{'"},
    {safetensors_with_length(3, "{}"), "at byte 8: the header needs 3 bytes, 2 remain"},
    {safetensors_with_length(100'000'000, "{}"),
     "at byte 8: the header needs 100000000 bytes, 2 remain"},
    {safetensors_with_length(100'000'001, "{}"),
     "at byte 0: a header of 100000001 bytes; the limit is 100000000"},
    {safetensors_with_length(UINT64_MAX, "{}"),
     "at byte 0: a header of 18446744073709551615 bytes; the limit is 100000000"},
    {safetensors_with_length(uint64_t{1} << 63, "{}"),
     "at byte 0: a header of 9223372036854775808 bytes; the limit is 100000000"},
    {safetensors_with_length(1, "{}"),
     "at byte 9: expected a key or '}', found the end of the text"},
    {safetensors_file("{}", "x"), "at byte 10: 1 bytes after the last tensor"},
};

TEST(BadSafeTensors, AreRefusedForTheirFraming) {
  for (const Bad& row : kFraming) check_bad_safe_tensors(row);
}

const std::vector<Bad> kHeaderText = {
    {safetensors_file(" {}"), "at byte 8: the header must begin with '{'"},
    {safetensors_file("[]"), "at byte 8: the header must begin with '{'"},
    {safetensors_file("\xEF\xBB\xBF{}"), "at byte 8: the header must begin with '{'"},
    {safetensors_file("{}{}"), "at byte 10: expected the end of the text, found '{'"},
    {safetensors_file(std::string_view("{}\0", 3)),
     "at byte 10: expected the end of the text, found byte 0x00"},
    {safetensors_file("{\"a\":}"), "at byte 13: expected a value, found '}'"},
    {safetensors_file("{\"a\xff\":{}}"), "at byte 11: invalid UTF-8 in a string: byte 0xff"},
    {safetensors_file(R"({"a":{},"a":{}})"), "at byte 16: duplicate key \"a\""},
    {safetensors_file(R"({"a":{},"\u0061":{}})"), "at byte 16: duplicate key \"a\""},
    {safetensors_file(R"({"a":{"dtype":"F32","dtype":"F32"}})"),
     "at byte 28: duplicate key \"dtype\""},
    {safetensors_file(R"({"a":{"shape":[[1]]}})"), "at byte 23: nested deeper than 3 levels"},
};

TEST(BadSafeTensors, AreRefusedForTheTextOfTheHeader) {
  for (const Bad& row : kHeaderText) check_bad_safe_tensors(row);
}

const std::vector<Bad> kMetadata = {
    {safetensors_file(R"({"__metadata__":null})"),
     "at byte 24: __metadata__: expected an object, found null"},
    {safetensors_file(R"({"__metadata__":["a"]})"),
     "at byte 24: __metadata__: expected an object, found an array"},
    {safetensors_file(R"({"__metadata__":{"step":7}})"),
     "at byte 32: __metadata__ \"step\": expected a string, found 7"},
    {safetensors_file(R"({"__metadata__":{"a":{}}})"),
     "at byte 29: __metadata__ \"a\": expected a string, found an object"},
    {safetensors_file(R"({"__metadata__":{},"__metadata__":{}})"),
     "at byte 27: duplicate key \"__metadata__\""},
};

TEST(BadSafeTensors, AreRefusedForTheirMetadata) {
  for (const Bad& row : kMetadata) check_bad_safe_tensors(row);
}

// One tensor "a" with these three fields and this many bytes of data.
std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets,
                size_t data) {
  return safetensors_file(
      cat(R"({"a":{"dtype":)", dtype, R"(,"shape":)", shape, R"(,"data_offsets":)", offsets, "}}"),
      std::string(data, 'd'));
}

const std::vector<Bad> kFields = {
    {safetensors_file(R"({"a":1})"), "at byte 13: tensor \"a\": expected an object, found 1"},
    {safetensors_file(R"({"a":{}})"), "at byte 13: tensor \"a\": no dtype"},
    {safetensors_file(R"({"a":{"dtype":"F32"}})"), "at byte 13: tensor \"a\": no shape"},
    {safetensors_file(R"({"a":{"dtype":"F32","shape":[]}})"),
     "at byte 13: tensor \"a\": no data_offsets"},
    {safetensors_file(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4],"x":1}})"),
     "at byte 64: tensor \"a\": unknown field \"x\""},
    {safetensors_file(cat("{\"", std::string(1025, 'n'), "\":{}}")),
     cat("at byte 1037: tensor \"", std::string(60, 'n'),
         "...\": a name of 1025 bytes; the limit is 1024")},
    {safetensors_file("{\"a\\nb\":1}"),
     "at byte 16: tensor \"a\\x0ab\": expected an object, found 1"},
    {one("\"F128\"", "[]", "[0,4]", 4), "at byte 22: tensor \"a\": unknown dtype \"F128\""},
    {one("\"f32\"", "[]", "[0,4]", 4), "at byte 22: tensor \"a\": unknown dtype \"f32\""},
    {one("\"\"", "[]", "[0,4]", 4), "at byte 22: tensor \"a\": unknown dtype \"\""},
    {one("7", "[]", "[0,4]", 4), "at byte 22: tensor \"a\": unknown dtype 7"},
    {one("null", "[]", "[0,4]", 4), "at byte 22: tensor \"a\": unknown dtype null"},
};

TEST(BadSafeTensors, AreRefusedForTheFieldsOfATensor) {
  for (const Bad& row : kFields) check_bad_safe_tensors(row);
}

const std::vector<Bad> kShapes = {
    {one("\"F32\"", "1", "[0,4]", 4),
     "at byte 36: tensor \"a\": shape: expected an array, found 1"},
    {one("\"F32\"", "null", "[0,4]", 4),
     "at byte 36: tensor \"a\": shape: expected an array, found null"},
    {one("\"F32\"", "[-1]", "[0,4]", 4),
     "at byte 37: tensor \"a\": shape: expected a count, found -1"},
    {one("\"F32\"", "[1.0]", "[0,4]", 4),
     "at byte 37: tensor \"a\": shape: expected a count, found 1.0"},
    {one("\"F32\"", "[\"1\"]", "[0,4]", 4),
     "at byte 37: tensor \"a\": shape: expected a count, found \"1\""},
    {one("\"F32\"", "[1,true]", "[0,4]", 4),
     "at byte 39: tensor \"a\": shape: expected a count, found true"},
    {one("\"F32\"", "[18446744073709551615]", "[0,4]", 4),
     "at byte 37: tensor \"a\": shape: expected a count, found 18446744073709551615"},
    {one("\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]", 4),
     "at byte 36: tensor \"a\": shape: 9 entries; the limit is 8"},
    {one("\"F32\"", "[2]", "[0,4]", 4),
     "at byte 55: tensor \"a\": shape [2] of F32 takes 8 bytes, data_offsets give 4"},
    {one("\"F32\"", "[0]", "[0,4]", 4),
     "at byte 55: tensor \"a\": shape [0] of F32 takes 0 bytes, data_offsets give 4"},
    {one("\"U8\"", "[1, 3]", "[0,4]", 4),
     "at byte 57: tensor \"a\": shape [1, 3] of U8 takes 3 bytes, data_offsets give 4"},
    {one("\"F4\"", "[3]", "[0,2]", 2),
     "at byte 54: tensor \"a\": shape [3] of F4 is not a multiple of a byte"},
    {one("\"F6_E2M3\"", "[2]", "[0,2]", 2),
     "at byte 59: tensor \"a\": shape [2] of F6_E2M3 is not a multiple of a byte"},
    {one("\"U8\"", "[4294967296,4294967296]", "[0,4]", 4),
     "at byte 74: tensor \"a\": the size of shape [4294967296, 4294967296] overflows"},
    {one("\"F64\"", "[2305843009213693952]", "[0,0]", 0),
     "at byte 73: tensor \"a\": the size of shape [2305843009213693952] overflows"},
    // 2^61 values of 8 bits: the bits overflow to 0, the bytes would not fit either.
    {one("\"U8\"", "[2305843009213693952]", "[0,0]", 0),
     "at byte 72: tensor \"a\": the size of shape [2305843009213693952] overflows"},
    {one("\"U8\"", "[4294967296,4294967296,0]", "[0,0]", 0),
     "at byte 76: tensor \"a\": the size of shape [4294967296, 4294967296, 0] overflows"},
};

TEST(BadSafeTensors, AreRefusedForTheirShapes) {
  for (const Bad& row : kShapes) check_bad_safe_tensors(row);
}

const std::vector<Bad> kOffsets = {
    {one("\"U8\"", "[4]", "4", 4),
     "at byte 54: tensor \"a\": data_offsets: expected an array, found 4"},
    {one("\"U8\"", "[4]", "[]", 4),
     "at byte 54: tensor \"a\": data_offsets: expected [begin, end]"},
    {one("\"U8\"", "[4]", "[0]", 4),
     "at byte 54: tensor \"a\": data_offsets: expected [begin, end]"},
    {one("\"U8\"", "[4]", "[0,4,4]", 4),
     "at byte 54: tensor \"a\": data_offsets: 3 entries; the limit is 2"},
    {one("\"U8\"", "[4]", "[-4,0]", 4),
     "at byte 55: tensor \"a\": data_offsets: expected a count, found -4"},
    {one("\"U8\"", "[4]", "[0,4.5]", 4),
     "at byte 57: tensor \"a\": data_offsets: expected a count, found 4.5"},
    {one("\"U8\"", "[4]", "[4,0]", 4), "at byte 54: tensor \"a\" ends at 0 before it begins"},
    {one("\"U8\"", "[4]", "[0,4]", 3),
     "at byte 54: tensor \"a\" ends at 4, the data has 3 bytes; copy or download it again"},
    {one("\"U8\"", "[4]", "[9223372036854775803,9223372036854775807]", 4),
     "at byte 54: tensor \"a\" ends at 9223372036854775807, the data has 4 bytes; copy or download "
     "it again"},
    {one("\"U8\"", "[4]", "[0,18446744073709551615]", 4),
     "at byte 57: tensor \"a\": data_offsets: expected a count, found "
     "18446744073709551615"},
    {one("\"U8\"", "[4]", "[0,4]", 6), "at byte 65: 2 bytes after the last tensor"},
    {one("\"U8\"", "[0]", "[0,0]", 6), "at byte 61: 6 bytes after the last tensor"},
    {one("\"U8\"", "[2]", "[2,4]", 4), "at byte 61: a hole of 2 bytes before tensor \"a\""},
    {one("\"U8\"", "[0]", "[1,1]", 4), "at byte 61: a hole of 1 bytes before tensor \"a\""},
};

TEST(BadSafeTensors, AreRefusedForTheirOffsets) {
  for (const Bad& row : kOffsets) check_bad_safe_tensors(row);
}

// Two U8 tensors of two bytes each, at these offsets, over this much data.
std::string two(std::string_view first, std::string_view second, size_t data) {
  return safetensors_file(cat(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)", first,
                              R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)", second, "}}"),
                          std::string(data, 'd'));
}

const std::vector<Bad> kTiling = {
    {two("[0,2]", "[1,3]", 3), "at byte 114: tensor \"b\" overlaps the one before it by 1 bytes"},
    {two("[0,2]", "[0,2]", 2), "at byte 113: tensor \"b\" overlaps the one before it by 2 bytes"},
    {two("[1,3]", "[0,2]", 3), "at byte 114: tensor \"a\" overlaps the one before it by 1 bytes"},
    {two("[0,2]", "[3,5]", 5), "at byte 115: a hole of 1 bytes before tensor \"b\""},
    {two("[4,6]", "[0,2]", 6), "at byte 115: a hole of 2 bytes before tensor \"a\""},
    {two("[0,2]", "[2,4]", 5), "at byte 117: 1 bytes after the last tensor"},
    {safetensors_file(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                      R"("e":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
                      "abcd"),
     "at byte 115: tensor \"e\" overlaps the one before it by 2 bytes"},
};

TEST(BadSafeTensors, AreRefusedForOverlapsAndHoles) {
  for (const Bad& row : kTiling) check_bad_safe_tensors(row);
}

TEST(BadSafeTensors, RefusesManyTensorsOverTheSameBytes) {
  // The denial of service the format once had: a small file, endless copies.
  std::string header = "{";
  for (int i = 0; i < 1000; ++i) {
    header += cat("\"", i, R"(":{"dtype":"U8","shape":[64],"data_offsets":[0,64]},)");
  }
  header += R"("end":{"dtype":"U8","shape":[64],"data_offsets":[0,64]}})";
  const std::string file = safetensors_file(header, std::string(64, 'd'));
  const auto result = SafeTensors::parse(bytes_of(file), "f");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("overlaps the one before it by 64 bytes"),
            std::string::npos);
}

}  // namespace
}  // namespace loom::core
