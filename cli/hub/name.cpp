#include "name.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "../shared/console.hpp"

namespace loom::cli {
namespace {

constexpr std::string_view kModels = "models--";
constexpr size_t kLongestPart = 240;  // of a path; file systems allow 255 bytes
constexpr size_t kLongestPath = 2048;

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

// One part of ORG/NAME. Hub names have no "--", which is the separator in cache folders.
bool is_repo_part(std::string_view part) {
  return !part.empty() && part.size() <= 96 &&
         std::all_of(part.begin(), part.end(), is_name_letter) && part.find("--") == part.npos &&
         part.find("..") == part.npos && part.front() != '.' && part.front() != '-';
}

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

constexpr std::string_view kSecure = "https://", kPlain = "http://";

// Without "https://" or "http://", in any case of letters.
std::string_view without_scheme(std::string_view text) {
  for (const std::string_view scheme : {kSecure, kPlain})
    if (lower(text.substr(0, scheme.size())) == scheme) return text.substr(scheme.size());
  return text;
}

// The text after the host of the hub; none if there is no such host.
std::optional<std::string_view> after_host(std::string_view text) {
  const std::string_view rest = without_scheme(text);
  for (const std::string_view host : {"hf.co/", "huggingface.co/", "www.huggingface.co/"})
    if (lower(rest.substr(0, host.size())) == host) return rest.substr(host.size());
  return std::nullopt;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char small = static_cast<char>(c | 0x20);
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

// "refs%2Fpr%2F1" -> "refs/pr/1". Anything else after '%' stays.
std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool code = text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
                      hex_digit(text[i + 2]) >= 0;
    out += code ? static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2])) : text[i];
    i += code ? 2 : 0;
  }
  return out;
}

// The address of a page or a file as a name: "ORG/NAME/resolve/REVISION/FILE?download=true" ->
// "ORG/NAME:FILE@REVISION". Another path is returned unchanged.
std::string name_of_page(std::string_view path) {
  path = path.substr(0, path.find_first_of("?#"));
  while (path.ends_with('/')) path.remove_suffix(1);
  for (const std::string_view page : {"/resolve/", "/blob/", "/raw/", "/tree/"}) {
    const size_t at = path.find(page);
    if (at == path.npos) continue;
    const std::string_view rest = path.substr(at + page.size());
    const size_t slash = rest.find('/');
    const std::string revision = unescaped(rest.substr(0, slash));
    std::string name(path.substr(0, at));
    if (slash != rest.npos && page != "/tree/") name += ":" + unescaped(rest.substr(slash + 1));
    return revision == "main" ? name : name + "@" + revision;
  }
  return std::string(path);
}

Error no_hub_name(std::string_view text, std::string_view why) {
  return Error{Code::invalid_argument,
               fmt::format("'{}' {}; write hf:ORG/NAME, hf:ORG/NAME:FILE or hf:ORG/NAME@REVISION",
                           text, why),
               {},
               -1};
}

}  // namespace

std::string HubName::str() const {
  return repo + (file.empty() ? "" : ":" + file) + (revision.empty() ? "" : "@" + revision);
}

bool is_hub_name(std::string_view text) {
  return text.starts_with(kHubPrefix) || without_scheme(text) != text || after_host(text);
}

Result<HubName> parse_hub_name(std::string_view text, bool prefix, std::string_view endpoint) {
  std::string page;
  std::string_view rest = text;
  std::optional<std::string_view> path = after_host(text);
  if (!path && !endpoint.empty() && text.starts_with(endpoint) &&
      text.substr(endpoint.size()).starts_with('/'))
    path = text.substr(endpoint.size() + 1);
  if (rest.starts_with(kHubPrefix)) {
    rest.remove_prefix(kHubPrefix.size());
  } else if (path) {
    if (path->starts_with("datasets/") || path->starts_with("spaces/"))
      return no_hub_name(text, "is a data set or a program, not a model");
    rest = page = name_of_page(*path);
  } else if (without_scheme(text) != text) {
    return no_hub_name(text, "is not a page of the hub");
  } else if (prefix) {
    return no_hub_name(text, "is not a hub name");
  }
  HubName name;
  if (const size_t at = rest.rfind('@'); at != rest.npos) {
    name.revision = rest.substr(at + 1);
    rest = rest.substr(0, at);
    if (!safe_relative_path(name.revision)) return no_hub_name(text, "has no revision after '@'");
  }
  if (const size_t colon = rest.find(':'); colon != rest.npos) {
    name.file = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
    if (!safe_relative_path(name.file)) return no_hub_name(text, "has no file after ':'");
  }
  name.repo = rest;
  const size_t slash = rest.find('/');
  const bool good = slash == rest.npos ? is_repo_part(rest)
                                       : is_repo_part(rest.substr(0, slash)) &&
                                             is_repo_part(rest.substr(slash + 1));
  if (!good) return no_hub_name(text, "is not a hub model");
  return name;
}

bool safe_relative_path(std::string_view path) {
  if (path.empty() || path.size() > kLongestPath) return false;
  for (const char c : path)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\') return false;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == ".." || part.size() > kLongestPart) return false;
    at = end + 1;
  }
  return true;
}

bool is_sha1_hex(std::string_view text) {
  return is_hex(text, 40);
}
bool is_sha256_hex(std::string_view text) {
  return is_hex(text, 64);
}

std::string repo_folder(std::string_view repo) {
  std::string folder(kModels);
  for (const char c : repo) folder += c == '/' ? std::string("--") : std::string(1, c);
  return folder;
}

std::optional<std::string> repo_of_folder(std::string_view folder) {
  if (!folder.starts_with(kModels)) return std::nullopt;
  std::string repo(folder.substr(kModels.size()));
  if (const size_t dashes = repo.find("--"); dashes != repo.npos) repo.replace(dashes, 2, "/");
  if (!parse_hub_name(repo, false).ok()) return std::nullopt;
  return repo;
}

std::string pulled_model_name(std::string_view path) {
  const size_t below = path.rfind("/snapshots/");
  if (below == path.npos) return {};
  const std::string_view folder = path.substr(0, below);
  const std::optional<std::string> repo = repo_of_folder(folder.substr(folder.rfind('/') + 1));
  return repo ? repo->substr(repo->find('/') + 1) : std::string();
}

}  // namespace loom::cli
