#include "select.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "../help/guess.hpp"
#include "../shared/console.hpp"

namespace loom::cli {
namespace {

constexpr size_t kMaxNamed = 24;  // files that a message lists

bool at_top(std::string_view path) {
  return path.find('/') == path.npos;
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// "-00001-of-00003" at the end of a name without its ending; npos if absent.
size_t part_number_at(std::string_view stem) {
  const size_t of = stem.rfind("-of-");
  if (of == stem.npos || !all_digits(stem.substr(of + 4))) return stem.npos;
  const size_t dash = stem.rfind('-', of - 1);
  if (of == 0 || dash == stem.npos || !all_digits(stem.substr(dash + 1, of - dash - 1)))
    return stem.npos;
  return dash;
}

std::string_view without_ending(std::string_view path) {
  return path.substr(0, path.rfind('.'));
}

// model.safetensors, or a shard of it. Other files have the same weights in another layout or type.
bool is_main_weights(std::string_view path) {
  if (!at_top(path) || !path.ends_with(".safetensors")) return false;
  const std::string_view stem = without_ending(path);
  return stem == "model" || (stem.starts_with("model-") && part_number_at(stem) == 5);
}

bool is_beside_weights(std::string_view path) {
  static constexpr std::string_view kNames[] = {"merges.txt", "vocab.txt", "tokenizer.model",
                                                "chat_template.jinja"};
  if (!at_top(path)) return false;
  return path.ends_with(".json") ||
         std::find(std::begin(kNames), std::end(kNames), path) != std::end(kNames);
}

std::string listed(const std::vector<std::string>& names) {
  std::vector<std::string> some(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                   names.size(), kMaxNamed)));
  const std::string more =
      names.size() > kMaxNamed ? fmt::format(" and {} more", names.size() - kMaxNamed) : "";
  return list_of(some) + more;
}

std::vector<std::string> paths_of(const std::vector<HubFile>& files) {
  std::vector<std::string> paths;
  for (const HubFile& file : files) paths.push_back(file.path);
  return paths;
}

Error selection_error(Code code, const HubName& name, const std::string& what) {
  return Error{code, what, name.repo, -1};
}

using Groups = std::map<std::string, std::vector<HubFile>>;

// GGUF files by name without the part number. Files for images or sound of another model are not
// models by themselves.
Groups gguf_groups(const std::vector<HubFile>& all) {
  Groups groups;
  for (const HubFile& file : all)
    if (is_gguf(file.path) && lower(file.path).find("mmproj") == std::string::npos)
      groups[gguf_group(file.path)].push_back(file);
  return groups;
}

// "Q4_K_M", or the name of a file without one.
std::string word_of(const std::string& group) {
  const std::string word = quantisation_of(group);
  return word.empty() ? group : word;
}

std::string with_size(const Groups::value_type& group) {
  int64_t bytes = 0;
  for (const HubFile& file : group.second) bytes += std::max<int64_t>(file.size, 0);
  return word_of(group.first) + (bytes > 0 ? fmt::format(" ({})", human_bytes(bytes)) : "");
}

// The GGUF files of the readable number type whose size is nearest to Q4_K_M; end() if the choice
// is not clear.
Groups::const_iterator nearest(const Groups& groups) {
  static constexpr std::string_view kNearestFirst[] = {
      "Q4_K_M", "Q4_K",   "Q4_K_L", "Q4_K_XL", "Q4_1",   "Q4_K_S", "Q4_0",   "IQ4_NL",
      "MXFP4",  "Q5_K_S", "Q5_0",   "Q3_K_L",  "Q5_K",   "Q5_K_M", "Q5_K_L", "Q5_1",
      "Q3_K",   "Q3_K_M", "Q3_K_S", "Q6_K",    "Q6_K_L", "Q2_K_L", "Q2_K",   "Q8_0",
      "BF16",   "F16",    "FP16",   "TQ2_0",   "TQ1_0",  "F32",    "FP32"};
  for (const std::string_view word : kNearestFirst) {
    const auto fits = [&](const auto& group) { return quantisation_of(group.first) == word; };
    const auto found = std::find_if(groups.begin(), groups.end(), fits);
    if (found == groups.end()) continue;
    return std::any_of(std::next(found), groups.end(), fits) ? groups.end() : found;
  }
  return groups.end();
}

// One of several GGUF files.
Result<Selection> choose_gguf(const Groups& groups, const HubName& name) {
  const auto chosen = nearest(groups);
  std::vector<std::string> others;
  for (auto group = groups.begin(); group != groups.end(); ++group)
    if (group != chosen) others.push_back(with_size(*group));
  if (chosen == groups.end())
    return selection_error(
        Code::invalid_argument, name,
        fmt::format("has {} GGUF files; say which, as in hf:{}:{}: {}", groups.size(), name.repo,
                    word_of(groups.begin()->first), listed(others)));
  return Selection{chosen->second,
                   fmt::format("{}: {} of {} GGUF files; hf:{}:{} takes another of: {}", name.repo,
                               with_size(*chosen), groups.size(), name.repo,
                               word_of(groups.begin() == chosen ? std::next(chosen)->first
                                                                : groups.begin()->first),
                               listed(others))};
}

Result<Selection> whole_model(const std::vector<HubFile>& all, const HubName& name) {
  std::vector<HubFile> weights, beside, others, torch;
  for (const HubFile& file : all) {
    if (is_main_weights(file.path))
      weights.push_back(file);
    else if (at_top(file.path) && file.path.ends_with(".safetensors"))
      others.push_back(file);
    else if (is_torch_weights(file.path))
      torch.push_back(file);
    else if (is_beside_weights(file.path))
      beside.push_back(file);
  }
  if (weights.empty()) weights = others;
  const bool sharded = std::any_of(weights.begin(), weights.end(),
                                   [](const HubFile& f) { return f.path != "model.safetensors"; });
  const auto whole = std::find_if(weights.begin(), weights.end(),
                                  [](const HubFile& f) { return f.path == "model.safetensors"; });
  if (whole != weights.end() && sharded) weights = {*whole};
  if (!weights.empty()) {
    weights.insert(weights.end(), beside.begin(), beside.end());
    return Selection{weights, {}};
  }
  const Groups groups = gguf_groups(all);
  if (groups.size() == 1) return Selection{groups.begin()->second, {}};
  if (groups.size() > 1) return choose_gguf(groups, name);
  if (!torch.empty()) {
    torch.insert(torch.end(), beside.begin(), beside.end());
    return Selection{torch, {}};
  }
  return selection_error(Code::not_found, name,
                         all.empty() ? "has no file"
                                     : "has no .safetensors, .gguf and pytorch_model.bin file; of "
                                       "what there is, name a file after a "
                                       "colon to have it as it is: " +
                                           listed(paths_of(all)));
}

}  // namespace

