#include "train_io/file_memory.hpp"

#include <algorithm>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "grid/network.hpp"
#include "io/bytes/byte_reader.hpp"
#include "io/files/file.hpp"
#include "io/json/json_memory.hpp"
#include "io/weights/entity.hpp"
#include "io/weights/safetensors.hpp"

namespace loom::core {
namespace {

// Bytes per layer or tensor of an object, beside its JSON: its configuration and its parameters;
// also per level of nesting. Measured with `loom info` on descriptions of 200,000 layers, which
// take 1.0 kB each with their JSON.
constexpr uint64_t kObject = 1000, kLevel = 700;
// Bytes per layer that is written: its text, and its parameters once more. `loom convert` of the
// same descriptions takes 5.4 to 6.6 kB more for each.
constexpr uint64_t kWritten = 7000;
// A tokenizer: its vocabulary by text and by id, its merges as a table.
constexpr uint64_t kTokenizer = 8;
// GGUF: an entry of the table of tensors, a pair of the metadata.
constexpr uint64_t kGgufTensor = 512, kGgufPair = 192;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t json_need(std::string_view text) {
  const JsonSize size = measure_json(text);
  return text.size() + size.tree + kObject * size.objects + kLevel * size.nesting;
}

// The JSON header that begins at `start` and has `length` bytes, as far as the file goes.
uint64_t header_need(std::span<const std::byte> bytes, uint64_t start, uint64_t length) {
  if (start > bytes.size()) return 0;
  const auto rest = bytes.subspan(static_cast<size_t>(start));
  return json_need(
      text_of(rest.first(static_cast<size_t>(std::min<uint64_t>(length, rest.size())))));
}

uint64_t length_at(std::span<const std::byte> bytes, uint64_t offset) {
  ByteReader reader(bytes, {});
  if (!reader.skip(offset, "").ok()) return 0;
  const Result<uint64_t> length = reader.u64("");
  return length.ok() ? *length : 0;
}

// Counts in the header of a GGUF file. Its reader compares them with the file's size.
uint64_t gguf_need(std::span<const std::byte> bytes) {
  constexpr uint64_t kTensorBytes = 24, kPairBytes = 12;  // the least that one takes in the file
  return kGgufTensor * std::min<uint64_t>(length_at(bytes, 8), bytes.size() / kTensorBytes) +
         kGgufPair * std::min<uint64_t>(length_at(bytes, 16), bytes.size() / kPairBytes);
}

// Whether it is JSON. Spaces may precede its first brace.
bool is_json(std::string_view text) {
  const size_t at = text.substr(0, 4096).find_first_not_of(" \n\r\t");
  return at != std::string_view::npos && text[at] == '{';
}

Result<uint64_t> file_need(const FileRef& path) {
  LOOM_ASSIGN(const MappedFile file, MappedFile::open(path));
  const std::span<const std::byte> bytes = file.bytes();
  uint64_t need = 0;
  if (text_of(bytes).starts_with("GGUF")) {
    need = gguf_need(bytes);
  } else if (entity_version(bytes) != 0) {
    need = header_need(bytes, kEntityFixed, length_at(bytes, 12));
  } else if (is_json(text_of(bytes))) {
    need = json_need(text_of(bytes));
    if (path.name().ends_with("tokenizer.json")) need += kTokenizer * bytes.size();
  } else if (bytes.size() > 8 && bytes[8] == std::byte{'{'}) {
    need = header_need(bytes, 8, std::min<uint64_t>(length_at(bytes, 0), kMaxSafeHeader));
  }
  file.release(0, bytes.size());
  return need;
}

Status check_file(const FileRef& path, const MemoryBudget& memory) {
  if (!file_exists(path)) return {};
  const Result<uint64_t> need = file_need(path);
  if (!need.ok()) return {};
  return memory.check(*need, "its table of contents", path);
}

}  // namespace

Status check_opening(const FileRef& path, const MemoryBudget& memory) {
  if (!is_directory(path)) return check_file(path, memory);
  for (const char* name :
       {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
        "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin.index.json"}) {
    LOOM_TRY(check_file(cat(path.name(), "/", name), memory));
  }
  return {};
}

Status check_json(std::string_view text, const MemoryBudget& memory, const std::string& where) {
  return memory.check(json_need(text), "its table of contents", where);
}

Status check_text(const std::string& path, const MemoryBudget& memory) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok()) return {};  // its reader says what is wrong
  return check_text(file->bytes().size(), memory, path);
}

Status check_text(uint64_t bytes, const MemoryBudget& memory, const std::string& where) {
  return memory.check(kMemoryPerTextByte * bytes, "the text and its tokens", where);
}

Status check_parameters(const NetworkSpec& network, uint64_t copies, const MemoryBudget& memory,
                        const std::string& where) {
  LOOM_ASSIGN(const Network whole, Network::finalize(network.grid, network.input.after(1)));
  uint64_t bytes = 0;
  const auto values = static_cast<uint64_t>(std::max<int64_t>(whole.param_count(), 0));
  if (!checked_mul(values, copies * sizeof(float), bytes)) bytes = UINT64_MAX;
  return memory.check(bytes, cat("its ", values, " parameters"), where);
}

namespace {

uint64_t count_layers(const LayerConfig& layer) {
  uint64_t count = 1;
  for (const LayerConfig& child : layer.children) count += count_layers(child);
  return count;
}

}  // namespace

Status check_writing(const NetworkSpec& network, const MemoryBudget& memory,
                     const std::string& where) {
  uint64_t layers = 0;
  for (int64_t i = 0; i < network.grid.size(); ++i) {
    if (const Cell* cell = network.grid.cell(i); cell != nullptr)
      layers += count_layers(cell->layer);
  }
  return memory.check(kWritten * layers, cat("writing its ", layers, " layers"), where);
}

}  // namespace loom::core
