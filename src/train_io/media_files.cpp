#include "train_io/media_files.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/text.hpp"
#include "io/byte_source.hpp"
#include "io/folder.hpp"
#include "media/picture.hpp"

namespace loom::core {
namespace {

constexpr size_t kMostFiles = size_t{1} << 24;
constexpr int kMostDepth = 32;

// The files of a folder, and what they are samples of.
struct MediaFiles {
  std::vector<std::string> paths;
  std::vector<int32_t> labels;       // empty: the folder has no classes
  std::vector<std::string> classes;  // their names
  int64_t others = 0;                // files that are left out
};

// Adds the pictures of `path` and of the folders in it.
Status add_files(const std::string& path, int depth, MediaFiles& out) {
  if (depth > kMostDepth) return bad_file(cat("more than ", kMostDepth, " folders deep"), path);
  LOOM_ASSIGN(const std::vector<FolderEntry> entries, list_folder(path, kMostFiles));
  for (const FolderEntry& entry : entries) {
    if (entry.folder) {
      LOOM_TRY(add_files(cat(path, "/", entry.name), depth + 1, out));
    } else if (!is_picture_name(entry.name)) {
      ++out.others;
    } else if (out.paths.size() < kMostFiles) {
      out.paths.push_back(cat(path, "/", entry.name));
    } else {
      return bad_file(cat("more than ", kMostFiles, " files"), path);
    }
  }
  return {};
}

Result<int32_t> class_of(const std::string& name, const std::vector<std::string>& known,
                         const std::string& path) {
  const auto at = std::ranges::find(known, name);
  if (at != known.end()) return static_cast<int32_t>(at - known.begin());
  return bad_file(cat("class '", printable(name), "' was not in training"), path);
}

// A folder without folders has no classes; beside folders files are left out.
Result<MediaFiles> files_of(const std::string& path, const DatasetOptions& options) {
  MediaFiles out;
  LOOM_ASSIGN(const std::vector<FolderEntry> entries, list_folder(path, kMostFiles));
  const bool by_class = std::ranges::any_of(entries, &FolderEntry::folder);
  if (!by_class || options.inputs_only) {
    LOOM_TRY(add_files(path, 0, out));
    return out;
  }
  for (const FolderEntry& entry : entries) {
    if (!entry.folder) {
      ++out.others;
      continue;
    }
    const std::string folder = cat(path, "/", entry.name);
    const size_t before = out.paths.size();
    LOOM_TRY(add_files(folder, 1, out));
    if (out.paths.size() == before) continue;  // no pictures, no class
    auto label = static_cast<int32_t>(out.classes.size());
    if (options.names.empty()) {
      out.classes.push_back(entry.name);
    } else {
      LOOM_ASSIGN(label, class_of(entry.name, options.names, folder));
    }
    out.labels.resize(out.paths.size(), label);
  }
  if (!options.names.empty()) out.classes = options.names;
  return out;
}

Result<PictureShape> picture_shape(const Wanted& w) {
  const Shape& s = w.sample;
  const bool colours = s.rank() == 3 && (s[0] == 1 || s[0] == 3);
  if (!w.ids && (s.rank() == 2 || colours))
    return PictureShape{colours ? s[0] : 1, s[s.rank() - 2], s.last()};
  return invalid(
      cat("pictures need an input [height, width], [1, height, width] or [3, height, "
          "width]; the network takes ",
          w.ids ? "ids " : "", s.str()));
}

// The labels or targets that the folders say.
Status set_classes(const MediaFiles& files, const Wanted& w, const std::string& path,
                   LoadedDataset& out) {
  const auto classes = static_cast<int64_t>(files.classes.size());
  if (files.labels.empty())
    return bad_file("a picture has no class here; give a folder with a folder for each class",
                    path);
  if (w.labels() != 1)
    return bad_file(
        cat("a folder is one class per sample; the network gives ", w.labels(), " predictions"),
        path);
  out.names = files.classes;
  if (w.outputs == 1 && classes <= 2) {
    out.data.targets.assign(files.labels.begin(), files.labels.end());
    out.data.outputs = 1;
    return {};
  }
  if (classes > w.outputs)
    return bad_file(cat(classes, " classes (one per folder), the network has ", w.outputs), path);
  out.data.labels = files.labels;
  out.data.classes = w.outputs;
  return {};
}

// Files to the values of samples, several at a time. The Error is that of the first file that has
// one, whatever the number of lanes.
class MediaReader {
 public:
  MediaReader(const std::vector<std::string>& paths, const PictureShape& shape,
              const DatasetOptions& options)
      : paths_(paths), shape_(shape), options_(options) {}

