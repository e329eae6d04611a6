// Names of models: hf:ORG/NAME[:FILE][@REVISION], where the program keeps those that were pulled,
// and what may stand in a path of them. Nothing here opens a file or an address.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "loom/result.hpp"

namespace loom::cli {

struct HubName {
  std::string repo;      // "ORG/NAME"; of old models "NAME"
  std::string file;      // a file, or the quantisation of a GGUF file ("Q4_K_M"); "": the model
  std::string revision;  // a branch, a tag or a commit; "": main

  // "ORG/NAME:FILE@REVISION"
  std::string str() const;
  std::string wanted_revision() const { return revision.empty() ? "main" : revision; }
};

constexpr std::string_view kHubPrefix = "hf:";

// "hf:ORG/NAME", or without "hf:" where `prefix` is false. Errors: invalid_argument.
Result<HubName> parse_hub_name(std::string_view text, bool prefix = true);

// A path below a folder: no "..", no empty or absolute part, no backslash or control character, and
// no more bytes than a file system takes.
bool safe_relative_path(std::string_view path);
// 40 hexadecimal digits in small letters: a commit, or the hash of a small file.
bool is_sha1_hex(std::string_view text);
bool is_sha256_hex(std::string_view text);

// "ORG/NAME" <-> "models--ORG--NAME"
std::string repo_folder(std::string_view repo);
std::optional<std::string> repo_of_folder(std::string_view folder);

// "NAME" of a path into the cache: .../models--ORG--NAME/snapshots/...; "": it is none.
std::string pulled_model_name(std::string_view path);

}  // namespace loom::cli
