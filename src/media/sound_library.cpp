// Sound by libsndfile; this is the only access to it. The library is opened at run time and not
// linked. So wheels do not contain it, and a system without it gets an error that says what to
// install. The interface is that of libsndfile.so.1, unchanged since version 1.0 (2002); the used
// part is declared here. Claimed lengths are not trusted: frames are read in pieces, and memory is
// requested as they come.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/shared_library.hpp"
#include "base/text.hpp"
#include "media/decoders.hpp"

namespace loom::core {
namespace {

struct Info {  // SF_INFO
  int64_t frames = 0;
  int rate = 0, channels = 0, format = 0, sections = 0, seekable = 0;
};
struct Stream {  // SF_VIRTUAL_IO
  int64_t (*length)(void*);
  int64_t (*seek)(int64_t, int, void*);
  int64_t (*read)(void*, int64_t, void*);
  int64_t (*write)(const void*, int64_t, void*);
  int64_t (*tell)(void*);
};
constexpr int kRead = 0x10;                       // SFM_READ
constexpr int kGetLog = 0x1001;                   // SFC_GET_LOG_INFO
constexpr int64_t kUnknown = 0x7fffffffffffffff;  // frames of a stream

struct Api {
  void* (*open)(Stream*, int, Info*, void*) = nullptr;
  int64_t (*read)(void*, double*, int64_t) = nullptr;
  int (*close)(void*) = nullptr;
  int (*error)(void*) = nullptr;
  const char* (*message)(void*) = nullptr;
  int (*command)(void*, int, void*, int) = nullptr;
  bool here = false;
};

Api opened() {
  Api api;
  for (const char* name : {"libsndfile.so.1", "libsndfile.1.dylib", "libsndfile.dylib"}) {
    void* library = open_shared_library(name);
    if (library == nullptr) continue;
    api.here = find_function(library, "sf_open_virtual", api.open) &&
               find_function(library, "sf_readf_double", api.read) &&
               find_function(library, "sf_close", api.close) &&
               find_function(library, "sf_error", api.error) &&
               find_function(library, "sf_strerror", api.message) &&
               find_function(library, "sf_command", api.command);
    if (api.here) break;
  }
  return api;
}

// The bytes of a file as a stream.
struct Source {
  std::span<const std::byte> bytes;
  int64_t at = 0;
};
Source& source(void* user) {
  return *static_cast<Source*>(user);
}
int64_t length_of(void* user) {
  return static_cast<int64_t>(source(user).bytes.size());
}
int64_t seek_to(int64_t offset, int whence, void* user) {
  Source& s = source(user);
  const int64_t size = length_of(user), from = whence == 1 ? s.at : whence == 2 ? size : 0;
  if (offset > size - from || offset < -from) return -1;
  return s.at = from + offset;
}
int64_t read_from(void* to, int64_t count, void* user) {
  Source& s = source(user);
  const int64_t some = std::clamp<int64_t>(count, 0, length_of(user) - s.at);
  if (some > 0) std::memcpy(to, s.bytes.data() + s.at, static_cast<size_t>(some));
  s.at += some;
  return some;
}
int64_t write_nothing(const void*, int64_t, void*) {
  return 0;
}
int64_t place_of(void* user) {
  return source(user).at;
}

class Opened {
 public:
  Opened(const Api& api, std::span<const std::byte> bytes) : api_(api), source_{bytes} {
    file_ = api.open(&stream_, kRead, &info, &source_);
  }
  ~Opened() {
    if (file_ != nullptr) api_.close(file_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  bool ok() const { return file_ != nullptr; }
  std::string message() const { return api_.message(file_); }
  bool failed() const { return api_.error(file_) != 0; }
  int64_t read(double* to, int64_t frames) { return api_.read(file_, to, frames); }
  // The library's log of the headers.
  std::string log() const {
    std::string text(2048, '\0');
    api_.command(file_, kGetLog, text.data(), static_cast<int>(text.size()));
    text.resize(std::strlen(text.c_str()));
    return text;
  }
  Info info;

 private:
  const Api& api_;
  Source source_;
  Stream stream_{length_of, seek_to, read_from, write_nothing, place_of};
  void* file_ = nullptr;
};

// Whether a header claims more samples than the file has. Programs that write to a pipe claim about
// 2 or 4 GiB, or nothing, and mean the rest of the file.
bool is_cut(const std::string& log) {
  constexpr std::string_view kNote = " (should be ";
  constexpr int64_t kOpenEnd = 0x7ffff000;
  for (size_t at = log.find(kNote); at != log.npos; at = log.find(kNote, at + 1)) {
    size_t start = at;
    while (start > 0 && (std::isdigit(static_cast<unsigned char>(log[start - 1])) != 0)) --start;
    const double claimed = start == at ? 0 : std::strtod(log.c_str() + start, nullptr);
    const double is = std::strtod(log.c_str() + at + kNote.size(), nullptr);
    if (claimed > is && claimed < static_cast<double>(kOpenEnd)) return true;
  }
  return false;
}

Result<Wave> read_frames(Opened& file, const std::string& where, const MemoryBudget& memory) {
  constexpr int64_t kPiece = 4096;
  const int64_t channels = file.info.channels;
  std::vector<double> piece(static_cast<size_t>(kPiece * channels));
  Wave wave;
  wave.rate = file.info.rate;
  std::vector<MemoryShare> shares;
  for (;;) {
    const int64_t count = file.read(piece.data(), kPiece);
    if (count <= 0 || count > kPiece) break;
    const size_t before = wave.samples.size(), after = before + static_cast<size_t>(count);
    if (after > wave.samples.capacity()) {  // doubled; the budget is asked first
      LOOM_ASSIGN(MemoryShare share, memory.take(after * 2 * sizeof(float), "the samples", where));
      shares.push_back(std::move(share));
      wave.samples.reserve(after * 2);
    }
    for (int64_t i = 0; i < count; ++i) {
      double sum = 0;
      for (int64_t c = 0; c < channels; ++c) sum += piece[static_cast<size_t>(i * channels + c)];
      wave.samples.push_back(static_cast<float>(sum / static_cast<double>(channels)));
      if (!std::isfinite(wave.samples.back()))
        return bad_file(cat("frame ", before + static_cast<size_t>(i), " is not finite"), where);
    }
  }
  const auto have = static_cast<int64_t>(wave.samples.size());
  if (file.failed()) return bad_file(cat("damaged sound: ", printable(file.message(), 100)), where);
  if (have < file.info.frames && file.info.frames != kUnknown)
    return bad_file(cat("the file has ", have, " of ", file.info.frames, " frames"), where);
  return wave;
}

}  // namespace

Result<Wave> decode_by_library(std::span<const std::byte> bytes, const std::string& where,
                               const MemoryBudget& memory) {
  static const Api api = opened();
  if (!api.here)
    return unsupported(
        "sound of this form is read by libsndfile, which is not here; install it (Debian: "
        "libsndfile1, macOS: brew install libsndfile), or save the sound as WAV of 16 bits",
        where);
  constexpr int kMaxChannels = 1024, kMaxRate = 1 << 24;
  Opened file(api, bytes);
  if (!file.ok()) return bad_file(cat("damaged sound: ", printable(file.message(), 100)), where);
  const Info& info = file.info;
  if (info.channels < 1 || info.channels > kMaxChannels || info.rate < 1 || info.rate > kMaxRate ||
      info.frames < 0)
    return bad_file(cat("damaged sound: ", info.channels, " channels, ", info.rate, " per second, ",
                        info.frames, " frames"),
                    where);
  if (is_cut(file.log())) return bad_file("the file ends within the sound", where);
  return read_frames(file, where, memory);
}

}  // namespace loom::core