bool is_torch_weights(std::string_view path) {
  if (!at_top(path) || !path.ends_with(".bin")) return false;
  const std::string_view stem = without_ending(path);
  return stem == "pytorch_model" ||
         (stem.starts_with("pytorch_model-") && part_number_at(stem) == 13);
}

bool is_folder_weights(std::string_view path) {
  return at_top(path) && (path.ends_with(".safetensors") || is_torch_weights(path));
}

bool is_gguf(std::string_view path) {
  return lower(path).ends_with(".gguf");
}

std::string gguf_group(std::string_view path) {
  if (!is_gguf(path)) return std::string(path);
  const std::string_view stem = without_ending(path);
  const size_t part = part_number_at(stem);
  return std::string(stem.substr(0, std::min(part, stem.size()))) + ".gguf";
}

std::string quantisation_of(std::string_view path) {
  const std::string group = gguf_group(path);
  std::string_view rest = without_ending(group);
  // From the end: words are separated by '-', '.' or '/'. Q4_K_M, IQ2_XXS, TQ1_0, BF16, F32, MXFP4.
  while (!rest.empty()) {
    const size_t cut = rest.find_last_of("-./");
    std::string word(rest.substr(cut == rest.npos ? 0 : cut + 1));
    for (char& c : word)
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    const bool quantised =
        (word.starts_with("Q") || word.starts_with("IQ") || word.starts_with("TQ")) &&
        word.find_first_of("0123456789") <= 2;
    const bool real = word == "F16" || word == "F32" || word == "BF16" || word == "FP16" ||
                      word == "FP32" || word.starts_with("MXFP4");
    if (quantised || real) return word;
    if (cut == rest.npos) return {};
    rest = rest.substr(0, cut);
  }
  return {};
}

Result<Selection> select_files(const std::vector<HubFile>& all, const HubName& name) {
  if (name.file.empty()) return whole_model(all, name);
  for (const HubFile& file : all)
    if (file.path == name.file) {
      if (part_number_at(without_ending(file.path)) == std::string::npos || !is_gguf(file.path))
        return Selection{{file}, {}};
      return Selection{gguf_groups(all)[gguf_group(file.path)], {}};
    }
  Groups fitting;
  std::vector<std::string> known;
  for (auto& [group, files] : gguf_groups(all)) {
    const std::string word = quantisation_of(group);
    if (!word.empty() && lower(word) == lower(name.file)) fitting[group] = files;
    if (!word.empty()) known.push_back(word);
  }
  if (fitting.size() == 1) return Selection{fitting.begin()->second, {}};
  if (fitting.size() > 1) {
    std::vector<std::string> names;
    for (const auto& [group, files] : fitting) names.push_back(group);
    return selection_error(Code::invalid_argument, name,
                           fmt::format("{} is the quantisation of {} files; name the file: {}",
                                       name.file, names.size(), listed(names)));
  }
  const std::vector<std::string> paths = paths_of(all);
  for (const std::string& path : paths) known.push_back(path);
  return selection_error(Code::not_found, name,
                         fmt::format("has no file or quantisation '{}'{}; there are: {}", name.file,
                                     did_you_mean(name.file, known), listed(known)));
}

}  // namespace loom::cli
