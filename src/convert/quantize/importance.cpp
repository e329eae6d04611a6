#include "convert/quantize/importance.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/left_out.hpp"
#include "io/bytes/byte_reader.hpp"
#include "io/files/file.hpp"
#include "llm/decoder.hpp"
#ifndef LOOM_WITHOUT_GGUF
#include "formats/gguf/names.hpp"
#include "formats/gguf/write.hpp"
#endif

namespace loom::core {
#ifdef LOOM_WITHOUT_GGUF
Result<Importance> read_importance(const std::string& path, const ModelSource&) {
  return left_out_of_build("importance matrices", LOOM_BUILD_WITH("LOOM_GGUF=ON"), path);
}
Status write_importance(const std::string& path, const Importance&, const ModelSource&) {
  return left_out_of_build("importance matrices", LOOM_BUILD_WITH("LOOM_GGUF=ON"), path);
}
#else
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

// The matrices of one entry, which share their inputs: means by name in GGUF files.
struct Entry {
  std::vector<float> means;
  std::vector<std::string> paths;
  int64_t cols = 0;
};

Result<std::map<std::string, Entry> > entries_of(const ModelSource& source) {
  const DecoderFamily* family = find_family_in_gguf(source.config);
  if (family == nullptr)
    return unsupported(cat("GGUF has no class ", source.config.architecture,
                           ", so there are no names for its importance matrix"),
                       source.path);
  LOOM_ASSIGN(const GridSpec grid, decoder_grid(source.config));
  LOOM_ASSIGN(const Network network, Network::finalize(grid, Shape{1, 1}));
  std::map<std::string, Entry> out;
  for (const Param& param : network.params()) {
    if (!param.spec.matrix()) continue;
    Entry& entry = out[gguf_tensor(param, source.config, family->gguf).name];
    entry.paths.push_back(param.path);
    entry.cols = param.spec.shape[1];
  }
  return out;
}

Status read_dat(std::span<const std::byte> bytes, const std::string& path,
                std::map<std::string, Entry>& entries, Importance& out) {
  ByteReader reader(bytes, path);
  LOOM_ASSIGN(const uint32_t count, reader.u32("number of entries"));
  for (uint32_t i = 0; i < count; ++i) {
    LOOM_ASSIGN(const uint32_t length, reader.u32("length of a name"));
    LOOM_ASSIGN(const auto name, reader.take(length, "name"));
    LOOM_ASSIGN(const uint32_t calls, reader.u32("number of chunks"));
    LOOM_ASSIGN(const uint32_t values, reader.u32("number of values"));
    LOOM_ASSIGN(const auto data, reader.take(uint64_t{values} * sizeof(float), "values"));
    const auto found =
        entries.find(std::string(reinterpret_cast<const char*>(name.data()), name.size()));
    if (found == entries.end()) continue;
    std::vector<float>& means = found->second.means;
    means.resize(values);
    std::memcpy(means.data(), data.data(), data.size());
    for (float& mean : means) mean /= static_cast<float>(std::max<uint32_t>(calls, 1));
  }
  if (reader.remaining() < sizeof(uint32_t)) return {};  // the oldest files end here
  LOOM_ASSIGN(const uint32_t windows, reader.u32("number of chunks"));
  out.windows = windows;
  return {};
}

Status read_gguf(const std::string& path, std::map<std::string, Entry>& entries, Importance& out) {
  LOOM_ASSIGN(const Gguf file, Gguf::open(path));
  const Result<uint32_t> windows = file.u32("imatrix.chunk_count");
  if (windows.ok()) out.windows = *windows;
  for (auto& [name, entry] : entries) {
    const int64_t sums = file.find_tensor(cat(name, kSums));
    const int64_t counts = file.find_tensor(cat(name, kCounts));
    if (sums < 0 || counts < 0) continue;
    const int64_t n = file.entries()[static_cast<size_t>(sums)].count();
    const int64_t matrices = file.entries()[static_cast<size_t>(counts)].count();
    if (matrices < 1 || n % matrices != 0)
      return bad_file(cat("'", name, kCounts, "' has ", matrices, " numbers for ", n, " sums"),
                      path);
    std::vector<float> number(static_cast<size_t>(matrices));
    entry.means.resize(static_cast<size_t>(n));
    LOOM_TRY(file.to_f32(static_cast<size_t>(sums), 0, n, entry.means.data()));
    LOOM_TRY(file.to_f32(static_cast<size_t>(counts), 0, matrices, number.data()));
    for (int64_t i = 0; i < n; ++i) {
      const float by = number[static_cast<size_t>(i / (n / matrices))];
      float& mean = entry.means[static_cast<size_t>(i)];
      mean = by > 0 ? mean / by : 1.0f;  // an expert that no token reached
    }
    if (number[0] > 0) out.rows = static_cast<int64_t>(number[0]);
  }
  return {};
}

Status check_means(const std::string& name, const std::vector<float>& means, int64_t cols,
                   const std::string& path) {
  if (means.size() % static_cast<size_t>(cols) != 0)
    return bad_file(cat("'", name, "' has ", means.size(), " values for rows of ", cols), path);
  for (const float mean : means) {
    if (!(mean >= 0) || !(mean - mean == 0))
      return bad_file(cat("'", name, "' has a value that is not a mean of squares"), path);
  }
  return {};
}

void put_u32(std::string& out, size_t value) {
  const auto v = static_cast<uint32_t>(value);
  out.append(reinterpret_cast<const char*>(&v), sizeof(v));
}

std::string dat_of(const std::map<std::string, Entry>& entries, const Importance& importance) {
  std::string out;
  put_u32(out, entries.size());
  for (const auto& [name, entry] : entries) {
    put_u32(out, name.size());
    out += name;
    put_u32(out, static_cast<size_t>(importance.windows));
    put_u32(out, entry.means.size());
    std::vector<float> sums = entry.means;
    for (float& sum : sums) sum *= static_cast<float>(importance.windows);
    out.append(reinterpret_cast<const char*>(sums.data()), sums.size() * sizeof(float));
  }
  put_u32(out, static_cast<size_t>(importance.windows));
  put_u32(out, 0);  // the name of the text
  return out;
}

Status write_gguf_importance(const std::string& path, const std::map<std::string, Entry>& entries,
                             const Importance& importance) {
  GgufMetadata metadata;
  metadata.string("general.type", "imatrix");
  metadata.strings("imatrix.datasets", {});
  const auto windows = static_cast<uint32_t>(std::max<int64_t>(importance.windows, 1));
  metadata.u32("imatrix.chunk_count", windows);
  metadata.u32("imatrix.chunk_size",
               static_cast<uint32_t>(importance.rows / static_cast<int64_t>(windows)));
  std::vector<GgufOutput> tensors;
  const auto add = [&](std::string name, std::vector<float> values) {
    GgufOutput out;
    out.name = std::move(name);
    out.type = "F32";
    out.shape = {1, static_cast<int64_t>(values.size())};
    out.write = [values = std::move(values)](const GgufSink& sink) {
      return sink(std::as_bytes(std::span(values)));
    };
    tensors.push_back(std::move(out));
  };
  for (const auto& [name, entry] : entries) {
    std::vector<float> sums = entry.means;
    for (float& sum : sums) sum *= static_cast<float>(importance.rows);
    add(cat(name, kSums), std::move(sums));
    add(cat(name, kCounts), {static_cast<float>(importance.rows)});
  }
  return write_gguf_file(path, metadata, tensors);
}

}  // namespace

