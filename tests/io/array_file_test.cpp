// Array files: gzip, IDX, NPY, NPZ. Good files are checked by value, damaged ones by message. Every
// truncated file is refused.
#include "io/arrays/array_file.hpp"

#include <gmock/gmock.h>

#include "io/arrays/idx.hpp"
#include "io/arrays/npy.hpp"
#include "io/io_testing.hpp"

namespace loom::core {
namespace {

using test::bytes_of;
using test::expect_error;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string from_hex(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return out;
}

// gzip.compress() of the IDX of labels 3 1 4 1.
const std::string kGzip =
    from_hex("1f8b08000000000002036360e060646060606166646104005304e58a0c000000");
// np.savez_compressed(x=<f4 [[1 2 3] [4 5 6]], y=>i2 [1 0]), as numpy writes it (ZIP64 local
// headers).
const std::string kNpz = from_hex(
    "504b03042d0000000800000021007c9cdea2ffffffffffffffff05001400782e6e7079010010009800000000000000"
    "5800"
    "0000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f54529498179f5f94920a"
    "12"
    "774bcc294e058a17672416a402f91a463a0ac69a3a0ab50a64032e0686067b060606072002e206205e00c4071c0050"
    "4b"
    "03042d00000008000000210050fac147ffffffffffffffff05001400792e6e70790100100084000000000000004800"
    "00"
    "00000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9769a4aea3a09e965f54529498179f5f94920a12"
    "77"
    "4bcc294e058a17672416a402f91a463a9a3a0ab50a14002e0646060600504b01022d032d0000000800000021007c9c"
    "de"
    "a25800000098000000050000000000000000000000800100000000782e6e7079504b01022d032d0000000800000021"
    "00"
    "50fac147480000008400000005000000000000000000000080018f000000792e6e7079504b05060000000002000200"
    "66"
    "0000000e0100000000");

std::string npy(const std::string& header, const std::string& data) {
  std::string file = "\x93NUMPY";
  file += std::string("\x01\x00", 2);
  file += static_cast<char>(header.size());
  return file + '\0' + header + data;
}

const std::string kIdx = from_hex("000008010000000403010401");

// All data that a gzip file unpacks to, which must be `size` bytes; -1 means any number.
Result<std::string> unpack(const std::string& file, int64_t size = -1) {
  ByteSource source = ByteSource::of(bytes_of(file), "f");
  auto count = static_cast<uint64_t>(size);
  if (size < 0) {
    LOOM_ASSIGN(count, source.count());
  }
  return source.read_all(count);
}

TEST(Gzip, UnpacksAndVerifies) {
  const Result<std::string> text = unpack(kGzip);
  ASSERT_TRUE(text.ok()) << text.error().str();
  EXPECT_EQ(*text, kIdx);
  const Result<std::string> twice = unpack(kGzip + kGzip);
  ASSERT_TRUE(twice.ok());
  EXPECT_EQ(*twice, kIdx + kIdx);
}

TEST(Gzip, RefusesDamage) {
  for (size_t n = 2; n < kGzip.size(); ++n) EXPECT_FALSE(unpack(kGzip.substr(0, n)).ok()) << n;
  std::string crc = kGzip;
  crc[crc.size() - 6] ^= 1;
  expect_error(unpack(crc), Code::bad_file,
               "f: at byte 28: damaged compressed data: incorrect data check");
  expect_error(unpack(kGzip + "xy"), Code::bad_file,
               "f: at byte 32: 2 bytes after the end of the data");
  expect_error(unpack(kGzip, 11), Code::bad_file, "f: at byte 32: unpacks to more than 11 bytes");
  expect_error(unpack(kGzip, 13), Code::bad_file, "f: at byte 32: unpacks to 12 bytes, must be 13");
}

TEST(Idx, ReadsBytesAndBigEndianNumbers) {
  const Result<ArrayView> labels = parse_idx(bytes_of(kIdx), "f");
  ASSERT_TRUE(labels.ok()) << labels.error().str();
  EXPECT_THAT(labels->shape, ElementsAre(4));
  EXPECT_THAT(*array_i32(*labels), ElementsAre(3, 1, 4, 1));
  const std::string floats = from_hex("00000d02000000010000000240490fdbbf800000");
  const Result<ArrayView> view = parse_idx(bytes_of(floats), "f");
  ASSERT_TRUE(view.ok()) << view.error().str();
  EXPECT_THAT(*array_f32(*view), ElementsAre(3.14159274f, -1.0f));
}

TEST(Idx, RefusesDamage) {
  for (size_t n = 0; n < kIdx.size(); ++n)
    EXPECT_FALSE(parse_idx(bytes_of(kIdx.substr(0, n)), "f").ok()) << n;
  expect_error(parse_idx(bytes_of(kIdx + "x"), "f"), Code::bad_file,
               "f: at byte 8: an array [4] of u8 takes 4 bytes, 5 remain");
  expect_error(parse_idx(bytes_of(from_hex("00000a0100000000")), "f"), Code::bad_file,
               "f: at byte 2: unknown type code 10 of an IDX file");
  expect_error(parse_idx(bytes_of(from_hex("00000809")), "f"), Code::bad_file,
               "f: at byte 3: 9 axes, must be 1 to 8");
  expect_error(parse_idx(bytes_of(from_hex("00000e03ffffffffffffffffffffffff")), "f"),
               Code::bad_file,
               "f: at byte 16: an array [4294967295, 4294967295, 4294967295] of f64 is too large, "
               "0 remain");
}

TEST(Npy, ReadsItsTypesAndShapes) {
  const std::string file =
      npy("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }",
          std::string("\x07\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 16));
  const Result<ArrayView> view = parse_npy(bytes_of(file), "f");
  ASSERT_TRUE(view.ok()) << view.error().str();
  EXPECT_THAT(*array_i32(*view), ElementsAre(7, -1));
  const std::string scalar = npy("{'shape':(),'descr':'|u1','fortran_order':False}", "\x05");
  ASSERT_TRUE(parse_npy(bytes_of(scalar), "f").ok());
}

// Issue 37, line 29: numpy.save of numpy.asfortranarray(x).
TEST(Npy, ArraysInFortranOrderAreThoseInCOrder) {
  // [[0, 1, 2], [3, 4, 5]], column by column.
  const std::string matrix = npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}",
                                 std::string("\0\3\1\4\2\5", 6));
  const Result<ArrayView> view = parse_npy(bytes_of(matrix), "f");
  ASSERT_TRUE(view.ok()) << view.error().str();
  EXPECT_THAT(*array_i32(*view), ElementsAre(0, 1, 2, 3, 4, 5));
  for (const char* shape : {"(7,)", "(1, 7)", "(7, 1, 1)"}) {
    const std::string line =
        npy(std::string("{'descr': '<i2', 'fortran_order': True, 'shape': ") + shape + "}",
            std::string("\0\0\1\0\2\0\3\0\4\0\5\0\6\0", 14));
    EXPECT_THAT(*array_i32(*parse_npy(bytes_of(line), "f")), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  }
  const std::string none = npy("{'descr': '<f4', 'fortran_order': True, 'shape': (0, 3)}", "");
  EXPECT_EQ(parse_npy(bytes_of(none), "f")->count(), 0);
}

// Random shapes against the definition: value (i, j, k, ...) of C is at i + I (j + J (k + ..)).
TEST(Npy, RandomShapesInFortranOrder) {
  uint64_t state = 5;
  const auto draw = [&](int64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>(state >> 33) % below;
  };
  for (int i = 0; i < 200; ++i) {
    std::vector<int64_t> shape(static_cast<size_t>(draw(5)));
    int64_t count = 1;
    std::string text;
    for (int64_t& n : shape) count *= n = 1 + draw(5);
    for (const int64_t n : shape) text += std::to_string(n) + ",";
    std::string data(static_cast<size_t>(count) * 2, '\0');
    for (int64_t c = 0; c < count; ++c) {
      int64_t rest = c, at = 0;
      for (size_t a = shape.size(); a-- > 0;) {
        int64_t step = 1;
        for (size_t b = 0; b < a; ++b) step *= shape[b];
        at += rest % shape[a] * step;
        rest /= shape[a];
      }
      data[static_cast<size_t>(2 * at)] = static_cast<char>(c & 0xff);
      data[static_cast<size_t>(2 * at + 1)] = static_cast<char>(c >> 8);
    }
    const std::string file =
        npy("{'descr': '<u2', 'fortran_order': True, 'shape': (" + text + ")}", data);
    const auto values = *array_i32(*parse_npy(bytes_of(file), "f"));
    for (int64_t c = 0; c < count; ++c) ASSERT_EQ(values[static_cast<size_t>(c)], c) << text;
  }
}

TEST(Npy, RefusesWhatItIsNot) {
  const struct {
    std::string header, message;
  } rows[] = {
      {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
       "f: at byte 10: type '|O' cannot be read; save integers or floats of 16 to 64 bits"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
       "f: at byte 20: NPY header: arrays of records cannot be read; save plain numbers"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
       "f: at byte 65: an array [2] of f32 takes 8 bytes, 4 remain"},
      {"{'descr': '<f4', 'fortran_order': False}",
       "f: at byte 50: NPY header: descr, fortran_order or shape is absent"},
      {"{'descr': '<f4', 'descr': '<f4'}", "f: at byte 35: NPY header: 'descr' occurs twice"},
      {"{'descr': '<f4', 'extra': 1}", "f: at byte 35: NPY header: unknown key 'extra'"},
      {"{'descr': '<f4', 'shape': (-1,)}",
       "f: at byte 37: NPY header: expected an extent, an integer below 2^63"},
      {"import os", "f: at byte 10: NPY header: expected {"},
  };
  for (const auto& row : rows) {
    const Result<ArrayView> view = parse_npy(bytes_of(npy(row.header, "abcd")), "f");
    ASSERT_FALSE(view.ok()) << row.header;
    EXPECT_EQ(view.error().str(), row.message);
  }
}

TEST(Npz, ReadsDeflatedMembers) {
  std::deque<std::string> storage;
  const auto arrays = parse_npz(bytes_of(kNpz), "f", storage);
  ASSERT_TRUE(arrays.ok()) << arrays.error().str();
  ASSERT_EQ(arrays->size(), 2u);
  EXPECT_EQ((*arrays)[0].first, "x");
  EXPECT_THAT((*arrays)[0].second.shape, ElementsAre(2, 3));
  EXPECT_THAT(*array_f32((*arrays)[0].second), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(*array_i32((*arrays)[1].second), ElementsAre(1, 0));
}

// np.savez(x=<u2 [[1 2]], y=<u2 [3]) by Python's zipfile with ZIP64_LIMIT = 10: every size, every
// offset and the end record are ZIP64.
const std::string kNpz64 = from_hex(
    "504b03042d0000000000000021003c050217ffffffffffffffff05001400782e6e70790100100084000000000000"
    "008400000000000000934e554d5059010076007b276465736372273a20273c7532272c2027666f727472616e5f6f"
    "72646572273a2046616c73652c20277368617065273a2028312c2032292c207d2020202020202020202020202020"
    "20202020202020202020202020202020202020202020202020202020202020202020202020202020202020200a01"
    "000200504b03042d000000000000002100692d9adcffffffffffffffff05001400792e6e70790100100082000000"
    "000000008200000000000000934e554d5059010076007b276465736372273a20273c7532272c2027666f72747261"
    "6e5f6f72646572273a2046616c73652c20277368617065273a2028312c292c207d20202020202020202020202020"
    "20202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020"
    "200a0300504b01022d032d0000000000000021003c050217ffffffffffffffff0500140000000000000000008001"
    "00000000782e6e70790100100084000000000000008400000000000000504b01022d032d00000000000000210069"
    "2d9adcffffffffffffffff05001c0000000000000000008001ffffffff792e6e7079010018008200000000000000"
    "8200000000000000bb00000000000000504b06062c000000000000002d002d000000000000000000020000000000"
    "0000020000000000000096000000000000007401000000000000504b0607000000000a0200000000000001000000"
    "504b0506000000000200020096000000740100000000");

TEST(Npz, ReadsMembersOfZip64) {
  std::deque<std::string> storage;
  const auto arrays = parse_npz(bytes_of(kNpz64), "f", storage);
  ASSERT_TRUE(arrays.ok()) << arrays.error().str();
  ASSERT_EQ(arrays->size(), 2u);
  EXPECT_THAT(*array_i32((*arrays)[0].second), ElementsAre(1, 2));
  EXPECT_THAT(*array_i32((*arrays)[1].second), ElementsAre(3));
  for (size_t n = 0; n < kNpz64.size(); ++n)
    EXPECT_FALSE(parse_npz(bytes_of(kNpz64.substr(0, n)), "f", storage).ok()) << n;
  // Each bit of the directory and its end records: the file is refused, or the bit has no effect.
  for (size_t at = kNpz64.find("PK\x01\x02"); at < kNpz64.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = kNpz64;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      std::deque<std::string> unpacked;
      const auto read = parse_npz(bytes_of(changed), "f", unpacked);
      if (!read.ok()) continue;
      ASSERT_EQ(read->size(), 2u);
      EXPECT_THAT(*array_i32((*read)[0].second), ElementsAre(1, 2)) << at;
    }
  }
}

TEST(Npz, RefusesTruncationAndEveryFlippedByteOfItsData) {
  for (size_t n = 0; n < kNpz.size(); ++n) {
    std::deque<std::string> storage;
    EXPECT_FALSE(parse_npz(bytes_of(kNpz.substr(0, n)), "f", storage).ok()) << n;
  }
  for (size_t at = 55; at < 143; ++at) {  // the packed bytes of x
    std::string bad = kNpz;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    std::deque<std::string> storage;
    EXPECT_FALSE(parse_npz(bytes_of(bad), "f", storage).ok()) << at;
  }
}

TEST(ArrayFile, TellsFormatsApartAndNamesWhatIsThere) {
  const TemporaryFolder folder;
  folder.write("a.gz", kGzip);
  folder.write("b.npz", kNpz);
  folder.write("c", "hello");
  Result<ArrayFile> idx = ArrayFile::open(folder.path("a.gz"));
  ASSERT_TRUE(idx.ok()) << idx.error().str();
  EXPECT_EQ(idx->kind(), ArrayFile::Kind::idx);
  EXPECT_THAT(*array_i32(*idx->find("any")), ElementsAre(3, 1, 4, 1));
  Result<ArrayFile> npz = ArrayFile::open(folder.path("b.npz"));
  ASSERT_TRUE(npz.ok()) << npz.error().str();
  EXPECT_THAT(npz->find("z").error().str(), HasSubstr("no array called 'z'; there is x, y"));
  EXPECT_THAT(ArrayFile::open(folder.path("c")).error().str(), HasSubstr("neither NPY"));
}

TEST(Arrays, RefuseValuesThatAreNotFiniteOrNotWhole) {
  const std::string file = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1)}",
                               from_hex("0000803f0000c07f"));
  const Result<ArrayView> view = parse_npy(bytes_of(file), "f");
  ASSERT_TRUE(view.ok());
  expect_error(array_f32(*view), Code::bad_file, "f: at byte 71: sample 1, value 0 is not finite");
  expect_error(array_i32(*view), Code::bad_file,
               "f: at byte 71: sample 1, value 0 is not an integer");
}

}  // namespace
}  // namespace loom::core
