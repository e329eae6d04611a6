// Good .entity files: the bytes of the fixed part, alignment, padding, round trips of every layout
// and number type, hashes, and the refusals of the writer.
#include <gmock/gmock.h>

#include "dtype/samples.hpp"
#include "io/entity_testing.hpp"

namespace loom::core {
namespace {

using test::AlignedBytes;
using test::bytes_of;
using test::expect_error;
using test::get;
using test::TemporaryFolder;

EntityOutput output(std::string path, BlobLayout layout, DType dtype, const Shape& shape,
                    std::string bytes) {
  EntityOutput out{std::move(path), layout, dtype, shape, {}};
  out.data = [bytes = std::move(bytes)]() -> Result<std::span<const std::byte>> {
    return std::as_bytes(std::span(bytes));
  };
  return out;
}

std::string counting(size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(i * 37 + 11);
  return bytes;
}

EntityOutput floats(std::string path, const std::vector<float>& values) {
  const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * 4);
  return output(std::move(path), BlobLayout::plain, DType::f32,
                Shape{static_cast<int64_t>(values.size())}, bytes);
}

std::string saved(const std::vector<EntityOutput>& blobs,
                  const JsonValue& header = JsonValue::object()) {
  const TemporaryFolder folder;
  const Status status = write_entity(folder.path("a.entity"), header, blobs);
  EXPECT_TRUE(status.ok()) << status.error().str();
  return status.ok() ? *read_file(folder.path("a.entity")) : std::string();
}

// A file of the given name in each layout.
std::vector<EntityOutput> one_of_each() {
  const R16 g = r16_geometry(DType::i8, 3, 5);
  std::string packed(static_cast<size_t>(g.bytes()), '\0');
  const std::vector<float> values(15, 0.5f);
  r16_pack(g, values.data(), 0, 3, ScaleScope::per_row, {},
           reinterpret_cast<std::byte*>(packed.data()));
  const double doubles[] = {1.5, -2.25, 1e300};
  std::vector<EntityOutput> blobs;
  blobs.push_back(output("m", BlobLayout::r16, DType::i8, Shape{3, 5}, packed));
  blobs.push_back(floats("v", {1, -0.5f, 3}));
  blobs.push_back(output("d", BlobLayout::plain, DType::f64, Shape{3},
                         std::string(reinterpret_cast<const char*>(doubles), sizeof doubles)));
  blobs.push_back(output("u", BlobLayout::plain, DType::u8, Shape{2, 3}, counting(6)));
  blobs.push_back(text_output("text/\xC3\xA4.txt", "gr\xC3\xBC\xC3\x9F dich"));
  blobs.push_back(output("none", BlobLayout::plain, DType::f32, Shape{0, 4}, ""));
  blobs.push_back(text_output("text/empty", ""));
  blobs.push_back(output("x", BlobLayout::plain, DType::f32, Shape{}, std::string(4, '\0')));
  return blobs;
}

TEST(EntityFile, HasTheFixedPartOfVersionTwo) {
  const std::string file = saved({floats("v", {1, 2})});
  ASSERT_EQ(file.size() % 64, 0u);
  EXPECT_EQ(file.substr(0, 8), std::string("ENTITY\0\0", 8));
  EXPECT_EQ(get<uint16_t>(file, 8), 2);
  EXPECT_EQ(get<uint16_t>(file, 10), 1);
  const auto header = get<uint64_t>(file, 12);
  EXPECT_EQ(header, file.size() - 64 - 64);
  EXPECT_EQ(get<uint32_t>(file, 20), 0u);
  EXPECT_EQ(get<uint64_t>(file, 24), file.size());
  EXPECT_EQ(get<uint64_t>(file, 32), hash64(bytes_of(file.substr(64, header))));
  EXPECT_EQ(file.substr(40, 16), std::string(16, '\0'));
  EXPECT_EQ(get<uint64_t>(file, 56), hash64(bytes_of(file.substr(0, 56))));
  EXPECT_EQ(entity_version(bytes_of(file)), 2);
  EXPECT_EQ(entity_version(bytes_of(file.substr(0, 9))), 0);
  EXPECT_EQ(entity_version(bytes_of("{\"entity\":2}")), 0);
}

TEST(EntityFile, HasAHeaderOfCompactJsonPaddedWithSpaces) {
  JsonValue sections = JsonValue::object();
  sections.add("z", JsonValue::integer(1));
  sections.add("a", JsonValue::string("\xC3\xA4"));
  const std::string file = saved({floats("v", {1, 2})}, sections);
  const std::string payload = std::string("\0\0\x80\x3f\0\0\0\x40", 8) + std::string(56, '\0');
  const std::string json = cat(
      "{\"entity\":2,\"z\":1,\"a\":\"\xC3\xA4\",\"blobs\":[{\"path\":\"v\",\"layout\":\"plain\","
      "\"dtype\":\"float32\",\"shape\":[2],\"offset\":0,\"length\":8,\"hash\":\"",
      hash_hex(bytes_of(payload)), "\"}]}");
  EXPECT_EQ(file.substr(64, json.size()), json);
  EXPECT_EQ(file.substr(64 + json.size()),
            std::string(file.size() - 128 - json.size(), ' ') + payload);
  EXPECT_EQ(file, test::entity_file(json, payload));  // from the tests' own builder
}

TEST(EntityFile, IsTheSameForTheSameInput) {
  EXPECT_EQ(saved(one_of_each()), saved(one_of_each()));
}

TEST(EntityFile, OfNothingIsAFixedPartAndAHeader) {
  const std::string file = saved({});
  EXPECT_EQ(file.size(), 128u);
  const AlignedBytes memory(file);
  const auto read = Entity::parse(memory.bytes(), "f");
  ASSERT_TRUE(read.ok()) << read.error().str();
  EXPECT_TRUE((*read)->blobs().empty());
  EXPECT_EQ((*read)->file_bytes(), 128u);
}

TEST(EntityFile, AlignsBlobsAndPadsThemWithZeros) {
  const std::string file = saved(one_of_each());
  const AlignedBytes memory(file);
  const auto read = Entity::parse(memory.bytes(), "f");
  ASSERT_TRUE(read.ok()) << read.error().str();
  uint64_t next = 64 + get<uint64_t>(file, 12);
  for (const EntityBlob& blob : (*read)->blobs()) {
    EXPECT_EQ(blob.offset, next) << blob.path;
    EXPECT_EQ(blob.offset % 64, 0u) << blob.path;
    next = (blob.offset + blob.length + 63) / 64 * 64;
    const uint64_t end = blob.offset + blob.length;
    EXPECT_EQ(file.substr(end, next - end), std::string(next - end, '\0')) << blob.path;
  }
  EXPECT_EQ(next, file.size());
}

// All queries on a file, mapped or in memory.
void expect_one_of_each(const Entity& file) {
  const char* names[] = {"m", "v", "d", "u", "text/\xC3\xA4.txt", "none", "text/empty", "x"};
  const std::vector<EntityOutput> blobs = one_of_each();
  ASSERT_EQ(file.blobs().size(), std::size(names));
  ASSERT_EQ(file.entries().size(), std::size(names));
  for (size_t i = 0; i < std::size(names); ++i) {
    EXPECT_EQ(file.blobs()[i].path, names[i]);
    EXPECT_EQ(file.entries()[i].name, names[i]);
    EXPECT_EQ(file.find(names[i]), static_cast<int64_t>(i));
    EXPECT_EQ(file.blobs()[i].layout, blobs[i].layout);
    EXPECT_EQ(file.blobs()[i].dtype, blobs[i].dtype);
    EXPECT_EQ(file.blobs()[i].shape, blobs[i].shape);
    const auto bytes = *blobs[i].data();
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), file.bytes(i).begin(), file.bytes(i).end()));
    const Status verified = file.verify(i);
    EXPECT_TRUE(verified.ok()) << verified.error().str();
  }
  EXPECT_EQ(file.find("w"), -1);
  EXPECT_EQ(file.entries()[4].dtype, "text");
  EXPECT_EQ(file.entries()[0].dtype, "int8");
  EXPECT_EQ(*file.text("text/\xC3\xA4.txt"), "gr\xC3\xBC\xC3\x9F dich");
  EXPECT_EQ(*file.text("text/empty"), "");
  EXPECT_EQ(*file.text("text/absent"), "");
  const Tensor v = file.tensor(1);
  EXPECT_EQ(v.shape, Shape{3});
  EXPECT_EQ(v.f32()[1], -0.5f);
  EXPECT_EQ(file.tensor(0).layout, Layout::r16);
  EXPECT_EQ(file.tensor(2).values<double>()[2], 1e300);
}

