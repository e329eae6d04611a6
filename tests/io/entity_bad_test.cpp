// Handcrafted bad .entity files, each with the exact text of its refusal. Their hashes are right if
// a later check is the target. The header begins at byte 64, and in most rows its list of blobs is
// at byte 85.
#include "io/entity_testing.hpp"

namespace loom::core {
namespace {

using test::AlignedBytes;
using test::blob_item;
using test::bytes_of;
using test::entity_file;
using test::expect_error;
using test::put;
using test::sealed;
using test::with_blobs;

struct Bad {
  std::string file;
  std::string error;
  Code code = Code::bad_file;
};

void check_bad_entities(const std::vector<Bad>& rows) {
  for (const Bad& row : rows) {
    const AlignedBytes memory(row.file);
    expect_error(Entity::parse(memory.bytes(), "f"), row.code, "f: " + row.error);
  }
}

const std::string kPayload = std::string(8, 'p') + std::string(56, '\0');
const std::string kGood = entity_file(with_blobs(blob_item(kPayload)), kPayload);

// kGood with a value of the fixed part replaced, and hashes that fit.
template <class T>
std::string with_fixed(size_t at, T value) {
  std::string file = kGood;
  put(file, at, value);
  return sealed(file);
}

std::string flipped(size_t at) {
  std::string file = kGood;
  file[at] = static_cast<char>(file[at] ^ 1);
  return file;
}

TEST(BadEntities, AreBuiltFromOneThatIsGood) {
  const AlignedBytes memory(kGood);
  const auto read = Entity::parse(memory.bytes(), "f");
  ASSERT_TRUE(read.ok()) << read.error().str();
  EXPECT_TRUE((*read)->verify(0).ok());
}

TEST(BadEntities, AreRefusedForTheFixedPart) {
  const std::string no_magic =
      "at byte 0: does not begin with ENTITY and two zero bytes: not an "
      ".entity file";
  check_bad_entities({
      {"", "at byte 0: the magic needs 8 bytes, 0 remain"},
      {"ENTITY\0", "at byte 0: the magic needs 8 bytes, 6 remain"},
      {"ENTITY12" + kGood.substr(8), no_magic},
      {"entity" + kGood.substr(6), no_magic},
      {std::string(128, '\0'), no_magic},
      {kGood.substr(0, 9), "at byte 8: the version needs 2 bytes, 1 remain"},
      {kGood.substr(0, 63), "at byte 56: the hash of the first 56 bytes needs 8 bytes, 7 remain"},
      {with_fixed(8, uint16_t{1}),
       "at byte 8: has version 1; this release reads version 2 (loom convert reads version 1)",
       Code::unsupported},
      {with_fixed(8, uint16_t{3}), "at byte 8: has version 3; this release reads version 2",
       Code::unsupported},
      {with_fixed(8, uint16_t{0}), "at byte 8: has version 0; this release reads version 2",
       Code::unsupported},
      {with_fixed(8, uint16_t{0x0200}), "at byte 8: has version 512; this release reads version 2",
       Code::unsupported},
      {with_fixed(10, uint16_t{0}), "at byte 10: flags are 0, must be 1"},
      {with_fixed(10, uint16_t{3}), "at byte 10: flags are 3, must be 1"},
      {with_fixed(20, uint32_t{1}), "at byte 20: reserved bytes are not zero"},
      {with_fixed(40, uint64_t{1}), "at byte 40: reserved bytes are not zero"},
      {with_fixed(48, uint64_t{1} << 63), "at byte 48: reserved bytes are not zero"},
  });
}

TEST(BadEntities, AreRefusedForTheirLengths) {
  const uint64_t header = test::get<uint64_t>(kGood, 12);
  check_bad_entities({
      {with_fixed(12, uint64_t{100'000'064}),
       "at byte 12: header length 100000064 is above the limit of 100000000"},
      {with_fixed(12, UINT64_MAX),
       "at byte 12: header length 18446744073709551615 is above the limit of 100000000"},
      {with_fixed(12, header - 1),
       cat("at byte 12: header length ", header - 1, " is not a multiple of 64")},
      {with_fixed(12, header + 128),
       cat("at byte 64: the header needs ", header + 128, " bytes, ", header + 64, " remain")},
      {with_fixed(12, uint64_t{99'999'936}),
       cat("at byte 64: the header needs 99999936 bytes, ", header + 64, " remain")},
      {with_fixed(24, uint64_t{kGood.size() + 1}),
       cat("at byte 24: says it has ", kGood.size() + 1, " bytes, but has ", kGood.size(),
           ": it is cut short")},
      {with_fixed(24, UINT64_MAX),
       cat("at byte 24: says it has 18446744073709551615 bytes, but has ", kGood.size(),
           ": it is cut short")},
      {with_fixed(24, uint64_t{0}),
       cat("at byte 24: says it has 0 bytes, but has ", kGood.size(), ": something follows")},
      {kGood + "x", cat("at byte 24: says it has ", kGood.size(), " bytes, but has ",
                        kGood.size() + 1, ": something follows")},
  });
}

TEST(BadEntities, AreRefusedForTheirHashes) {
  const std::string fixed =
      "at byte 56: the first 56 bytes do not match their hash: the file is "
      "damaged";
  const std::string header = "at byte 64: the header does not match its hash: the file is damaged";
  std::string other_header_hash = kGood;
  put(other_header_hash, 32, uint64_t{7});
  put(other_header_hash, 56, hash64(bytes_of(other_header_hash.substr(0, 56))));
  check_bad_entities({
      {flipped(12), fixed},
      {flipped(24), fixed},
      {flipped(32), fixed},
      {flipped(55), fixed},
      {flipped(56), fixed},
      {flipped(63), fixed},
      {flipped(64), header},
      {flipped(kGood.size() - 65), header},
      {other_header_hash, header},
  });
}

TEST(BadEntities, AreRefusedForTheJsonOfTheHeader) {
  std::string deep = R"({"entity":2,"blobs":[],"s":)";
  for (int i = 0; i < 64; ++i) deep += "[";
  check_bad_entities({
      {entity_file(""), "at byte 64: expected a value, found the end of the text"},
      {entity_file("{}{}"), "at byte 66: expected the end of the text, found '{'"},
      {entity_file("[2]"), "at byte 64: the header is not a JSON object"},
      {entity_file("2"), "at byte 64: the header is not a JSON object"},
      {entity_file("{\"entity\":2"), "at byte 128: expected ',' or '}', found the end of the text"},
      {entity_file("\xEF\xBB\xBF{}"),
       "at byte 64: starts with a byte order mark; save it as plain "
       "UTF-8"},
      {entity_file("{\"entity\":2,\"\xff\":1}"),
       "at byte 77: invalid UTF-8 in a string: byte 0xff"},
      {entity_file(std::string("{\"entity\":2,\"blobs\":[]}\0", 24)),
       "at byte 87: expected the end of the text, found byte 0x00"},
      {entity_file(deep), "at byte 154: nested deeper than 64 levels"},
      {entity_file(R"({"entity":2,"entity":2,"blobs":[]})"),
       "at byte 76: duplicate key \"entity\""},
      {entity_file(R"({"entity":2,"blobs":[],"blobs":[]})"), "at byte 87: duplicate key \"blobs\""},
  });
}

TEST(BadEntities, AreRefusedForTheMembersOfTheHeader) {
  check_bad_entities({
      {entity_file("{}"), "at byte 64: entity: must be 2"},
      {entity_file(R"({"entity":1,"blobs":[]})"), "at byte 74: entity: must be 2"},
      {entity_file(R"({"entity":"2","blobs":[]})"), "at byte 74: entity: must be 2"},
      {entity_file(R"({"entity":2.0,"blobs":[]})"), "at byte 74: entity: must be 2"},
      {entity_file(R"({"entity":18446744073709551615,"blobs":[]})"),
       "at byte 74: entity: must be 2"},
      {entity_file(R"({"entity":2})"), "at byte 64: blobs: must be a list of blobs"},
      {entity_file(R"({"entity":2,"blobs":{}})"), "at byte 64: blobs: must be a list of blobs"},
      {entity_file(R"({"entity":2,"blobs":[]})", kPayload),
       "at byte 128: 64 bytes follow the last "
       "blob"},
  });
}

// One blob over 64 bytes, with members replaced; the blob's item begins at byte 85.
Bad blob(const std::vector<std::pair<std::string, std::string>>& fields, const std::string& error) {
  return {entity_file(with_blobs(blob_item(kPayload, fields)), kPayload), error};
}

TEST(BadEntities, AreRefusedForTheMembersOfABlob) {
  const std::string at = "at byte 85: blobs[0]: ";
  const std::string long_path = cat("\"", std::string(1025, 'n'), "\"");
  check_bad_entities({
      {entity_file(with_blobs("7"), kPayload), at + "expected an object, found 7"},
      {entity_file(with_blobs("null"), kPayload), at + "expected an object, found null"},
      blob({{"scale", "1"}}, "at byte 216: blobs[0]: unknown key 'scale'"),
      blob({{"path", ""}}, at + "path must be a text"),
      blob({{"path", "7"}}, at + "path must be a text"),
      blob({{"path", "\"\""}}, "at byte 93: blobs[0]: path must have 1 to 1024 bytes"),
      blob({{"path", long_path}}, "at byte 93: blobs[0]: path must have 1 to 1024 bytes"),
      blob({{"layout", ""}}, at + "layout must be a text"),
      blob({{"layout", "true"}}, at + "layout must be a text"),
      blob({{"layout", "\"r32\""}}, "at byte 106: blobs[0]: layout must be plain, r16 or text"),
      blob({{"hash", ""}}, at + "hash must be a text"),
      blob({{"hash", "\"\""}}, "at byte 173: blobs[0]: hash must be 32 hex digits"),
      blob({{"hash", cat("\"", std::string(31, '0'), "g\"")}},
           "at byte 173: blobs[0]: hash must be 32 hex digits"),
      blob({{"hash", cat("\"", std::string(32, 'A'), "\"")}},
           "at byte 173: blobs[0]: hash must be 32 hex digits"),
      blob({{"hash", cat("\"", std::string(33, '0'), "\"")}},
           "at byte 173: blobs[0]: hash must be 32 hex digits"),
      blob({{"dtype", ""}}, at + "dtype is needed with all layouts but text"),
      blob({{"layout", "\"text\""}}, at + "dtype is needed with all layouts but text"),
      blob({{"dtype", "\"float33\""}}, "at byte 122: blobs[0]: dtype is not a number type"),
      blob({{"dtype", "\"f32\""}}, "at byte 122: blobs[0]: dtype is not a number type"),
      blob({{"dtype", "\"Float32\""}}, "at byte 122: blobs[0]: dtype is not a number type"),
      blob({{"dtype", "1"}}, "at byte 122: blobs[0]: dtype is not a number type"),
      blob({{"dtype", "null"}}, "at byte 122: blobs[0]: dtype is not a number type"),
  });
}

TEST(BadEntities, AreRefusedForTheirShapes) {
  const std::string list = "at byte 85: blobs[0]: shape must be a list of up to 6 extents";
  const std::string extent = "at byte 141: blobs[0]: an extent must be an integer from 0 up";
  const std::string large = "at byte 85: blobs[0] w: the shape is too large";
  check_bad_entities({
      blob({{"shape", ""}}, list),
      blob({{"shape", "2"}}, list),
      blob({{"shape", "[1,1,1,1,1,1,2]"}}, list),
      blob({{"shape", "[-2]"}}, extent),
      blob({{"shape", "[2.0]"}}, extent),
      blob({{"shape", "[\"2\"]"}}, extent),
      blob({{"shape", "[18446744073709551615]"}}, extent),
      blob({{"shape", "[9223372036854775807]"}}, large),
      blob({{"shape", "[4294967296,4294967296]"}}, large),
      blob({{"shape", "[4294967296,4294967296,0]"}}, large),
      blob({{"shape", "[281474976710656]"}},
           "at byte 85: blobs[0] w: has 8 bytes, its shape needs 1125899906842624"),
      blob({{"shape", "[281474976710657]"}}, large),
      // 2^62 values of 4 bytes are 2^64 bytes: none.
      blob({{"shape", "[4611686018427387904]"}, {"length", "0"}}, large),
      blob({{"shape", "[1]"}}, "at byte 85: blobs[0] w: has 8 bytes, its shape needs 4"),
      blob({{"shape", "[3]"}}, "at byte 85: blobs[0] w: has 8 bytes, its shape needs 12"),
      blob({{"shape", "[]"}}, "at byte 85: blobs[0] w: has 8 bytes, its shape needs 4"),
      blob({{"shape", "[2,0]"}}, "at byte 85: blobs[0] w: has 8 bytes, its shape needs 0"),
      blob({{"layout", "\"r16\""}}, "at byte 85: blobs[0] w: layout r16 is for matrices"),
      blob({{"layout", "\"r16\""}, {"shape", "[1,2,1]"}},
           "at byte 85: blobs[0] w: layout r16 is for matrices"),
      blob({{"layout", "\"r16\""}, {"shape", "[1,2]"}},
           "at byte 85: blobs[0] w: has 8 bytes, its shape needs 128"),
      blob({{"layout", "\"text\""}, {"dtype", ""}, {"shape", "[4,2]"}},
           "at byte 85: blobs[0] w: layout text has one axis"),
      blob({{"layout", "\"text\""}, {"dtype", ""}, {"shape", "[]"}},
           "at byte 85: blobs[0] w: layout text has one axis"),
      blob({{"layout", "\"text\""}, {"dtype", ""}, {"shape", "[9]"}},
           "at byte 85: blobs[0] w: has 8 bytes, its shape needs 9"),
  });
}

TEST(BadEntities, AreRefusedForOffsetsAndLengths) {
  const std::string whole = "must be an integer from 0 up";
  const std::string fit = " bytes do not fit the 64 that are left";
  check_bad_entities({
      blob({{"offset", ""}}, "at byte 85: blobs[0]: offset " + whole),
      blob({{"offset", "-64"}}, "at byte 153: blobs[0]: offset " + whole),
      blob({{"offset", "0.0"}}, "at byte 153: blobs[0]: offset " + whole),
      blob({{"offset", "18446744073709551552"}}, "at byte 153: blobs[0]: offset " + whole),
      blob({{"offset", "64"}}, "at byte 85: blobs[0] w: offset is 64, must be 0"),
      blob({{"offset", "9223372036854775807"}},
           "at byte 85: blobs[0] w: offset is 9223372036854775807, must be 0"),
      blob({{"length", ""}}, "at byte 85: blobs[0]: length " + whole),
      blob({{"length", "-1"}}, "at byte 164: blobs[0]: length " + whole),
      blob({{"length", "\"8\""}}, "at byte 164: blobs[0]: length " + whole),
      blob({{"length", "18446744073709551615"}}, "at byte 164: blobs[0]: length " + whole),
      blob({{"length", "65"}}, "at byte 85: blobs[0] w: its 65" + fit),
      blob({{"length", "9223372036854775807"}},
           "at byte 85: blobs[0] w: its 9223372036854775807" + fit),
      blob({{"length", "4"}}, "at byte 85: blobs[0] w: has 4 bytes, its shape needs 8"),
      {entity_file(with_blobs(blob_item(kPayload)), kPayload.substr(0, 32)),
       "at byte 85: blobs[0] w: its padding is beyond the end of the file"},
      {entity_file(with_blobs(blob_item(kPayload)), kPayload + "x"),
       "at byte 320: 1 bytes follow the last blob"},
  });
}

// Two blobs of 64 bytes; the second item has these members.
Bad second(const std::vector<std::pair<std::string, std::string>>& fields,
           const std::string& error) {
  std::vector<std::pair<std::string, std::string>> all = {{"path", "\"x\""}, {"offset", "64"}};
  all.insert(all.end(), fields.begin(), fields.end());
  const std::string list = blob_item(kPayload) + "," + blob_item(kPayload, all);
  return {entity_file(with_blobs(list), kPayload + kPayload), error};
}

TEST(BadEntities, AreRefusedForOverlapsHolesAndNamesThatStandTwice) {
  const AlignedBytes good(second({}, "").file);
  EXPECT_TRUE(Entity::parse(good.bytes(), "f").ok());
  const std::string at = "at byte 209: blobs[1] ";
  check_bad_entities({
      second({{"offset", "0"}}, at + "x: offset is 0, must be 64"),
      second({{"offset", "8"}}, at + "x: offset is 8, must be 64"),
      second({{"offset", "128"}}, at + "x: offset is 128, must be 64"),
      second({{"path", "\"w\""}}, at + "w: the path occurs twice"),
      second({{"path", "\"\\u0077\""}}, at + "w: the path occurs twice"),
      second({{"path", "\"a\\nb\""}, {"offset", "1"}}, at + "a\\x0ab: offset is 1, must be 64"),
  });
}

TEST(BadEntities, ManyEmptyBlobsOverTheSameByteAreFine) {
  std::string list;
  for (int i = 0; i < 1000; ++i) {
    list += i == 0 ? "" : ",";
    list += blob_item("", {{"path", cat("\"", i, "\"")}, {"shape", "[0]"}, {"length", "0"}});
  }
  const AlignedBytes memory(entity_file(with_blobs(list)));
  const auto read = Entity::parse(memory.bytes(), "f");
  ASSERT_TRUE(read.ok()) << read.error().str();
  EXPECT_TRUE((*read)->verify(999).ok());
}

TEST(BadEntities, AreRefusedByVerifyForPaddingThatIsNotZero) {
  std::string payload = kPayload;
  payload.back() = 'x';
  const AlignedBytes memory(entity_file(with_blobs(blob_item(payload)), payload));
  const auto read = Entity::parse(memory.bytes(), "f");
  ASSERT_TRUE(read.ok()) << read.error().str();
  const Status verified = (*read)->verify(0);
  ASSERT_FALSE(verified.ok());
  EXPECT_EQ(verified.error().str(), "f: at byte 264: w has padding that is not zero");
}

// The hashes are right, but kernels must not read the matrix.
TEST(BadEntities, AreRefusedByVerifyForZeroPointsThatAreNoCodes) {
  for (const DType dtype : {DType::u8, DType::u4, DType::u2, DType::u16}) {
    const R16 g = r16_geometry(dtype, 2, 3);
    std::string payload(static_cast<size_t>(g.bytes()), '\0');
    put(payload, static_cast<size_t>(g.zeros) + 15 * 4, int32_t{1} << g.bits);
    const std::string item = blob_item(payload, {{"layout", "\"r16\""},
                                                 {"dtype", cat("\"", dtype_name(dtype), "\"")},
                                                 {"shape", "[2,3]"},
                                                 {"length", std::to_string(payload.size())}});
    const AlignedBytes memory(entity_file(with_blobs(item), payload));
    const auto read = Entity::parse(memory.bytes(), "f");
    ASSERT_TRUE(read.ok()) << read.error().str();
    const Status verified = (*read)->verify(0);
    ASSERT_FALSE(verified.ok());
    EXPECT_EQ(verified.error().message,
              cat("w has a zero point that is not a code of ", dtype_name(dtype)));
  }
}

}  // namespace
}  // namespace loom::core
