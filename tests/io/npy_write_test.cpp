// NPY and NPZ files from our writer: our reader reads them back, and they equal the bytes that the
// golden script (tools/goldens/npy_check.py) verified with NumPy.
#include "io/arrays/npy_write.hpp"

#include <cstring>

#include "base/text.hpp"
#include "io/arrays/npy.hpp"
#include "io/files/file.hpp"
#include "io/io_testing.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

using test::bytes_of;
using test::expect_error;

struct Owned {
  NpyOutput out;
  std::string bytes;
};

// Element i holds the bytes of i * 37 + 1, so that no two arrays are alike.
Owned make(std::string name, ElementType type, std::vector<int64_t> shape) {
  Owned o;
  const uint64_t size = array_bytes(shape, type).value_or(0);
  for (uint64_t i = 0; i < size; ++i) o.bytes += static_cast<char>((i * 37 + 1) & 63);
  if (type == ElementType::boolean) {
    for (char& c : o.bytes) c &= 1;
  }
  o.out = {std::move(name), type, std::move(shape), {}};
  return o;
}

std::vector<Owned> sample() {
  std::vector<Owned> all;
  all.push_back(make("scalar", ElementType::f64, {}));
  all.push_back(make("vector", ElementType::f32, {5}));
  all.push_back(make("matrix", ElementType::i16, {2, 3}));
  all.push_back(make("none", ElementType::u8, {0, 4}));
  all.push_back(make("truth", ElementType::boolean, {3}));
  all.push_back(make("half/of it", ElementType::f16, {2, 1, 2}));
  all.push_back(make("ids", ElementType::i64, {2}));
  return all;
}

std::vector<NpyOutput> outputs(std::vector<Owned>& all) {
  std::vector<NpyOutput> list;
  for (Owned& o : all) {
    o.out.data = bytes_of(o.bytes);
    list.push_back(o.out);
  }
  return list;
}

void expect_same(const ArrayView& read, const NpyOutput& written) {
  EXPECT_EQ(read.type, written.type);
  EXPECT_EQ(read.shape, written.shape);
  EXPECT_FALSE(read.big_endian);
  ASSERT_EQ(read.data.size(), written.data.size());
  EXPECT_TRUE(std::equal(read.data.begin(), read.data.end(), written.data.begin()));
}

TEST(NpyWrite, OurReaderReadsEveryType) {
  for (int t = 0; t <= static_cast<int>(ElementType::f64); ++t) {
    const auto type = static_cast<ElementType>(t);
    if (type == ElementType::bf16) continue;
    Owned o = make("x", type, {3, 2});
    o.out.data = bytes_of(o.bytes);
    const auto file = npy_bytes(o.out);
    ASSERT_TRUE(file.ok()) << file.error().str();
    const auto read = parse_npy(bytes_of(*file), "x.npy");
    ASSERT_TRUE(read.ok()) << read.error().str();
    expect_same(*read, o.out);
    EXPECT_EQ(read->file_offset % 64, 0u);
  }
}

TEST(NpyWrite, OurReaderReadsAWholeNpz) {
  std::vector<Owned> all = sample();
  const std::vector<NpyOutput> list = outputs(all);
  const auto file = npz_bytes(list);
  ASSERT_TRUE(file.ok()) << file.error().str();
  std::deque<std::string> storage;
  const auto read = parse_npz(bytes_of(*file), "x.npz", storage);
  ASSERT_TRUE(read.ok()) << read.error().str();
  ASSERT_EQ(read->size(), list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ((*read)[i].first, list[i].name);
    expect_same((*read)[i].second, list[i]);
  }
}

TEST(NpyWrite, FilesAreTheBytesOfTheirCounterpartsInMemory) {
  const test::TemporaryFolder folder;
  std::vector<Owned> all = sample();
  const std::vector<NpyOutput> list = outputs(all);
  ASSERT_TRUE(write_npz(folder.path("x.npz"), list).ok());
  ASSERT_TRUE(write_npy(folder.path("x.npy"), list[1]).ok());
  EXPECT_EQ(*read_file(folder.path("x.npz")), *npz_bytes(list));
  EXPECT_EQ(*read_file(folder.path("x.npy")), *npy_bytes(list[1]));
  EXPECT_EQ(folder.file_count(), 2u);
}

TEST(NpyWrite, BytesAreThoseThatNumPyRead) {
  std::vector<Owned> all = sample();
  const auto file = npz_bytes(outputs(all));
  ASSERT_TRUE(file.ok()) << file.error().str();
  const auto golden = read_file(loom_test::source_path("tests/io/golden/written.npz"));
  ASSERT_TRUE(golden.ok()) << golden.error().str();
  EXPECT_TRUE(*file == *golden) << "run tools/goldens/npy_check.py on the new bytes first";
}

TEST(NpyWrite, RefusesWhatCannotBeWritten) {
  Owned o = make("x", ElementType::f32, {2});
  o.out.data = bytes_of(o.bytes);
  NpyOutput bad = o.out;
  bad.shape = {3};
  expect_error(npy_bytes(bad), Code::invalid_argument,
               "x: has 8 bytes, which do not fit its shape");
  bad.shape = {-2, -1};
  expect_error(npy_bytes(bad), Code::invalid_argument,
               "x: has 8 bytes, which do not fit its shape");
  bad = o.out;
  bad.type = ElementType::bf16;
  expect_error(npy_bytes(bad), Code::unsupported,
               "x: NumPy has no bf16; convert the array to f32 first");
  expect_error(npz_bytes({o.out, o.out}), Code::invalid_argument, "x: occurs twice");
  bad = o.out;
  bad.name = "";
  expect_error(npz_bytes({bad}), Code::invalid_argument, "a name of 0 bytes; give it 1 to 1024");
  bad.name.assign(1025, 'n');
  expect_error(npz_bytes({bad}), Code::invalid_argument, "a name of 1025 bytes; give it 1 to 1024");
}

TEST(NpyWrite, AnEmptyNpzIsAWholeFile) {
  const auto file = npz_bytes({});
  ASSERT_TRUE(file.ok());
  std::deque<std::string> storage;
  const auto read = parse_npz(bytes_of(*file), "x.npz", storage);
  ASSERT_TRUE(read.ok()) << read.error().str();
  EXPECT_TRUE(read->empty());
}

}  // namespace
}  // namespace loom::core
