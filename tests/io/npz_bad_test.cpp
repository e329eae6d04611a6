// Handcrafted bad NPZ files, each with the exact text of its refusal: ZIP structures with false
// fields, and members that are not arrays. The first member's data starts at byte 35.
#include "base/text.hpp"
#include "io/arrays/npy.hpp"
#include "io/zip_testing.hpp"

namespace loom::core {
namespace {

using test::bytes_of;
using test::expect_error;
using test::small_npy;
using test::ZipFile;
using test::ZipMember;

struct Bad {
  std::string file;
  std::string error;
};

Result<std::vector<std::pair<std::string, ArrayView>>> parse(const std::string& file,
                                                             std::deque<std::string>& storage) {
  return parse_npz(bytes_of(file), "f", storage);
}

void check_bad_npz(const Bad& row) {
  std::deque<std::string> storage;
  expect_error(parse(row.file, storage), Code::bad_file, "f: " + row.error);
}

// `text` as one stored block of deflate.
std::string block(const std::string& text) {
  return test::le(1, 1) + test::le(text.size(), 2) + test::le(~text.size(), 2) + text;
}

ZipFile zip(ZipMember member) {
  ZipFile file;
  file.members = {std::move(member)};
  return file;
}
std::string one(ZipMember member) {
  return zip(std::move(member)).bytes();
}
std::string ended(int64_t count, int64_t size, int64_t begin) {
  ZipFile file = zip({});
  file.count = file.here = count;
  file.size = size;
  file.begin = begin;
  return file.bytes();
}
ZipMember deflated(std::string data, int64_t size, int64_t crc) {
  ZipMember m;
  m.data = std::move(data);
  m.method = 8;
  m.size = size;
  m.crc = crc;
  return m;
}

TEST(BadNpz, StandBesideGoodOnes) {
  const auto crc = static_cast<int64_t>(crc32_of(bytes_of(small_npy())));
  ZipFile file;
  file.members.resize(5);
  file.members[1] = deflated(block(small_npy()), static_cast<int64_t>(small_npy().size()), crc);
  file.members[1].name = "a/b.npy";  // only a name: it is not used as a path
  file.members[2].name = "../c";
  file.members[3].name = "/etc/passwd";
  file.members[4].name = std::string("d\0e.npy", 7);
  file.comment = "a comment";
  std::deque<std::string> storage;
  const auto arrays = parse(file.bytes(), storage);
  ASSERT_TRUE(arrays.ok()) << arrays.error().str();
  ASSERT_EQ(arrays->size(), 5u);
  EXPECT_EQ((*arrays)[0].second.file_offset, 35u + 60);
  EXPECT_EQ((*arrays)[1].first, "a/b");
  EXPECT_EQ((*arrays)[2].first, "../c");
  EXPECT_EQ((*arrays)[4].first, std::string("d\0e", 3));
  ASSERT_TRUE(parse(ZipFile{}.bytes(), storage).ok());
}

const std::string kGood = one({});

const std::vector<Bad> kEnds = {
    {"", "at byte 0: not a whole ZIP file: its directory is absent; copy or download it again"},
    {"PK\x05\x06",
     "at byte 4: not a whole ZIP file: its directory is absent; copy or download it again"},
    {"hello, world, this is not a ZIP file....",
     "at byte 40: not a whole ZIP file: its directory is absent; copy or download it again"},
    {kGood.substr(0, kGood.size() - 1),
     "at byte 169: not a whole ZIP file: its directory is absent; copy or download it again"},
    {kGood + "x",
     "at byte 171: not a whole ZIP file: its directory is absent; copy or download it again"},
    {kGood.substr(0, 93),
     "at byte 93: not a whole ZIP file: its directory is absent; copy or download it again"},
    {ended(2, -1, -1), "at byte 148: a directory entry needs 4 bytes, 0 remain"},
    {ended(0, -1, -1), "at byte 97: the directory has 51 bytes after its last member"},
    {ended(65535, -1, -1), "at byte 148: needs ZIP64 records, which are absent"},
    {ended(65534, -1, -1), "at byte 148: a directory entry needs 4 bytes, 0 remain"},
    {ended(1, 0, -1), "at byte 148: a directory of 0 bytes at byte 97 does not end here"},
    {ended(1, UINT32_MAX, -1), "at byte 148: needs ZIP64 records, which are absent"},
    {ended(1, -1, UINT32_MAX), "at byte 148: needs ZIP64 records, which are absent"},
    {ended(1, -1, 0), "at byte 148: a directory of 51 bytes at byte 0 does not end here"},
    {ended(1, -1, UINT32_MAX - 1),
     "at byte 148: a directory of 51 bytes at byte 4294967294 does not end here"},
    {ended(1, 0, 146), "at byte 148: a directory of 0 bytes at byte 146 does not end here"},
    {ended(1, 146, 0), "at byte 148: a directory of 146 bytes at byte 0 does not end here"},
    {[] {
       ZipFile f = zip({});
       f.disks = 1;
       return f.bytes();
     }(),
     "at byte 148: a part of a ZIP file of several parts"},
    {[] {
       ZipFile f = zip({});
       f.here = 0;
       return f.bytes();
     }(),
     "at byte 148: a part of a ZIP file of several parts"},
    {[] {
       ZipFile f = zip({});
       f.between = "a digital signature";
       return f.bytes();
     }(),
     "at byte 167: a directory of 51 bytes at byte 97 does not end here"},
};

TEST(BadNpz, AreRefusedForTheirEnds) {
  for (const Bad& row : kEnds) check_bad_npz(row);
}

const std::vector<Bad> kEntries = {
    {one({.signature = 0x02014B51}), "at byte 101: no directory entry where one must be"},
    {one({.signature = 0x04034B50}), "at byte 101: no directory entry where one must be"},
    {one({.name = ""}), "at byte 138: a member without a name"},
    {one({.flags = 1}), "at byte 148: 'x.npy' is encrypted"},
    {one({.name = "a\nb", .flags = 1}), "at byte 144: 'a\\x0ab' is encrypted"},
    {one({.flags = 0x41}), "at byte 148: 'x.npy' is encrypted"},
    {one({.packed = UINT32_MAX}), "at byte 148: 'x.npy' needs ZIP64 sizes, which are absent"},
    {one({.size = UINT32_MAX}), "at byte 148: 'x.npy' needs ZIP64 sizes, which are absent"},
    {one({.local = UINT32_MAX}), "at byte 148: 'x.npy' needs ZIP64 sizes, which are absent"},
    {one({.local = 1}), "at byte 1: no local header of 'x.npy' here"},
    {one({.local = 95}), "at byte 95: a local header needs 4 bytes, 2 remain"},
    {one({.local = 94}), "at byte 94: a local header needs 4 bytes, 3 remain"},
    {one({.local = 91}), "at byte 91: no local header of 'x.npy' here"},
    {one({.local = UINT32_MAX - 1}),
     "at byte 0: the place of 'x.npy' needs 4294967294 bytes, 97 remain"},
    {one({.own_signature = 0x08074B50}), "at byte 0: no local header of 'x.npy' here"},
    {one({.own_name = "y.npy"}), "at byte 0: the header of 'x.npy' is not what the directory says"},
    {one({.own_name = ""}), "at byte 0: the header of 'x.npy' is not what the directory says"},
    {one({.own_name = std::string(65535, 'x')}),
     "at byte 0: the header of 'x.npy' is not what the directory says"},
    {one({.own_method = 8}), "at byte 0: the header of 'x.npy' is not what the directory says"},
    {one({.packed = 61}), "x.npy: at byte 35: stored in 61 bytes, but its size says 62"},
    {one({.packed = 5000000}), "at byte 35: member 'x.npy' needs 5000000 bytes, 62 remain"},
    {one({.packed = 59}), "x.npy: at byte 35: stored in 59 bytes, but its size says 62"},
    {one({.size = 61}), "x.npy: at byte 35: stored in 62 bytes, but its size says 61"},
    {one({.size = 0}), "x.npy: at byte 35: stored in 62 bytes, but its size says 0"},
    {one({.packed = 59, .size = 59}), "x.npy: at byte 35: the checksum of the data is wrong"},
    {one({.crc = 0}), "x.npy: at byte 35: the checksum of the data is wrong"},
    {one({.method = 1}), "x.npy: at byte 35: compression method 1 is not read"},
    {one({.method = 12}), "x.npy: at byte 35: compression method 12 is not read"},
    {one({.method = 14}), "x.npy: at byte 35: compression method 14 is not read"},
    {one({.method = 93}), "x.npy: at byte 35: compression method 93 is not read"},
    {one({.method = 99}), "x.npy: at byte 35: compression method 99 is not read"},
    {one({.method = 65535}), "x.npy: at byte 35: compression method 65535 is not read"},
};

TEST(BadNpz, AreRefusedForTheirEntries) {
  for (const Bad& row : kEntries) check_bad_npz(row);
}

const std::vector<Bad> kMembers = {
    {one({.name = "x/", .data = ""}),
     "x/: at byte 32: not an NPY array: it must begin with \\x93NUMPY"},
    {one({.name = "readme.txt", .data = "hello"}),
     "readme.txt: at byte 40: not an NPY array: it must begin with \\x93NUMPY"},
    {one({.data = small_npy() + "x"}),
     "x.npy: at byte 95: an array [2] of u8 takes 2 bytes, 3 remain"},
    {one({.data = small_npy().substr(0, 30)}),
     "x.npy: at byte 45: the NPY header needs 50 bytes, 20 remain"},
    {one({.data = "\x93NUMPY\x09\x01"}),
     "x.npy: at byte 41: NPY version 9.1, must be 1.0, 2.0 or 3.0"},
    {one({.data = small_npy(), .extra = std::string(30, 'e')}) + "x",
     "at byte 201: not a whole ZIP file: its directory is absent; copy or download it again"},
    {one({.data = "PK\x03\x04", .extra = std::string(30, 'e')}),
     "x.npy: at byte 65: not an NPY array: it must begin with \\x93NUMPY"},
    {one(deflated("", 60, 0)), "x.npy: at byte 35: the compressed data ends too early"},
    {one(deflated("\x07", 60, 0)),
     "x.npy: at byte 36: damaged compressed data: invalid block type"},
    {one(deflated(std::string("\x01\x05\x00\xfa\xff", 5), 60, 0)),
     "x.npy: at byte 40: the compressed data ends too early"},
    {one(deflated(std::string("\x01\x05\x00\xfb\xff"
                              "ab",
                              7),
                  60, 0)),
     "x.npy: at byte 40: damaged compressed data: invalid stored block lengths"},
    {one(deflated(block("abcde"), 5, 0)), "x.npy: at byte 35: the checksum of the data is wrong"},
    {one(deflated(block("abcde"), 4, 0)), "x.npy: at byte 45: unpacks to more than 4 bytes"},
    {one(deflated(block("abcde"), 6, 0)), "x.npy: at byte 45: unpacks to 5 bytes, must be 6"},
    {one(deflated(block("abcde"), 0, 0)), "x.npy: at byte 41: unpacks to more than 0 bytes"},
    {one(deflated(block("abcde") + "xyz", 5, 0)),
     "x.npy: at byte 45: 3 bytes after the compressed data"},
    {one(deflated(block("abcde"), 5, 0x8587D865)),
     "x.npy: at byte 0: not an NPY array: it must begin with \\x93NUMPY"},
    {one(deflated(small_npy(), 60, 0)), "x.npy: at byte 43: 54 bytes after the compressed data"},
};

TEST(BadNpz, AreRefusedForTheirMembers) {
  for (const Bad& row : kMembers) check_bad_npz(row);
}

std::string two(ZipMember first, ZipMember second) {
  ZipFile file;
  file.members = {std::move(first), std::move(second)};
  return file.bytes();
}

const std::vector<Bad> kPairs = {
    {two({}, {}), "at byte 296: two members are called 'x'"},
    {two({.name = "x"}, {}), "at byte 288: two members are called 'x'"},
    {two({}, {.name = "x"}), "at byte 288: two members are called 'x'"},
    {two({}, {.name = "y.npy", .local = 0}),
     "at byte 0: the header of 'y.npy' is not what the directory says"},
    {two({.own_name = "x.npy"}, {.name = "x.npz", .local = 0}),
     "at byte 0: the header of 'x.npz' is not what the directory says"},
    {two({.packed = 120}, {.name = "y.npy"}), "at byte 97: 'y.npy' overlaps another member"},
    {two({.packed = 154, .size = 154}, {.name = "y.npy"}),
     "at byte 97: 'y.npy' overlaps another member"},
};

TEST(BadNpz, AreRefusedForTwoMembersThatAreOne) {
  for (const Bad& row : kPairs) check_bad_npz(row);
}

// A member inside the data of another: each copy would be unpacked again.
TEST(BadNpz, AreRefusedForAMemberInsideAnother) {
  const std::string inner = one({.name = "y.npy"});
  ZipFile file;
  file.members.resize(2);
  file.members[0] = {.name = "x.npy", .data = small_npy(100)};
  file.members[0].data.replace(62, 95, inner.substr(0, 95));
  file.members[1] = {.name = "y.npy", .local = 35 + 62};
  check_bad_npz({file.bytes(), "at byte 97: 'y.npy' overlaps another member"});
}

// 10 MB of zeros in 10 kB; the directory claims few, or too many for a file.
TEST(BadNpz, DeflateBombsStopAtTheSizeTheySay) {
  const std::string bomb = [] {
    std::string out;
    for (int i = 0; i < 160; ++i)
      out += std::string("\x00\xff\xff\x00\x00", 5) + std::string(65535, '\0');
    return out + block("");
  }();
  check_bad_npz({one(deflated(bomb, 60, 0)), "x.npy: at byte 101: unpacks to more than 60 bytes"});
  check_bad_npz({one(deflated(bomb, 1 << 20, 0)),
                 "x.npy: at byte 1048697: unpacks to more than 1048576 bytes"});
  check_bad_npz({one(deflated(block("a"), UINT32_MAX - 1, 0)),
                 "x.npy: at byte 0: not an NPY array: it must begin with \\x93NUMPY"});
}

// `text` as deflate without compression, in blocks.
std::string blocks(const std::string& text) {
  constexpr size_t kMax = 65535;
  std::string out;
  for (size_t at = 0; at < text.size(); at += kMax) {
    const std::string some = text.substr(at, kMax);
    out += test::le(0, 1) + test::le(some.size(), 2) + test::le(~some.size(), 2) + some;
  }
  return out + block("");
}

// The header in a member states its array's size. Nothing is unpacked if the directory claims more,
// or if the budget has no room.
TEST(BadNpz, AreRefusedForSizesBeforeTheyAreUnpacked) {
  const std::string large = small_npy(2 << 20);
  const auto crc = static_cast<int64_t>(crc32_of(bytes_of(large)));
  const auto size = static_cast<int64_t>(large.size());
  check_bad_npz({one(deflated(blocks(large), size + 1000, crc)),
                 cat("x.npy: at byte 35: the array in it takes ", size,
                     " bytes, but its directory says ", size + 1000)});
  const std::string file = one(deflated(blocks(large), size, crc));
  std::deque<std::string> storage;
  ASSERT_TRUE(parse(file, storage).ok());
  const auto refused = parse_npz(bytes_of(file), "f", storage, MemoryBudget(1 << 20));
  expect_error(refused, Code::out_of_memory,
               "f: x.npy: needs 2 MB for the unpacked array, and 1 MB of the memory budget of "
               "1 MB are left; give more with --memory SIZE, or read a smaller file");
}

TEST(BadNpz, ManyNamesTakeNoLongTime) {
  ZipFile file;
  for (int i = 0; i < 60000; ++i)
    file.members.push_back({.name = cat("a-name-shared-by-many-", i), .data = small_npy(0)});
  std::deque<std::string> storage;
  const auto arrays = parse(file.bytes(), storage);
  ASSERT_TRUE(arrays.ok()) << arrays.error().str();
  file.members.back().name = file.members.front().name;
  const auto bad = parse(file.bytes(), storage);
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().message.find("two members are called"), std::string::npos);
}

}  // namespace
}  // namespace loom::core