Result<Importance> read_importance(const std::string& path, const ModelSource& source) {
  LOOM_ASSIGN(auto entries, entries_of(source));
  LOOM_ASSIGN(const MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Importance out;
  const Status read = text.starts_with("GGUF") ? read_gguf(path, entries, out)
                                               : read_dat(bytes, path, entries, out);
  if (!read.ok()) return bad_file(cat("is not an importance matrix: ", read.error().message), path);
  for (auto& [name, entry] : entries) {
    if (entry.means.empty()) continue;
    LOOM_TRY(check_means(name, entry.means, entry.cols, path));
    for (const std::string& param : entry.paths) out.means[param] = entry.means;
  }
  if (out.means.empty())
    return bad_file(
        "has no entry for a matrix of this model; it is of another model, or not an "
        "importance matrix",
        path);
  return out;
}

Status write_importance(const std::string& path, const Importance& importance,
                        const ModelSource& source) {
  LOOM_ASSIGN(auto entries, entries_of(source));
  for (auto& [name, entry] : entries) {
    const auto found = importance.means.find(entry.paths.front());
    if (found != importance.means.end()) entry.means = found->second;
  }
  std::erase_if(entries, [](const auto& item) { return item.second.means.empty(); });
  if (to_lower_ascii(path).ends_with(".gguf"))
    return write_gguf_importance(path, entries, importance);
  const std::string text = dat_of(entries, importance);
  return write_file_atomic(path, std::as_bytes(std::span(text)));
}

#endif
}  // namespace loom::core
