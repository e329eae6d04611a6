// Names of models: hf:ORG/NAME[:FILE][@REVISION] and addresses of their pages, their cache folders,
// and valid paths in them. Nothing here opens a file or an address.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "loom/result.hpp"

namespace loom::cli {

struct HubName {
  std::string repo;      // "ORG/NAME"; "NAME" for old models
  std::string file;      // a file, or the quantization of a GGUF file ("Q4_K_M"); empty: the model
  std::string revision;  // a branch, a tag or a commit; empty: main

  // "ORG/NAME:FILE@REVISION"
  std::string str() const;
  std::string wanted_revision() const { return revision.empty() ? "main" : revision; }
};

constexpr std::string_view kHubPrefix = "hf:";

// Whether it names a model of a hub: "hf:...", "hf.co/...", "huggingface.co/...", with or without
// "https://", or another "https://..." or "http://...".
bool is_hub_name(std::string_view text);
// Parses "hf:ORG/NAME", or without "hf:" if `prefix` is false; "hf.co/ORG/NAME:Q4_K_M"; and
// addresses of pages and files: "https://huggingface.co/ORG/NAME/resolve/REVISION/FILE". A
// page of another host is a name only if the host is `endpoint`. Errors: invalid_argument.
Result<HubName> parse_hub_name(std::string_view text, bool prefix = true,
                               std::string_view endpoint = {});

// Whether it is a path below a folder: no "..", no empty or absolute part, no backslash or control
// character, and no part that is too long for a file system.
bool safe_relative_path(std::string_view path);
// 40 hexadecimal digits in lower case: a commit, or the hash of a small file.
bool is_sha1_hex(std::string_view text);
bool is_sha256_hex(std::string_view text);

// "ORG/NAME" <-> "models--ORG--NAME"
std::string repo_folder(std::string_view repo);
std::optional<std::string> repo_of_folder(std::string_view folder);

// "NAME" for a path into the cache: .../models--ORG--NAME/snapshots/...; otherwise empty.
std::string pulled_model_name(std::string_view path);

}  // namespace loom::cli