TEST(EntityFile, IsTheSameByMapAndFromMemory) {
  const TemporaryFolder folder;
  // A name that is not ASCII: paths are bytes to us.
  const std::string path = folder.path(
      "m\xC3\xB6"
      "del.entity");
  const Status written = write_entity(path, JsonValue::object(), one_of_each());
  ASSERT_TRUE(written.ok()) << written.error().str();
  EXPECT_EQ(folder.file_count(), 1u);
  const auto mapped = Entity::open(path);
  ASSERT_TRUE(mapped.ok()) << mapped.error().str();
  EXPECT_EQ((*mapped)->where(), path);
  expect_one_of_each(**mapped);
  (*mapped)->release(0);
  const AlignedBytes memory(*read_file(path));
  const auto parsed = Entity::parse(memory.bytes(), "f");
  ASSERT_TRUE(parsed.ok()) << parsed.error().str();
  expect_one_of_each(**parsed);
}

TEST(EntityFile, KeepsTheSectionsInTheirOrder) {
  JsonValue sections = JsonValue::object();
  for (const char* name : {"b", "a", "c"}) sections.add(name, JsonValue::string(name));
  const AlignedBytes memory(saved({}, sections));
  const auto read = Entity::parse(memory.bytes(), "f");
  ASSERT_TRUE(read.ok()) << read.error().str();
  EXPECT_EQ(dump_json((*read)->header()), R"({"b":"b","a":"a","c":"c"})");
}

