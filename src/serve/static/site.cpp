#include "serve/static/site.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/text.hpp"

namespace loom::core {
namespace {

namespace fs = std::filesystem;

constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".json", "application/json"},
    {".map", "application/json"},
    {".webmanifest", "application/manifest+json"},
    {".wasm", "application/wasm"},
    {".txt", "text/plain; charset=utf-8"},
    {".md", "text/markdown; charset=utf-8"},
    {".csv", "text/csv; charset=utf-8"},
    {".xml", "application/xml"},
    {".pdf", "application/pdf"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".jpg", "image/jpeg"},
    {".jpeg", "image/jpeg"},
    {".gif", "image/gif"},
    {".webp", "image/webp"},
    {".avif", "image/avif"},
    {".ico", "image/vnd.microsoft.icon"},
    {".woff", "font/woff"},
    {".woff2", "font/woff2"},
    {".ttf", "font/ttf"},
    {".mp3", "audio/mpeg"},
    {".wav", "audio/wav"},
    {".mp4", "video/mp4"},
    {".webm", "video/webm"},
};

// A part of a path that names a visible file or folder on every system.
bool is_plain(std::string_view part) {
  return !part.empty() && part.front() != '.' && std::ranges::none_of(part, [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == '\\' || c == ':';
  });
}

// The file or folder at a path of a URL, links resolved. nullopt: there is none inside the root.
std::optional<fs::path> find_inside(const fs::path& root, std::string_view url) {
  std::string name(url.substr(1));
  if (name.empty() || name.back() == '/') name += "index.html";
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    if (!is_plain(std::string_view(name).substr(at, end - at))) return std::nullopt;
    at = end + 1;
  }
  std::error_code bad;
  fs::path found = fs::canonical(root / name, bad);
  if (bad) return std::nullopt;
  const auto [rest, inside] = std::ranges::mismatch(root, found);
  return rest == root.end() ? std::optional(std::move(found)) : std::nullopt;
}

struct ByteRange {
  uint64_t first = 0, end = 0;
};

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (bad != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "bytes=0-99", "bytes=100-" or "bytes=-100" (the last ones); RFC 9110, 14.1.2. nullopt: another
// unit or several ranges, which are ignored. An empty range is outside of the file.
std::optional<ByteRange> read_range(std::string_view text, uint64_t size) {
  constexpr std::string_view kUnit = "bytes=";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::optional<uint64_t> first = number(text.substr(0, dash)),
                                last = number(text.substr(dash + 1));
  if (dash == 0) {
    if (!last) return std::nullopt;
    return ByteRange{size - std::min(*last, size), size};
  }
  if (!first || (!last && dash + 1 < text.size()) || (last && *last < *first)) return std::nullopt;
  return ByteRange{std::min(*first, size), last && *last < size ? *last + 1 : size};
}

// Changes whenever the file does.
std::string tag_of(const fs::path& file, uint64_t size) {
  std::error_code bad;
  const auto time = fs::last_write_time(file, bad).time_since_epoch();
  const int64_t nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  return cat('"', size, "-", nanoseconds, '"');
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using OpenFile = std::unique_ptr<std::FILE, CloseFile>;

// The bytes of a range in pieces.
HttpPieces pieces_of(std::shared_ptr<std::FILE> file, uint64_t bytes) {
  return [file = std::move(file), left = bytes]() mutable {
    constexpr uint64_t kPiece = 256 << 10;
    std::string piece(std::min(left, kPiece), '\0');
    piece.resize(std::fread(piece.data(), 1, piece.size(), file.get()));
    left -= piece.size();
    return piece;
  };
}

class Site {
 public:
  explicit Site(fs::path root) : root_(std::move(root)) {}

  void answer(const Call& call) const {
    const std::optional<fs::path> found = find_inside(root_, call.request.path);
    std::error_code bad;
    if (!found) return refuse(call);
    if (fs::is_directory(*found, bad)) return redirect(call);
    if (!fs::is_regular_file(*found, bad)) return refuse(call);
    send(call, *found);
  }

 private:
  static void refuse(const Call& call) {
    send_error(*call.reply, openai_errors(),
               make_error(Code::not_found, cat("no file is at ", printable(call.request.path))));
  }

  // Links of a page in a folder are relative to the path with the slash.
  static void redirect(const Call& call) {
    const std::string_view path = call.request.path;
    std::string to;
    for (const char c : path.substr(path.rfind('/') + 1)) {
      constexpr std::string_view kPlain =
          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
      constexpr char kHex[] = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(c);
      if (kPlain.find(c) != std::string_view::npos) {
        to += c;
      } else {
        to += {'%', kHex[byte >> 4], kHex[byte & 15]};
      }
    }
    call.reply->send(308, {{"Location", to + "/"}}, {});
  }

  static void send(const Call& call, const fs::path& path) {
    OpenFile file(std::fopen(path.string().c_str(), "rb"));
    std::error_code bad;
    const uint64_t size = fs::file_size(path, bad);
    if (file == nullptr || bad) return refuse(call);
    const std::string tag = tag_of(path, size);
    HttpHeaders headers = {{"Content-Type", std::string(content_type(path.filename().string()))},
                           {"Cross-Origin-Opener-Policy", "same-origin"},
                           {"Cross-Origin-Embedder-Policy", "require-corp"},
                           {"Cross-Origin-Resource-Policy", "same-origin"},
                           {"X-Content-Type-Options", "nosniff"},
                           {"Cache-Control", "no-cache"},
                           {"Accept-Ranges", "bytes"},
                           {"ETag", tag}};
    if (call.request.header("If-None-Match") == tag)
      return call.reply->send(304, std::move(headers), {});
    const std::string_view condition = call.request.header("If-Range");
    const std::optional<ByteRange> range = condition.empty() || condition == tag
                                               ? read_range(call.request.header("Range"), size)
                                               : std::nullopt;
    const ByteRange bytes = range.value_or(ByteRange{0, size});
    if (range && bytes.first >= bytes.end) {
      headers.emplace_back("Content-Range", cat("bytes */", size));
      return call.reply->send(416, std::move(headers), {});
    }
    if (range) {
      headers.emplace_back("Content-Range",
                           cat("bytes ", bytes.first, "-", bytes.end - 1, "/", size));
    }
    const uint64_t count = bytes.end - bytes.first;
    if (fseeko(file.get(), static_cast<off_t>(bytes.first), SEEK_SET) != 0) return refuse(call);
    call.reply->send_pieces(range ? 206 : 200, std::move(headers), count,
                            pieces_of(std::move(file), count));
  }

  const fs::path root_;
};

}  // namespace

std::string_view content_type(std::string_view name) {
  const size_t dot = name.rfind('.');
  const std::string end = dot == std::string_view::npos ? "" : to_lower_ascii(name.substr(dot));
  const auto row = std::ranges::find_if(kTypes, [&](const auto& one) { return one.first == end; });
  return row == std::end(kTypes) ? "application/octet-stream" : row->second;
}

Status add_site(std::vector<Route>& routes, const std::string& folder) {
  std::error_code bad;
  const fs::path root = fs::canonical(folder, bad);
  if (bad || !fs::is_directory(root, bad))
    return make_error(Code::not_found, cat("there is no such folder for --site: ", folder));
  const auto site = std::make_shared<const Site>(root);
  for (const char* path : {"/", "/*"}) {
    routes.push_back({"GET", path, false, [site](const Call& call) { site->answer(call); }, true,
                      nullptr, "site"});
  }
  return {};
}

}  // namespace loom::core
