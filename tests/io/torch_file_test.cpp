// Files of torch.save, as PyTorch wrote them (tools/goldens/torch_files.py), and damaged ones.
#include <cmath>
#include <map>

#include "base/numbers/rng.hpp"
#include "base/text.hpp"
#include "io/io_testing.hpp"
#include "io/weights/torch_file.hpp"

namespace loom::core {
namespace {

using test::bytes_of;
using test::expect_error;

std::string golden(std::string_view name) {
  const auto text = read_file(loom_test::source_path(cat("tests/io/golden/", name)));
  EXPECT_TRUE(text.ok()) << text.error().str();
  return *text;
}

std::vector<float> values_of(const SafeTensor& tensor) {
  std::vector<float> out(static_cast<size_t>(tensor.count()));
  const Status read = SafeTensors::to_f32(tensor, 0, tensor.count(), out.data());
  EXPECT_TRUE(read.ok()) << tensor.name << ": " << read.error().str();
  return out;
}

// 0.5, 1.5, -2.5, 3.5, ... as the script has them; 0, 1, 2, ... for integers.
std::vector<float> expected(size_t from, size_t count, bool whole) {
  std::vector<float> out;
  for (size_t i = from; i < from + count; ++i) {
    const auto number = static_cast<float>(i) + (whole ? 0.0f : 0.5f);
    out.push_back(!whole && i % 3 == 2 ? -number : number);
  }
  return out;
}

struct Row {
  std::string_view name;
  SafeDType dtype;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

void expect_state(const SafeTensors& file) {
  const Row rows[] = {
      {"f32", SafeDType::f32, {2, 3}, expected(0, 6, false)},
      {"bf16", SafeDType::bf16, {5}, expected(0, 5, false)},
      {"f16", SafeDType::f16, {3}, expected(0, 3, false)},
      {"f64", SafeDType::f64, {4}, expected(0, 4, false)},
      {"i64", SafeDType::i64, {4}, expected(0, 4, true)},
      {"u8", SafeDType::u8, {7}, expected(0, 7, true)},
      {"flags", SafeDType::boolean, {3}, {1, 0, 1}},
      {"shared", SafeDType::f32, {3, 4}, expected(0, 12, false)},
      {"again", SafeDType::f32, {3, 4}, expected(0, 12, false)},
      {"rows", SafeDType::f32, {2, 4}, expected(4, 8, false)},
      {"scalar", SafeDType::f32, {}, {3.5f}},
      {"empty", SafeDType::f32, {0, 3}, {}},
      {"empty_view", SafeDType::f32, {2, 2, 0}, {}},
      {"parameter", SafeDType::f32, {2}, expected(0, 2, false)},
  };
  EXPECT_EQ(file.tensors().size(), std::size(rows));
  for (const Row& row : rows) {
    const SafeTensor* tensor = file.find(row.name);
    ASSERT_NE(tensor, nullptr) << row.name;
    EXPECT_EQ(tensor->dtype, row.dtype) << row.name;
    EXPECT_EQ(tensor->shape, row.shape) << row.name;
    EXPECT_EQ(values_of(*tensor), row.values) << row.name;
  }
}

TEST(TorchFiles, TheArchiveHasTheTensorsOfPyTorch) {
  const auto file = SafeTensors::open(loom_test::source_path("tests/io/golden/torch_archive.pt"));
  ASSERT_TRUE(file.ok()) << file.error().str();
  expect_state(*file);
}

TEST(TorchFiles, TheOlderStreamHasTheTensorsOfPyTorch) {
  // Protocol 4 of pickle begins with a frame.
  for (const std::string_view name : {"torch_stream.bin", "torch_stream4.bin"}) {
    const auto file = SafeTensors::open(loom_test::source_path(cat("tests/io/golden/", name)));
    ASSERT_TRUE(file.ok()) << file.error().str();
    expect_state(*file);
  }
}

TEST(TorchFiles, TensorsOfEightBitsNameTheirType) {
  const std::string text = golden("torch_f8.pt");
  const auto file = SafeTensors::parse(bytes_of(text), "f8.pt");
  ASSERT_TRUE(file.ok()) << file.error().str();
  ASSERT_NE(file->find("f8"), nullptr);
  EXPECT_EQ(file->find("f8")->dtype, SafeDType::f8_e4m3);
  EXPECT_EQ(values_of(*file->find("f8")), expected(0, 4, false));
}

TEST(TorchFiles, KeysOfNestedDictionariesMakeTheName) {
  const std::string text = golden("torch_nested.pth");
  const auto file = SafeTensors::parse(bytes_of(text), "nested.pth");
  ASSERT_TRUE(file.ok()) << file.error().str();
  std::vector<std::string> names;
  for (const SafeTensor& tensor : file->tensors()) names.push_back(tensor.name);
  EXPECT_EQ(names, (std::vector<std::string>{"model.fc.weight", "optimizer.state.0.step"}));
  EXPECT_EQ(values_of(*file->find("model.fc.weight")), expected(0, 4, false));
}

TEST(TorchFiles, OtherContentsAreRefusedByName) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"torch_attack.pt",
       "x.pt: uses posix.system, and only tensors are read; save a state_dict of tensors"},
      {"torch_module.pt",
       "x.pt: uses torch.nn.modules.linear.Linear, and only tensors are read; save a state_dict of "
       "tensors"},
      {"torch_columns.pt", "x.pt: tensor 'w' is not in row-major order; save tensor.contiguous()"},
  };
  for (const auto& [name, message] : cases) {
    const std::string text = golden(name);
    expect_error(SafeTensors::parse(bytes_of(text), "x.pt"), Code::unsupported, message);
  }
}

// Every accepted tensor is inside the file.
void expect_safe(std::string_view text) {
  const auto file = SafeTensors::parse(bytes_of(text), "x.pt");
  if (!file.ok()) {
    EXPECT_FALSE(file.error().message.empty());
    return;
  }
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  for (const SafeTensor& tensor : file->tensors()) {
    EXPECT_GE(tensor.data.data(), begin);
    EXPECT_LE(tensor.data.data() + tensor.data.size(), begin + text.size());
    EXPECT_EQ(static_cast<uint64_t>(tensor.count()) * safe_dtype_bits(tensor.dtype) / 8,
              tensor.data.size());
  }
}

TEST(TorchFiles, EveryBeginningOfAFileIsRefused) {
  for (const std::string_view name : {"torch_archive.pt", "torch_stream.bin"}) {
    const std::string text = golden(name);
    for (size_t size = 0; size < text.size(); ++size) {
      const std::string part = text.substr(0, size);
      EXPECT_FALSE(SafeTensors::parse(bytes_of(part), "x.pt").ok()) << name << " " << size;
    }
  }
}

TEST(TorchFiles, ChangedBytesAreReadOrRefusedAndNeverLeaveTheFile) {
  for (const std::string_view name : {"torch_archive.pt", "torch_stream.bin", "torch_nested.pth"}) {
    const std::string text = golden(name);
    const Rng rng(11, text.size());
    for (uint64_t i = 0; i < 4000; ++i) {
      std::string changed = text;
      for (uint64_t k = 0; k <= i % 3; ++k) {
        const auto at =
            static_cast<size_t>(rng.uniform(8 * i + 2 * k) * static_cast<float>(text.size()));
        changed[std::min(at, text.size() - 1)] =
            static_cast<char>(rng.uniform(8 * i + 2 * k + 1) * 256);
      }
      expect_safe(changed);
    }
  }
}

}  // namespace
}  // namespace loom::core