TEST(EntityFile, MustLieAlignedInMemory) {
  const std::string file = " " + saved({});
  const AlignedBytes memory(file);
  expect_error(Entity::parse(memory.bytes().subspan(1), "f"), Code::invalid_argument,
               "f: the bytes of a file in memory must begin at a multiple of 8");
}

TEST(EntityVerify, FindsEveryByteOfThePayloadThatChanges) {
  const std::string file = saved(one_of_each());
  const size_t payload = 64 + get<uint64_t>(file, 12);
  for (size_t at = payload; at < file.size(); ++at) {
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    const AlignedBytes memory(damaged);
    const auto read = Entity::parse(memory.bytes(), "f");
    ASSERT_TRUE(read.ok()) << "only verify() reads the payload";
    int found = 0;
    for (size_t i = 0; i < (*read)->blobs().size(); ++i) {
      const EntityBlob& blob = (*read)->blobs()[i];
      const bool mine = at >= blob.offset && at < (blob.offset + blob.length + 63) / 64 * 64;
      const Status verified = (*read)->verify(i);
      EXPECT_EQ(verified.ok(), !mine);
      found += verified.ok() ? 0 : 1;
      if (mine) {
        EXPECT_EQ(verified.error().str(),
                  cat("f: at byte ", blob.offset, ": ", printable(blob.path),
                      " does not match its hash: the file is damaged"));
      }
    }
    EXPECT_EQ(found, 1) << at;
  }
}

TEST(EntityVerify, ComesBeforeATextIsRead) {
  std::string file = saved({text_output("text/a", "abc")});
  file[file.size() - 64] = 'x';
  const AlignedBytes memory(file);
  const auto read = Entity::parse(memory.bytes(), "f");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ((*read)->text("text/a").error().code, Code::bad_file);
}

