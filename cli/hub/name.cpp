#include "name.hpp"

#include <fmt/core.h>

#include <algorithm>

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

Result<HubName> parse_hub_name(std::string_view text, bool prefix) {
  std::string_view rest = text;
  if (rest.starts_with(kHubPrefix))
    rest.remove_prefix(kHubPrefix.size());
  else if (prefix)
    return no_hub_name(text, "is not a hub name");
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