  Status read_all(const FileRef& path, std::vector<float>& values) {
    constexpr int64_t kPiece = 64;  // between two looks at whether to go on
    const auto count = static_cast<int64_t>(paths_.size());
    for (int64_t first = 0; first < count; first += kPiece) {
      LOOM_TRY(read_some(path, first, std::min(first + kPiece, count), values));
      const int64_t done = std::min(first + kPiece, count);
      if (options_.progress && !options_.progress(done, count))
        return make_error(Code::cancelled, "reading the samples was stopped", path);
    }
    return {};
  }

 private:
  Status read_one(const FileRef& file, std::span<float> to) const {
    LOOM_ASSIGN(const MappedFile map, MappedFile::open(file));
    LOOM_ASSIGN(const Picture picture, decode_picture(map.bytes(), file, options_.memory));
    fit_picture(picture, options_.fit, shape_, to);
    return {};
  }

  Status read_some(const FileRef& path, int64_t first, int64_t end, std::vector<float>& values) {
    const auto each = static_cast<size_t>(shape_.count());
    std::vector<Status> done(static_cast<size_t>(end - first));
    std::atomic<int64_t> next = first;
    auto work = [&](int /*lane*/, int /*lanes*/) {
      for (int64_t i = next++; i < end; i = next++) {
        const auto row = static_cast<size_t>(i);
        const std::span<float> to(values.data() + row * each, each);
        done[static_cast<size_t>(i - first)] =
            read_one(path.in_memory() ? path : FileRef(paths_[row]), to);
      }
    };
    options_.pool != nullptr ? options_.pool->run(work) : work(0, 1);
    for (const Status& status : done) LOOM_TRY(status);
    return {};
  }

  const std::vector<std::string>& paths_;
  const PictureShape shape_;
  const DatasetOptions& options_;
};

std::string left_out_note(const MediaFiles& files, const std::string& path) {
  return cat(path, ": ", files.others, files.others == 1 ? " file is" : " files are",
             " no .png, .jpg or .jpeg, and left out");
}

}  // namespace

Result<bool> are_media(const FileRef& path) {
  if (is_directory(path)) return true;
  LOOM_ASSIGN(const MappedFile map, MappedFile::open(path));
  return is_picture(map.bytes());
}

Result<LoadedDataset> load_media(const FileRef& path, const Wanted& wanted,
                                 const DatasetOptions& options) {
  LOOM_ASSIGN(const PictureShape shape, picture_shape(wanted));
  if (!options.labels.empty())
    return invalid("the folders name the classes; leave --labels out", path);
  if (!options.weights.empty()) return invalid("samples of a folder have no weights", path);
  MediaFiles files;
  if (is_directory(path)) {
    LOOM_ASSIGN(files, files_of(path, options));
  } else {
    files.paths = {path.name()};
  }
  if (files.paths.empty())
    return make_error(Code::not_found, "no picture (.png, .jpg, .jpeg) in this folder", path);
  LoadedDataset out;
  out.data.samples = static_cast<int64_t>(files.paths.size());
  out.data.sample = wanted.sample;
  if (!options.inputs_only) LOOM_TRY(set_classes(files, wanted, path, out));
  const uint64_t values = files.paths.size() * static_cast<uint64_t>(shape.count());
  LOOM_ASSIGN(out.memory, options.memory.take(values * sizeof(float), "the values", path));
  out.data.inputs.resize(static_cast<size_t>(values));
  MediaReader reader(files.paths, shape, options);
  LOOM_TRY(reader.read_all(path, out.data.inputs));
  if (files.others > 0) out.notes.push_back(left_out_note(files, path));
  out.files = std::move(files.paths);
  return out;
}

}  // namespace loom::core