class EntityOfType : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(EveryType, EntityOfType, ::testing::ValuesIn(test::all_dtypes()),
                         test::dtype_test_name);

TEST_P(EntityOfType, HoldsPackedMatricesAndDecodesAnyPiece) {
  for (const auto& [rows, cols] : {std::pair{1, 1}, {16, 32}, {19, 37}, {0, 7}, {5, 0}}) {
    const R16 g = r16_geometry(GetParam(), rows, cols);
    std::vector<float> values;
    for (int i = 0; i < rows * cols; ++i) values.push_back(static_cast<float>(i % 23 - 11) / 8);
    Buffer packed = std::move(*Buffer::allocate(g.bytes()));
    const TensorRange range = tensor_range(values.data(), rows * cols);
    if (rows > 0) r16_pack(g, values.data(), 0, rows, ScaleScope::per_row, range, packed.data());
    const AlignedBytes memory(saved({tensor_output("m", r16_tensor(g, packed.data()))}));
    const auto read = Entity::parse(memory.bytes(), "f");
    ASSERT_TRUE(read.ok()) << read.error().str();
    EXPECT_TRUE((*read)->verify(0).ok());
    std::vector<float> expected(values.size());
    for (int64_t row = 0; row < rows; ++row)
      r16_decode(g, packed.data(), row, 0, cols, expected.data() + row * cols);
    const int64_t count = rows * cols;
    for (int64_t first = 0; first <= count; first += 13) {
      for (const int64_t n : {int64_t{0}, std::min<int64_t>(1, count - first),
                              std::min<int64_t>(50, count - first), count - first}) {
        std::vector<float> got(static_cast<size_t>(n) + 1, 77.0f);
        ASSERT_TRUE((*read)->to_f32(0, first, n, got.data()).ok());
        EXPECT_TRUE(std::equal(got.begin(), got.end() - 1, expected.begin() + first));
        EXPECT_EQ(got.back(), 77.0f);
      }
    }
    EXPECT_FALSE((*read)->to_f32(0, 0, count + 1, nullptr).ok());
  }
}

TEST(EntityValues, AreF32OfPlainFloatsAndDoublesAlone) {
  const AlignedBytes memory(saved(one_of_each()));
  const auto read = Entity::parse(memory.bytes(), "f");
  ASSERT_TRUE(read.ok());
  const Entity& file = **read;
  float out[3] = {};
  ASSERT_TRUE(file.to_f32(1, 1, 2, out).ok());
  EXPECT_EQ(out[0], -0.5f);
  EXPECT_EQ(out[1], 3.0f);
  ASSERT_TRUE(file.to_f32(2, 0, 3, out).ok());
  EXPECT_EQ(out[1], -2.25f);
  EXPECT_EQ(out[2], std::numeric_limits<float>::infinity());
  EXPECT_EQ(file.to_f32(3, 0, 1, out).error().str(), "u: a plain blob of uint8 is not a tensor");
  EXPECT_EQ(file.to_f32(4, 0, 1, out).error().str(), "text/\xC3\xA4.txt: is a text, no tensor");
  EXPECT_EQ(file.to_f32(1, 2, 2, out).error().str(), "v: 2 values from 2 on, of 3");
  EXPECT_EQ(file.to_f32(1, -1, 1, out).error().str(), "v: 1 values from -1 on, of 3");
  EXPECT_EQ(file.to_f32(1, INT64_MAX, 1, out).error().code, Code::out_of_range);
  EXPECT_EQ(file.to_f32(1, 1, INT64_MAX, out).error().code, Code::out_of_range);
  EXPECT_EQ(file.text("v").error().message, "v is not text");
}

