// Handcrafted bad NPY files, each with the exact text of its refusal. The header of version 1
// starts at byte 10; offsets count from the start of the file that holds the array.
#include "base/text.hpp"
#include "io/arrays/npy.hpp"
#include "io/io_testing.hpp"

namespace loom::core {
namespace {

using test::bytes_of;
using test::expect_error;

struct Bad {
  std::string file;
  std::string error;
};

void check_bad_npy(const Bad& row) {
  expect_error(parse_npy(bytes_of(row.file), "f"), Code::bad_file, "f: " + row.error);
}

// Magic and version; the length of the header has 2 bytes in version 1, 4 in later ones.
std::string npy_start(char major, char minor, uint32_t length) {
  std::string file = "\x93NUMPY";
  file += {major, minor};
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) file += static_cast<char>(length >> (8 * i));
  return file;
}

// Version 1, with this header and this much data.
std::string npy(std::string_view header, size_t data = 4) {
  return npy_start(1, 0, static_cast<uint32_t>(header.size())) + std::string(header) +
         std::string(data, 'd');
}

std::string with_shape(std::string_view shape, size_t data = 4) {
  return npy(cat("{'descr':'<f4','fortran_order':False,'shape':", shape, "}"), data);
}

std::string with_type(std::string_view descr) {
  return npy(cat("{'descr':", descr, ",'fortran_order':False,'shape':(1,)}"));
}

const std::string kHeader = "{'descr':'<f4','fortran_order':False,'shape':(1,)}";

TEST(BadNpy, StandsBesideAGoodOne) {
  ASSERT_TRUE(parse_npy(bytes_of(npy(kHeader)), "f").ok());
  const std::string long_length = npy_start(3, 0, static_cast<uint32_t>(kHeader.size()));
  ASSERT_TRUE(parse_npy(bytes_of(long_length + kHeader + "dddd"), "f").ok());
}

const std::vector<Bad> kFraming = {
    {"", "at byte 0: not an NPY array: it must begin with \\x93NUMPY"},
    {"\x93NUMP", "at byte 0: not an NPY array: it must begin with \\x93NUMPY"},
    {"\x94NUMPY\x01", "at byte 0: not an NPY array: it must begin with \\x93NUMPY"},
    {"\x93NUMpY\x01", "at byte 0: not an NPY array: it must begin with \\x93NUMPY"},
    {"\x93NUMPY", "at byte 6: the version needs 1 bytes, 0 remain"},
    {"\x93NUMPY\x01", "at byte 7: the version needs 1 bytes, 0 remain"},
    {npy_start(0, 0, 0), "at byte 6: NPY version 0.0, must be 1.0, 2.0 or 3.0"},
    {npy_start(4, 0, 0), "at byte 6: NPY version 4.0, must be 1.0, 2.0 or 3.0"},
    {npy_start('\xff', 0, 0), "at byte 6: NPY version 255.0, must be 1.0, 2.0 or 3.0"},
    {npy_start(1, 1, 0), "at byte 6: NPY version 1.1, must be 1.0, 2.0 or 3.0"},
    {npy_start(2, 7, 0), "at byte 6: NPY version 2.7, must be 1.0, 2.0 or 3.0"},
    {npy_start(1, 0, 0).substr(0, 9), "at byte 8: the header length needs 2 bytes, 1 remain"},
    {npy_start(2, 0, 0).substr(0, 11), "at byte 8: the header length needs 4 bytes, 3 remain"},
    {npy_start(1, 0, 65535) + kHeader, "at byte 10: the NPY header needs 65535 bytes, 50 remain"},
    {npy_start(2, 0, 1 << 20) + kHeader,
     "at byte 12: the NPY header needs 1048576 bytes, 50 remain"},
    {npy_start(2, 0, (1 << 20) + 1) + kHeader,
     "at byte 8: an NPY header of 1048577 bytes; the limit is 1048576"},
    {npy_start(3, 0, UINT32_MAX) + kHeader,
     "at byte 8: an NPY header of 4294967295 bytes; the limit is 1048576"},
    {npy_start(1, 0, 49) + kHeader, "at byte 59: NPY header: expected , or }"},
    {npy_start(1, 0, 51) + kHeader + "dddd",
     "at byte 60: NPY header: text after the closing brace"},
};

TEST(BadNpy, AreRefusedForTheirFraming) {
  for (const Bad& row : kFraming) check_bad_npy(row);
}

const std::vector<Bad> kHeaderText = {
    {npy(""), "at byte 10: NPY header: expected {"},
    {npy("   \n"), "at byte 14: NPY header: expected {"},
    {npy("[]"), "at byte 10: NPY header: expected {"},
    {npy("{"), "at byte 11: NPY header: expected a quoted string"},
    {npy("{}"), "at byte 12: NPY header: descr, fortran_order or shape is absent"},
    {npy("{,}"), "at byte 11: NPY header: expected a quoted string"},
    {npy("{descr:'<f4'}"), "at byte 11: NPY header: expected a quoted string"},
    {npy("{'descr'}"), "at byte 18: NPY header: expected :"},
    {npy("{'descr':'<f4'"), "at byte 24: NPY header: expected , or }"},
    {npy("{'descr':'<f4' 'shape':()}"), "at byte 25: NPY header: expected , or }"},
    {npy("{'descr':'<f4,'shape':()}"), "at byte 25: NPY header: expected , or }"},
    {npy("{'descr:<f4}"), "at byte 11: NPY header: a string is never closed"},
    {npy("{'':1}"), "at byte 14: NPY header: unknown key ''"},
    {npy("{'Descr':'<f4'}"), "at byte 19: NPY header: unknown key 'Descr'"},
    {npy(std::string_view("{'de\0cr':1}", 11)), "at byte 19: NPY header: unknown key 'de\\x00cr'"},
    {npy("{'shape':(),'shape':()}"), "at byte 30: NPY header: 'shape' occurs twice"},
    {npy("{'fortran_order':True,'fortran_order':False}"),
     "at byte 48: NPY header: 'fortran_order' occurs twice"},
    {npy("{'fortran_order':False,'shape':(1,)}"),
     "at byte 46: NPY header: descr, fortran_order or shape is absent"},
    {npy("{'descr':'<f4','shape':(1,)}"),
     "at byte 38: NPY header: descr, fortran_order or shape is absent"},
    {npy("{'descr':'<f4','fortran_order':0,'shape':(1,)}"),
     "at byte 41: NPY header: expected True or False"},
    {npy("{'descr':'<f4','fortran_order':'False','shape':(1,)}"),
     "at byte 41: NPY header: expected True or False"},
    {npy("{'descr':'<f4','fortran_order':Falsehood,'shape':(1,)}"),
     "at byte 46: NPY header: expected , or }"},
    {npy(kHeader + "x"), "at byte 60: NPY header: text after the closing brace"},
    {npy(kHeader + kHeader), "at byte 60: NPY header: text after the closing brace"},
    {npy(kHeader + std::string(1, '\0')), "at byte 60: NPY header: text after the closing brace"},
};

TEST(BadNpy, AreRefusedForTheTextOfTheHeader) {
  for (const Bad& row : kHeaderText) check_bad_npy(row);
}

const std::vector<Bad> kTypes = {
    {with_type("''"),
     "at byte 10: type '' cannot be read; save integers or floats of 16 to 64 bits"},
    {with_type("'f4'"),
     "at byte 10: type 'f4' cannot be read; save integers or floats of 16 to 64 bits"},
    {with_type("'<f3'"),
     "at byte 10: type '<f3' cannot be read; save integers or floats of 16 to 64 bits"},
    {with_type("'<f16'"),
     "at byte 10: type '<f16' cannot be read; save integers or floats of 16 to 64 bits"},
    {with_type("'<c8'"),
     "at byte 10: type '<c8' cannot be read; save integers or floats of 16 to 64 bits"},
    {with_type("'<U1'"),
     "at byte 10: type '<U1' cannot be read; save integers or floats of 16 to 64 bits"},
    {with_type("'|S4'"),
     "at byte 10: type '|S4' cannot be read; save integers or floats of 16 to 64 bits"},
    {with_type("'|V4'"),
     "at byte 10: type '|V4' cannot be read; save integers or floats of 16 to 64 bits"},
    {with_type("'|O'"),
     "at byte 10: type '|O' cannot be read; save integers or floats of 16 to 64 bits"},
    {with_type("'<M8[ns]'"),
     "at byte 10: type '<M8[ns]' cannot be read; save integers or floats of 16 to 64 bits"},
    {with_type("'!f4'"),
     "at byte 10: type '!f4' cannot be read; save integers or floats of 16 to 64 bits"},
    {with_type("'<f4 '"),
     "at byte 10: type '<f4 ' cannot be read; save integers or floats of 16 to 64 bits"},
    {with_type("'<\n'"),
     "at byte 10: type '<\\x0a' cannot be read; save integers or floats of 16 to 64 bits"},
    {with_type("7"), "at byte 19: NPY header: expected a quoted string"},
    {with_type("None"), "at byte 19: NPY header: expected a quoted string"},
    {with_type("[('a','<f4')]"),
     "at byte 19: NPY header: arrays of records cannot be read; save plain numbers"},
    {with_type("('<f4',(1,))"), "at byte 19: NPY header: expected a quoted string"},
};

TEST(BadNpy, AreRefusedForTheirTypes) {
  for (const Bad& row : kTypes) check_bad_npy(row);
}

const std::vector<Bad> kShapes = {
    {with_shape("1"), "at byte 55: NPY header: expected a shape in parentheses"},
    {with_shape("[1]"), "at byte 55: NPY header: expected a shape in parentheses"},
    {with_shape("None"), "at byte 55: NPY header: expected a shape in parentheses"},
    {with_shape("(1"), "at byte 57: NPY header: expected , or )"},
    {with_shape("(1)"), "at byte 58: NPY header: a shape of one axis needs a comma"},
    {with_shape("(,)"), "at byte 56: NPY header: expected an extent, an integer below 2^63"},
    {with_shape("(1,,)"), "at byte 58: NPY header: expected an extent, an integer below 2^63"},
    {with_shape("(1 1)"), "at byte 58: NPY header: expected , or )"},
    {with_shape("(-1,)"), "at byte 56: NPY header: expected an extent, an integer below 2^63"},
    {with_shape("(1.0,)"), "at byte 57: NPY header: expected , or )"},
    {with_shape("(0x1,)"), "at byte 57: NPY header: expected , or )"},
    {with_shape("(1L,)"), "at byte 57: NPY header: expected , or )"},
    {with_shape("('1',)"), "at byte 56: NPY header: expected an extent, an integer below 2^63"},
    {with_shape("((1,),)"), "at byte 56: NPY header: expected an extent, an integer below 2^63"},
    {with_shape("(9223372036854775808,)"),
     "at byte 56: NPY header: expected an extent, an integer below 2^63"},
    {with_shape("(9223372036854775807,)"),
     "at byte 78: an array [9223372036854775807] of f32 is too large, 4 remain"},
    {with_shape("(4294967296,4294967296)"),
     "at byte 79: an array [4294967296, 4294967296] of f32 is too large, 4 remain"},
    {with_shape("(4294967296,4294967296,0)"),
     "at byte 81: an array [4294967296, 4294967296, 0] of f32 is too large, 4 remain"},
    {with_shape("(4611686018427387904,)"),
     "at byte 78: an array [4611686018427387904] of f32 is too large, 4 remain"},
    {with_shape("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"),
     "at byte 121: NPY header: more than 32 axes"},
};

TEST(BadNpy, AreRefusedForTheirShapes) {
  for (const Bad& row : kShapes) check_bad_npy(row);
}

const std::vector<Bad> kSizes = {
    {with_shape("(1,)", 0), "at byte 60: an array [1] of f32 takes 4 bytes, 0 remain"},
    {with_shape("(1,)", 3), "at byte 60: an array [1] of f32 takes 4 bytes, 3 remain"},
    {with_shape("(1,)", 5), "at byte 60: an array [1] of f32 takes 4 bytes, 5 remain"},
    {with_shape("(2,3)", 23), "at byte 61: an array [2, 3] of f32 takes 24 bytes, 23 remain"},
    {with_shape("()", 0), "at byte 58: an array [] of f32 takes 4 bytes, 0 remain"},
    {with_shape("()", 8), "at byte 58: an array [] of f32 takes 4 bytes, 8 remain"},
    {with_shape("(0,)", 1), "at byte 60: an array [0] of f32 takes 0 bytes, 1 remain"},
    {with_shape("(0,1000)", 4), "at byte 64: an array [0, 1000] of f32 takes 0 bytes, 4 remain"},
};

TEST(BadNpy, AreRefusedForTheSizeOfTheirData) {
  for (const Bad& row : kSizes) check_bad_npy(row);
}

TEST(BadNpy, OffsetsCountFromTheStartOfTheFileAroundIt) {
  const std::pair<std::string, std::string> rows[] = {
      {"x", "at byte 1000: not an NPY array: it must begin with \\x93NUMPY"},
      {npy_start(9, 0, 0), "at byte 1006: NPY version 9.0, must be 1.0, 2.0 or 3.0"},
      {npy("{}"), "at byte 1012: NPY header: descr, fortran_order or shape is absent"},
      {with_type("'|O'"),
       "at byte 1010: type '|O' cannot be read; save integers or floats of 16 to 64 bits"},
      {with_shape("(2,)"), "at byte 1060: an array [2] of f32 takes 8 bytes, 4 remain"},
      {npy_start(1, 0, 99), "at byte 1010: the NPY header needs 99 bytes, 0 remain"},
  };
  for (const auto& [file, message] : rows)
    expect_error(parse_npy(bytes_of(file), "f", 1000), Code::bad_file, "f: " + message);
}

}  // namespace
}  // namespace loom::core
