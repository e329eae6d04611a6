// SafeTensors::open: a file, a folder, or a sharded checkpoint with its index. The index is the
// only input of the library that names other files; a name must be a plain one in the same folder.
// Symbolic links are followed there, because the Hugging Face cache consists of them. Invariant of
// an accepted index: weight_map and the shards name the same tensors in the same files.
#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "io/json/json.hpp"
#include "io/weights/safetensors.hpp"

namespace loom::core {
namespace {

struct IndexEntry {
  std::string_view tensor;
  std::string_view shard;
  int64_t offset;
};

std::string quoted_name(std::string_view name) {
  return cat('"', printable(name), '"');
}

std::string folder_before(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

bool is_plain_name(std::string_view name) {
  const bool dots = name.substr(0, 1) == "." || name.find("..") != std::string_view::npos;
  const auto bad = [](char c) {
    return c == '/' || c == '\\' || c == ':' || static_cast<unsigned char>(c) < 0x20;
  };
  return !name.empty() && name.size() <= 255 && !dots &&
         std::none_of(name.begin(), name.end(), bad);
}

// Drops repeated pairs: most shards repeat {"format": "pt"}.
void keep_first(std::vector<std::pair<std::string, std::string>>& pairs) {
  std::set<std::pair<std::string, std::string>> seen;
  const auto known = [&](const auto& pair) { return !seen.insert(pair).second; };
  pairs.erase(std::remove_if(pairs.begin(), pairs.end(), known), pairs.end());
}

// weight_map, sorted by tensor name. The views point into `index`.
Result<std::vector<IndexEntry>> read_weight_map(const JsonValue& index, const std::string& path) {
  const JsonValue* map = index.find("weight_map");
  if (map == nullptr || !map->is_object()) {
    return bad_file("no weight_map: not the index of a sharded checkpoint", path);
  }
  std::vector<IndexEntry> entries;
  for (const auto& [tensor, shard] : map->members()) {
    if (!shard.is_string()) {
      return bad_file(cat("weight_map ", quoted_name(tensor), ": expected a file name, found ",
                          shard.describe()),
                      path, shard.offset());
    }
    if (!is_plain_name(shard.text())) {
      return bad_file(cat("weight_map ", quoted_name(tensor), ": ", shard.describe(),
                          " is not a plain file name in the same folder"),
                      path, shard.offset());
    }
    entries.push_back({tensor, shard.text(), shard.offset()});
  }
  if (entries.empty()) return bad_file("weight_map is empty", path, map->offset());
  std::sort(entries.begin(), entries.end(),
            [](const IndexEntry& a, const IndexEntry& b) { return a.tensor < b.tensor; });
  return entries;
}

// Compares two lists sorted by tensor name. `shards` names the files in order.
Status check_agreement(const std::vector<IndexEntry>& entries,
                       const std::vector<SafeTensor>& tensors,
                       const std::vector<std::string>& shards, const std::string& path) {
  for (size_t i = 0; i + 1 < tensors.size(); ++i) {
    if (tensors[i].name == tensors[i + 1].name) {
      return bad_file(cat("tensor ", quoted_name(tensors[i].name), " is in both ",
                          quoted_name(shards[tensors[i].file]), " and ",
                          quoted_name(shards[tensors[i + 1].file])),
                      path);
    }
  }
  auto tensor = tensors.begin();
  for (const IndexEntry& entry : entries) {
    if (tensor != tensors.end() && tensor->name < entry.tensor) break;
    if (tensor == tensors.end() || tensor->name != entry.tensor) {
      return bad_file(cat("tensor ", quoted_name(entry.tensor), " is not in ",
                          quoted_name(entry.shard), ", where weight_map puts it"),
                      path, entry.offset);
    }
    if (shards[tensor->file] != entry.shard) {
      return bad_file(
          cat("tensor ", quoted_name(entry.tensor), " is in ", quoted_name(shards[tensor->file]),
              ", weight_map says ", quoted_name(entry.shard)),
          path, entry.offset);
    }
    ++tensor;
  }
  if (tensor == tensors.end()) return {};
  return bad_file(cat("tensor ", quoted_name(tensor->name), " of ",
                      quoted_name(shards[tensor->file]), " is not in weight_map"),
                  path);
}

}  // namespace

Status SafeTensors::add_map(const FileRef& path) {
  LOOM_ASSIGN(MappedFile map, MappedFile::open(path));
  LOOM_TRY(add_file(map.bytes(), path, files_.size()));
  files_.push_back(std::move(map));
  return {};
}

Result<SafeTensors> SafeTensors::open_index(const std::string& path) {
  LOOM_ASSIGN(const std::string text, read_file(path, kMaxSafeHeader));
  LOOM_ASSIGN(const JsonValue index, parse_json(text, path));
  LOOM_ASSIGN(const std::vector<IndexEntry> entries, read_weight_map(index, path));
  std::vector<std::string> shards;
  for (const IndexEntry& entry : entries) shards.emplace_back(entry.shard);
  std::sort(shards.begin(), shards.end());
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  if (shards.size() > kMaxSafeShards) {
    return bad_file(cat(shards.size(), " shards; the limit is ", kMaxSafeShards), path);
  }
  SafeTensors model;
  for (const std::string& shard : shards) {
    const Status added = model.add_map(folder_before(path) + shard);
    if (!added.ok() && added.error().code == Code::not_found) {
      return make_error(Code::not_found, cat("shard ", quoted_name(shard), " is missing"), path);
    }
    LOOM_TRY(added);
  }
  keep_first(model.metadata_);
  model.sort_by_name();
  LOOM_TRY(check_agreement(entries, model.tensors_, shards, path));
  return model;
}

std::string checkpoint_in(const std::string& folder) {
  const std::string before = folder.ends_with('/') ? folder : folder + "/";
  for (const std::string_view name : kCheckpointFiles) {
    for (const std::string_view end : {"", ".index.json"}) {
      std::string file = cat(before, name, end);
      if (file_exists(file)) return file;
    }
  }
  return {};
}

Result<SafeTensors> SafeTensors::open(const FileRef& path) {
  if (!path.in_memory() && path.name().ends_with(".json")) return open_index(path);
  FileRef file = path;
  if (is_directory(path)) {
    const std::string found = checkpoint_in(path);
    if (found.empty()) {
      return make_error(Code::not_found,
                        "this folder has neither model.safetensors nor pytorch_model.bin, nor an "
                        "index of one",
                        path);
    }
    if (found.ends_with(".json")) return open_index(found);
    file = found;
  }
  SafeTensors model;
  LOOM_TRY(model.add_map(file));
  model.sort_by_name();
  return model;
}

}  // namespace loom::core
