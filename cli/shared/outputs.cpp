#include "outputs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "console.hpp"

namespace loom::cli {
namespace {

namespace fs = std::filesystem;

std::string ending_of(const std::string& path) {
  return lower(fs::path(path).extension().string());
}

// Whether two names are the same file: by links, "./", or other spellings of a folder.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  const fs::path x = fs::weakly_canonical(a, error), y = fs::weakly_canonical(b, error);
  return !error && x == y;
}

// "'.svg' or '.csv'"
std::string either(const std::vector<std::string_view>& endings) {
  std::string text;
  for (size_t i = 0; i < endings.size(); ++i) {
    if (i > 0) text += i + 1 < endings.size() ? ", " : " or ";
    text += endings[i].empty() ? "no ending" : std::string(endings[i]);
  }
  return text;
}

// Creates a file as saving would, and removes it. A folder is replaced by one written next to it,
// so the test file is there too: a kill leaves nothing in the folder.
Status try_to_write(const std::string& path) {
  std::error_code ignored;
  const bool folder = ending_of(path).empty() && fs::is_directory(path, ignored);
  const std::string real = folder ? fs::canonical(path, ignored).string() + ".check" : path;
  const Status status = check_writable(real);
  if (status.ok()) return {};
  Error error = status.error();
  if (folder) error.where = path;
  if (error.code == Code::not_found) error.code = Code::invalid_argument;
  return error;
}

// Devices and pipes are not replaced. A folder with an ending is not written to.
bool would_replace(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return ending_of(path).empty();
  return fs::is_regular_file(path, ignored);
}

// A name in `folder` that is free: net.entity becomes net.rescued.entity.
std::string free_name(const fs::path& folder, const fs::path& path) {
  constexpr int kTries = 1000;
  for (int i = 1; i < kTries; ++i) {
    const std::string middle = i == 1 ? ".rescued" : fmt::format(".rescued-{}", i);
    const fs::path name = folder / (path.stem().string() + middle + path.extension().string());
    if (!file_exists(name.string())) return name.string();
  }
  return {};
}

}  // namespace

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Status write_text(const std::string& path, const std::string& text) {
  if (path != "-") return write_file(path, text);
  write_out(text);
  return {};
}

std::string unused_name(const std::string& path) {
  const fs::path asked(path);
  std::string name = path;
  for (int i = 2; file_exists(name); ++i) {
    const std::string numbered =
        fmt::format("{}-{}{}", asked.stem().string(), i, asked.extension().string());
    name = (asked.parent_path() / numbered).string();
  }
  return name;
}

Outputs& Outputs::file(std::string_view option, const std::string& path,
                       std::vector<std::string_view> endings, std::string_view writes) {
  if (!path.empty())
    files_.push_back({{std::string(option), path}, std::move(endings), std::string(writes)});
  return *this;
}

Outputs& Outputs::text(std::string_view option, const std::string& path,
                       std::vector<std::string_view> endings, std::string_view writes) {
  return path == "-" ? *this : file(option, path, std::move(endings), writes);
}

Outputs& Outputs::state(std::string_view option, const std::string& path,
                        std::vector<std::string_view> endings, std::string_view writes) {
  file(option, path, std::move(endings), writes);
  if (!path.empty()) files_.back().continued = true;
  return *this;
}

Outputs& Outputs::input(std::string_view of, const std::string& path) {
  if (!path.empty()) inputs_.push_back({std::string(of), path});
  return *this;
}

Status Outputs::check() const {
  LOOM_TRY(check_names());
  for (const Written& f : files_) {
    if (!replace_ && !f.continued && would_replace(f.named.path)) {
      return Error{Code::invalid_argument, "exists already; --force replaces it", f.named.path, -1};
    }
    LOOM_TRY(try_to_write(f.named.path));
  }
  return {};
}

Status Outputs::check_names() const {
  const auto refuse = [](const Written& f, const std::string& why) {
    return Error{Code::invalid_argument, why, f.named.path, -1};
  };
  for (size_t i = 0; i < files_.size(); ++i) {
    const Written& f = files_[i];
    const bool fits =
        std::find(f.endings.begin(), f.endings.end(), ending_of(f.named.path)) != f.endings.end();
    if (f.named.path == "-") {
      return refuse(f, fmt::format("{} writes {} to a file, not to standard output; give a name "
                                   "with {}",
                                   f.named.name, f.writes, either(f.endings)));
    }
    if (!fits) {
      return refuse(f, fmt::format("{} writes {}; give a name with {}", f.named.name, f.writes,
                                   either(f.endings)));
    }
    for (const Named& input : inputs_) {
      if (!same_file(f.named.path, input.path)) continue;
      return refuse(f, fmt::format("{} would replace {}, which is read; give another name",
                                   f.named.name, input.name));
    }
    for (size_t j = 0; j < i; ++j) {
      if (!same_file(f.named.path, files_[j].named.path)) continue;
      return refuse(f, fmt::format("{} and {} name the same file; give two", files_[j].named.name,
                                   f.named.name));
    }
  }
  return {};
}

Keeper::Rescued& Keeper::rescued(const std::string& path) {
  for (Rescued& known : rescued_) {
    if (known.path == path) return known;
  }
  return rescued_.emplace_back(Rescued{path, {}});
}

void Keeper::save(const std::string& path, const Save& save) {
  const Status saved = save(path);
  if (saved.ok()) return;
  Rescued& other = rescued(path);
  const bool known = !other.name.empty();
  bool kept = known && save(other.name).ok();
  std::error_code ignored;
  const fs::path folders[] = {fs::path(path).parent_path(), ".", fs::temp_directory_path(ignored)};
  for (const fs::path& folder : folders) {
    if (kept) break;
    other.name = free_name(folder, path);
    kept = !other.name.empty() && save(other.name).ok();
  }
  Error why = saved.error();
  why.code = Code::io_error;  // in any case: the line and the inputs are right
  if (!kept) {
    other.name.clear();
    why.message += "; it could not be saved elsewhere either";
  } else {
    why.message += fmt::format("; it is saved as {} instead", other.name);
  }
  if (!known && !ending_) note(why.str());
  failures_.push_back({why, known || !ending_});
}

Status Keeper::finish() const {
  for (size_t i = 1; i < failures_.size(); ++i) {
    if (!failures_[i].noted) note(failures_[i].why.str());
  }
  return failures_.empty() ? Status() : Status(failures_.front().why);
}

}  // namespace loom::cli
