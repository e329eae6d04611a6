#include "aliases.hpp"

#include <algorithm>

namespace loom::cli {
namespace {

struct Alias {
  std::string_view name, here;
};

// An option without a name here is an argument: its value moves to the front.
constexpr Alias kOptions[] = {
    {"--lr", "--rate"},
    {"--learning-rate", "--rate"},
    {"--batch-size", "--batch"},
    {"--bs", "--batch"},
    {"--wd", "--weight-decay"},
    {"--num-epochs", "--epochs"},
    {"--n-epochs", "--epochs"},
    {"--patience", "--early-stop"},
    {"--early-stopping", "--early-stop"},
    {"--normalise", "--normalize"},
    {"--optimiser", "--optimizer"},
    {"--workers", "--threads"},
    {"--cores", "--threads"},
    {"--val", "--validation"},
    {"--data-type", "--dtype"},
    {"--temp", "--temperature"},
    {"-n", "--max-tokens"},
    {"--n-predict", "--max-tokens"},
    {"--num-predict", "--max-tokens"},
    {"--max-new-tokens", "--max-tokens"},
    {"--repeat-penalty", "--repetition-penalty"},
    {"--ctx-size", "--context"},
    {"--num-ctx", "--context"},
    {"-c", "--context"},
    {"-t", "--threads"},
    {"-j", "--threads"},
    {"-s", "--seed"},
    {"-b", "--batch"},
    {"-e", "--epochs"},
    {"-q", "--quiet"},
    {"--output-file", "--output"},
    {"--sys", "--system"},
    {"--system-prompt", "--system"},
    {"--clusters", "--k"},
    {"-k", "--k"},
    {"--sleep-idle-seconds", "--keep-alive"},
    {"-m", "MODEL"},
    {"--model", "MODEL"},
};

constexpr Alias kCommandHints[] = {
    {"chat", "loom run MODEL --chat talks with a model"},
    {"ui", "loom serve MODEL has a chat page"},
    {"install", "loom pull NAME downloads a model"},
    {"download", "loom pull NAME downloads a model"},
    {"fit", "it is called train"},
    {"finetune", "loom train NETWORK.entity DATA goes on from weights"},
    {"fine-tune", "loom train NETWORK.entity DATA goes on from weights"},
    {"test", "it is called eval"},
    {"evaluate", "it is called eval"},
    {"score", "it is called eval"},
    {"infer", "it is called predict; for texts: run"},
    {"inference", "it is called predict; for texts: run"},
    {"generate", "it is called run"},
    {"inspect", "it is called info"},
    {"summary", "it is called info"},
    {"create",
     "for networks it is called new; a Modelfile, a text with FROM, PARAMETER, SYSTEM and "
     "TEMPLATE, "
     "is read as it is: loom run ./Modelfile, loom serve ./Modelfile"},
    {"init", "it is called new"},
    {"export", "it is called convert"},
    {"import", "it is called convert"},
    {"remove", "it is called rm"},
    {"delete", "it is called rm"},
    {"tune", "it is called search"},
    {"benchmark", "it is called bench"},
    {"kmeans", "it is called cluster"},
    {"neat", "it is called evolve"},
    {"server", "it is called serve"},
};

constexpr Alias kArgumentHints[] = {
    {"run", "a text of several words needs quotes"},
    {"tokenize", "a text of several words needs quotes"},
    {"quantize", "the number type is given as --dtype"},
    {"convert", "the number type is given as --dtype"},
    {"llm", "it measures random weights of a --shape and reads no file"},
    {"eval", "it takes one file of samples"},
    {"train", "it takes a network and a file of samples; targets are in --labels"},
};

struct OptionHint {
  std::string_view command, name, hint;  // command "": all
};
constexpr OptionHint kOptionHints[] = {
    {"", "--gpu", "it is called --device gpu"},
    {"", "--cuda", "it is called --device gpu"},
    {"", "--cpu", "it is called --device cpu"},
    {"", "--verbose", "notes are always shown; --quiet hides them"},
    {"", "-v", "notes are always shown; --quiet hides them"},
    {"", "-y", "to replace files: --force"},
    {"", "--yes", "to replace files: --force"},
    {"", "--overwrite", "it is called --force"},
    {"train", "--validation-split", "--split 0.8 is the share that trains"},
    {"train", "--val-split", "--split 0.8 is the share that trains"},
    {"train", "--test-size", "--split 0.8 is the share that trains"},
    {"train", "--name", "-o FILE names the result"},
    {"train", "--save", "-o FILE names the result"},
    {"train", "--weights", "a network with weights is NETWORK; --sample-weights names a column"},
    {"train", "--steps", "--every has the epochs of a step"},
    {"perplexity", "--context", "--window has the tokens of a pass"},
    {"predict", "--format", "the ending of -o says it: .csv, .json or .npz"},
    {"convert", "--format", "the ending of OUT says it"},
    {"convert", "--to", "the ending of OUT says it"},
    {"convert", "--quantize", "it is called --dtype"},
    {"run", "--stream", "texts are always streamed; --json waits for the end"},
    {"new", "--layers", "give the kind first: loom new mlp --hidden 64,32"},
    {"mlp", "--layers", "--hidden 64,32 has the width of each layer"},
    {"ensemble", "--vote", "it is called --method"},
    {"", "-V", "loom --version shows the version"},
};

bool has(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

template <size_t N>
std::string hint_of(const Alias (&hints)[N], std::string_view word) {
  for (const Alias& hint : hints) {
    if (hint.name == word) return "; " + std::string(hint.here);
  }
  return {};
}

// The name here; empty if there is none.
std::string_view named_here(const std::string& name, const std::vector<std::string>& known) {
  for (const Alias& alias : kOptions) {
    if (alias.name == name && has(known, alias.here)) return alias.here;
  }
  return {};
}

}  // namespace

std::string command_alias(const std::string& word) {
  return word == "ls" ? "list" : word;
}

void replace_options(std::vector<std::string>& words, size_t first,
                     const std::vector<std::string>& known) {
  for (size_t i = first; i < words.size() && words[i] != "--"; ++i) {
    const size_t equals = words[i].find('=');
    std::string name = words[i].substr(0, equals);
    if (!name.starts_with("-") || has(known, name)) continue;
    if (name.starts_with("--")) std::replace(name.begin(), name.end(), '_', '-');
    std::string here(has(known, name) ? std::string_view(name) : named_here(name, known));
    if (here.empty()) continue;
    if (here.starts_with("-")) {
      words[i].replace(0, name.size(), here);
      continue;
    }
    if (equals == std::string::npos && i + 1 == words.size()) continue;
    const bool next = equals == std::string::npos;
    const std::string value = next ? words[i + 1] : words[i].substr(equals + 1);
    const auto at = words.begin() + static_cast<std::ptrdiff_t>(i);
    words.erase(at, at + (next ? 2 : 1));
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(first++), value);
    if (next) i = first - 1;  // the words after it moved: look at all again
  }
}

std::string command_hint(std::string_view word) {
  return hint_of(kCommandHints, word);
}

std::string argument_hint(std::string_view command) {
  return hint_of(kArgumentHints, command);
}

std::string option_hint(std::string_view command, std::string_view name) {
  for (const OptionHint& hint : kOptionHints) {
    if (hint.name == name && (hint.command.empty() || hint.command == command))
      return "; " + std::string(hint.hint);
  }
  return {};
}

}  // namespace loom::cli