TEST(WriteEntity, ReportsProgressAndLeavesNothingWhenCancelled) {
  const TemporaryFolder folder;
  std::vector<std::pair<uint64_t, uint64_t>> seen;
  EntityProgress progress;
  progress.report = [&](uint64_t done, uint64_t total) {
    seen.emplace_back(done, total);
    return true;
  };
  const std::vector<EntityOutput> blobs = {floats("a", {1}), floats("b", {2})};
  ASSERT_TRUE(write_entity(folder.path("f"), JsonValue::object(), blobs, progress).ok());
  EXPECT_THAT(seen, ::testing::ElementsAre(std::pair(64, 128), std::pair(128, 128)));
  const std::string before = *read_file(folder.path("f"));
  progress.report = [](uint64_t done, uint64_t) { return done < 128; };
  const Status stopped =
      write_entity(folder.path("f"), JsonValue::object(), {blobs[1], blobs[0]}, progress);
  EXPECT_EQ(stopped.error().str(), "saving was stopped");
  EXPECT_EQ(stopped.error().code, Code::cancelled);
  EXPECT_EQ(*read_file(folder.path("f")), before);
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(WriteEntity, PassesOnTheErrorOfABlobAndLeavesNothing) {
  const TemporaryFolder folder;
  EntityOutput failing = floats("a", {1});
  failing.data = []() -> Result<std::span<const std::byte>> { return invalid("no data", "here"); };
  EXPECT_EQ(write_entity(folder.path("f"), JsonValue::object(), {failing}).error().str(),
            "here: no data");
  EntityOutput short_one = output("a", BlobLayout::plain, DType::f32, Shape{2}, "1234");
  EXPECT_EQ(write_entity(folder.path("f"), JsonValue::object(), {short_one}).error().str(),
            "a: has 4 bytes, its shape needs 8");
  EXPECT_EQ(folder.file_count(), 0u);
}

// The writer refuses everything that the reader would refuse.
TEST(WriteEntity, RefusesWhatTheReaderWouldRefuse) {
  const auto plain = [](std::string path, const Shape& shape) {
    return output(std::move(path), BlobLayout::plain, DType::f32, shape, "");
  };
  JsonValue taken = JsonValue::object(), deep = JsonValue::object();
  taken.add("blobs", JsonValue::integer(1));
  JsonValue nested = JsonValue::array();
  for (int i = 0; i < 70; ++i) {
    JsonValue outer = JsonValue::array();
    outer.push(std::move(nested));
    nested = std::move(outer);
  }
  deep.add("s", std::move(nested));
  const struct {
    JsonValue sections;
    std::vector<EntityOutput> blobs;
    const char* error;
  } rows[] = {
      {JsonValue::object(),
       {plain("a", Shape{0}), plain("a", Shape{0})},
       "f: blobs[1] a: the path occurs twice"},
      {JsonValue::object(), {plain("", Shape{0})}, "a blob's path must have 1 to 1024 bytes"},
      {JsonValue::object(), {plain("a\xFF", Shape{0})}, "a\xFF: a blob's path must be UTF-8"},
      {JsonValue::object(), {plain("a", Shape{-1})}, "a: the shape is too large, or below zero"},
      {JsonValue::object(),
       {plain("a", Shape{1 << 30, 1 << 30, 1 << 30})},
       "a: the shape is too large, or below zero"},
      {JsonValue::object(),
       {output("a", BlobLayout::r16, DType::f32, Shape{4}, "")},
       "a: the layout r16 is for matrices"},
      {JsonValue::object(),
       {output("a", BlobLayout::text, DType::u8, Shape{0, 1}, "")},
       "f: blobs[0] a: layout text has one axis"},
      {taken, {}, "f: duplicate key \"blobs\""},
      {deep, {}, "f: nested deeper than 64 levels"},
      {JsonValue::integer(3), {}, "f: the sections of a header are an object"},
  };
  const TemporaryFolder folder;
  for (const auto& row : rows) {
    const Status status = write_entity(folder.path("f"), row.sections, row.blobs);
    ASSERT_FALSE(status.ok()) << row.error;
    EXPECT_EQ(status.error().code, Code::invalid_argument);
    std::string text = status.error().str();
    if (text.starts_with(folder.path())) text = text.substr(folder.path().size());
    EXPECT_EQ(text, row.error);
  }
  EXPECT_EQ(folder.file_count(), 0u);
}

}  // namespace
}  // namespace loom::core
