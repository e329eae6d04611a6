#include "train_io/media_files.hpp"

#include <algorithm>
#include <numeric>

#include "base/text.hpp"
#include "io/bytes/byte_source.hpp"
#include "io/files/folder.hpp"
#include "media/picture.hpp"
#include "media/sound.hpp"

namespace loom::core {
namespace {

constexpr size_t kMaxFiles = size_t{1} << 24;
constexpr int kMaxDepth = 32;

// The files of a folder, and what they are samples of.
struct MediaFiles {
  std::vector<std::string> paths;
  std::vector<int32_t> labels;       // empty: the folder has no classes
  std::vector<std::string> classes;  // their names
  int64_t images = 0, sounds = 0;    // of the paths
  int64_t others = 0;                // files that are left out
  std::string unread;                // one of them that is an image of an unsupported format
};

// Adds the images and sounds of `path` and of the folders in it.
Status add_files(const std::string& path, int depth, MediaFiles& out) {
  if (depth > kMaxDepth) return bad_file(cat("more than ", kMaxDepth, " folders deep"), path);
  LOOM_ASSIGN(const std::vector<FolderEntry> entries, list_folder(path, kMaxFiles));
  for (const FolderEntry& entry : entries) {
    if (entry.folder) {
      LOOM_TRY(add_files(cat(path, "/", entry.name), depth + 1, out));
    } else if (!is_picture_name(entry.name) && !is_sound_name(entry.name)) {
      ++out.others;
      if (is_unread_picture_name(entry.name)) out.unread = printable(entry.name, 100);
    } else if (out.paths.size() < kMaxFiles) {
      ++(is_sound_name(entry.name) ? out.sounds : out.images);
      out.paths.push_back(cat(path, "/", entry.name));
    } else {
      return bad_file(cat("more than ", kMaxFiles, " files"), path);
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
  LOOM_ASSIGN(const std::vector<FolderEntry> entries, list_folder(path, kMaxFiles));
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
    if (out.paths.size() == before) continue;  // no samples, no class
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

Result<PictureShape> picture_shape(const InputSchema& w) {
  const Shape& s = w.sample;
  const bool colours = s.rank() == 3 && (s[0] == 1 || s[0] == 3);
  if (!w.ids && (s.rank() == 2 || colours))
    return PictureShape{colours ? s[0] : 1, s[s.rank() - 2], s.last()};
  return invalid(
      cat("images need an input [height, width], [1, height, width] or [3, height, "
          "width]; the network takes ",
          w.ids ? "ids " : "", s.str()));
}

class PictureSource : public InputSource {
 public:
  PictureSource(std::vector<FileRef> files, const PictureShape& shape, PictureFit fit,
                MemoryBudget memory)
      : files_(std::move(files)), shape_(shape), fit_(fit), memory_(std::move(memory)) {}

  Status read(int64_t row, float* to) const override {
    const FileRef& file = files_[static_cast<size_t>(row)];
    LOOM_ASSIGN(const MappedFile map, MappedFile::open(file));
    LOOM_ASSIGN(const Image image, decode_picture(map.bytes(), file, memory_));
    fit_picture(image, fit_, shape_, {to, static_cast<size_t>(shape_.count())});
    return {};
  }

 private:
  std::vector<FileRef> files_;
  PictureShape shape_;
  PictureFit fit_;
  MemoryBudget memory_;
};

// The form of a sound as an input: samples alone (no bands), or bands in frames.
struct SoundShape {
  int64_t bands = 0, frames = 0;
  bool time_first = false;
};

Result<SoundShape> sound_shape(const InputSchema& w, bool time_first) {
  const Shape& s = w.sample;
  const bool alone = s.rank() == 1 || (s.rank() == 2 && s[0] == 1);
  if (!w.ids && alone) return SoundShape{0, s.last(), false};
  if (!w.ids && (s.rank() == 2 || (s.rank() == 3 && s[0] == 1))) {
    const int64_t first = s[s.rank() - 2], last = s.last();
    return time_first ? SoundShape{last, first, true} : SoundShape{first, last, false};
  }
  return invalid(
      cat("sound needs an input [bands, frames], [1, bands, frames], [samples] or "
          "[1, samples]; the network takes ",
          w.ids ? "ids " : "", s.str()));
}

class SoundSource : public InputSource {
 public:
  SoundSource(std::vector<FileRef> files, const SoundShape& shape, const MelSpec& mel,
              MemoryBudget memory)
      : files_(std::move(files)), shape_(shape), mel_(mel), memory_(std::move(memory)) {}

  Status read(int64_t row, float* to) const override {
    const FileRef& file = files_[static_cast<size_t>(row)];
    LOOM_ASSIGN(const MappedFile map, MappedFile::open(file));
    LOOM_ASSIGN(Wave wave, decode_sound(map.bytes(), file, memory_));
    const int64_t rate = mel_.spec().rate;
    if (wave.rate != rate) {
      const uint64_t longer = wave.samples.size() / static_cast<uint64_t>(wave.rate) + 1;
      LOOM_TRY(memory_.check(longer * static_cast<uint64_t>(rate) * sizeof(float),
                             "the sound at another rate", file));
      wave = resampled(wave, rate);
    }
    if (shape_.bands == 0) {
      const auto count = static_cast<size_t>(shape_.frames);
      std::fill_n(to, count, 0.0f);
      std::copy_n(wave.samples.data(), std::min(count, wave.samples.size()), to);
      return {};
    }
    const auto count = static_cast<size_t>(shape_.bands * shape_.frames);
    if (!shape_.time_first) {
      mel_.read(wave.samples, shape_.frames, {to, count});
      return {};
    }
    std::vector<float> bands(count);
    mel_.read(wave.samples, shape_.frames, bands);
    for (int64_t i = 0; i < shape_.bands * shape_.frames; ++i)
      to[i % shape_.frames * shape_.bands + i / shape_.frames] = bands[static_cast<size_t>(i)];
    return {};
  }

 private:
  std::vector<FileRef> files_;
  SoundShape shape_;
  MelReader mel_;
  MemoryBudget memory_;
};

// The labels or targets that the folders say.
Status set_classes(const MediaFiles& files, const InputSchema& w, const std::string& path,
                   LoadedDataset& out) {
  const auto classes = static_cast<int64_t>(files.classes.size());
  if (files.labels.empty())
    return bad_file("a file has no class here; give a folder with a folder for each class", path);
  if (!w.takes(1))
    return bad_file(
        cat("a folder is one class per sample; the network gives ", w.labels(), " predictions"),
        path);
  out.names = files.classes;
  if (w.outputs == 1 && classes <= 2 && !w.embeddings) {
    out.data.targets.assign(files.labels.begin(), files.labels.end());
    out.data.outputs = 1;
    return {};
  }
  if (classes > w.outputs && !w.embeddings)
    return bad_file(cat(classes, " classes (one per folder), the network has ", w.outputs), path);
  out.data.labels = files.labels;
  out.data.classes = w.embeddings ? classes : w.outputs;
  return {};
}

// The decoder of the files, and its options. The input completes `reading`.
Result<std::shared_ptr<const InputSource>> source_of(std::vector<FileRef> files, bool sound,
                                                     const InputSchema& schema,
                                                     const DatasetOptions& options,
                                                     MediaReading& reading) {
  if (!sound) {
    LOOM_ASSIGN(const PictureShape shape, picture_shape(schema));
    reading.mel.bands = 0;
    return std::shared_ptr<const InputSource>(
        std::make_shared<PictureSource>(std::move(files), shape, reading.fit, options.memory));
  }
  LOOM_ASSIGN(const SoundShape shape, sound_shape(schema, reading.time_first));
  reading.mel.bands = std::max<int64_t>(shape.bands, 1);
  LOOM_TRY(check_mel(reading.mel));
  return std::shared_ptr<const InputSource>(
      std::make_shared<SoundSource>(std::move(files), shape, reading.mel, options.memory));
}

// The values of all samples, piece by piece.
Status read_all(const FileRef& path, const DatasetOptions& options, Dataset& data) {
  constexpr int64_t kPiece = 64;  // between two looks at whether to go on
  const int64_t each = data.sample.count();
  std::vector<float> values(static_cast<size_t>(data.samples * each));
  for (int64_t first = 0; first < data.samples; first += kPiece) {
    const int64_t count = std::min(kPiece, data.samples - first);
    LOOM_TRY(data.read_inputs(data.source_rows, first, count, values.data() + first * each,
                              options.pool));
    if (options.progress && !options.progress(first + count, data.samples))
      return make_error(Code::cancelled, "reading the samples was stopped", path);
  }
  data.inputs = std::move(values);
  data.source = nullptr;
  data.source_rows.clear();
  return {};
}

std::string left_out_note(const MediaFiles& files, const std::string& path) {
  return cat(path, ": ", files.others, files.others == 1 ? " file is" : " files are",
             " neither an image (.png, .jpg, .jpeg) nor a sound, and left out",
             files.unread.empty() ? "" : cat("; save '", files.unread, "' as PNG to use it"));
}

// Read now, where that takes no more than half of what is left; else whenever they are asked for,
// after the first one, so that what is wrong with all of them is said before anything begins.
Status keep_or_read(const FileRef& path, const DatasetOptions& options, LoadedDataset& out) {
  Dataset& data = out.data;
  const auto each = static_cast<uint64_t>(data.sample.count()) * sizeof(float);
  const uint64_t bytes = each * static_cast<uint64_t>(data.samples);
  if (bytes <= options.memory.left() / 2) {
    LOOM_ASSIGN(out.memory, options.memory.take(bytes, "the values", path));
    return read_all(path, options, data);
  }
  LOOM_TRY(options.memory.check(each, "the values of one sample", path));
  std::vector<float> first(static_cast<size_t>(data.sample.count()));
  LOOM_TRY(data.read_inputs(0, first.data()));
  out.notes.push_back(cat(path, ": the values take ", size_text(bytes), " and ",
                          size_text(options.memory.left()),
                          " are left; files are read anew in every epoch"));
  return {};
}

}  // namespace

Result<bool> are_media(const FileRef& path) {
  if (is_directory(path)) return true;
  LOOM_ASSIGN(const MappedFile map, MappedFile::open(path));
  return is_picture(map.bytes()) || is_sound(map.bytes());
}

Result<LoadedDataset> load_media(const FileRef& path, const InputSchema& schema,
                                 const DatasetOptions& options) {
  if (!options.labels.empty())
    return invalid("the folders name the classes; leave --labels out", path);
  if (!options.lengths.empty())
    return invalid("samples of a folder are cut or padded to the input; leave lengths out", path);
  if (!options.weights.empty()) return invalid("samples of a folder have no weights", path);
  MediaFiles files;
  std::vector<FileRef> refs = {path};
  if (is_directory(path)) {
    LOOM_ASSIGN(files, files_of(path, options));
    refs.assign(files.paths.begin(), files.paths.end());
  } else {
    LOOM_ASSIGN(const MappedFile map, MappedFile::open(path));
    files.paths = {path.name()};
    ++(is_sound(map.bytes()) ? files.sounds : files.images);
  }
  if (files.paths.empty())
    return make_error(Code::not_found, "no image (.png, .jpg, .jpeg) and no sound in this folder",
                      path);
  if (files.images > 0 && files.sounds > 0)
    return bad_file(cat(files.images, " images and ", files.sounds, " sounds in one folder"), path);
  LoadedDataset out;
  out.media = options.reading;
  Dataset& data = out.data;
  data.samples = static_cast<int64_t>(refs.size());
  data.sample = schema.sample;
  if (!options.inputs_only) LOOM_TRY(set_classes(files, schema, path, out));
  LOOM_ASSIGN(data.source,
              source_of(std::move(refs), files.sounds > 0, schema, options, *out.media));
  data.source_rows.resize(static_cast<size_t>(data.samples));
  std::iota(data.source_rows.begin(), data.source_rows.end(), 0);
  if (files.others > 0) out.notes.push_back(left_out_note(files, path));
  LOOM_TRY(keep_or_read(path, options, out));
  out.files = std::move(files.paths);
  return out;
}

}  // namespace loom::core
