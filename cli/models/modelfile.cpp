#include "modelfile.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "../help/guess.hpp"
#include "../shared/console.hpp"
#include "loom/generation_options.hpp"

namespace loom::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxBytes = uint64_t{4} << 20;
constexpr std::string_view kTripleQuote = "\"\"\"";

// How a value is read.
enum class Kind { whole, number, text };

// A parameter of Ollama: the flag of `loom run`, the field of /completion, and the option whose
// range it has. Without such an option, `least` is the smallest value. With `refusal`, Loom does
// not have the parameter.
struct ParameterRow {
  std::string_view name, flag, field, option;
  Kind kind = Kind::number;
  std::string_view refusal{};
  int64_t least = 0;
};
constexpr std::string_view kByDevice = "--device and --threads choose the processor";
constexpr std::string_view kOfModel = "the model has it; leave the line out";
constexpr ParameterRow kParameters[] = {
    {"temperature", "temperature", "temperature", "temperature"},
    {"top_k", "top-k", "top_k", "top_k", Kind::whole},
    {"top_p", "top-p", "top_p", "top_p"},
    {"min_p", "min-p", "min_p", "min_p"},
    {"typical_p", "typical-p", "typical_p", "typical_p"},
    {"seed", "seed", "seed", "seed", Kind::whole},
    {"stop", "stop", "stop", "", Kind::text},
    {"num_predict", "max-tokens", "n_predict", "", Kind::whole, {}, -2},
    {"num_ctx", "context", "", "", Kind::whole, {}, 1},
    {"num_batch", "chunk", "", "", Kind::whole, {}, 1},
    {"num_keep", "", "n_keep", "", Kind::whole, {}, -1},
    {"num_thread", "threads", "", "", Kind::whole},
    {"repeat_penalty", "repetition-penalty", "repeat_penalty", "repetition_penalty"},
    {"repeat_last_n", "repetition-window", "repeat_last_n", "", Kind::whole, {}, -1},
    {"presence_penalty", "presence-penalty", "presence_penalty", "presence_penalty"},
    {"frequency_penalty", "frequency-penalty", "frequency_penalty", "frequency_penalty"},
    {"mirostat", "mirostat", "mirostat", "mirostat", Kind::whole},
    {"mirostat_tau", "mirostat-tau", "mirostat_tau", "mirostat_tau"},
    {"mirostat_eta", "mirostat-eta", "mirostat_eta", "mirostat_eta"},
    {"tfs_z", "", "", "", {}, "Ollama removed it too; top_p and min_p are near it"},
    {"penalize_newline", "", "", "", {}, "line ends are penalized like other tokens"},
    {"num_gpu", "", "", "", {}, kByDevice},
    {"main_gpu", "", "", "", {}, kByDevice},
    {"low_vram", "", "", "", {}, kByDevice},
    {"numa", "", "", "", {}, kByDevice},
    {"use_mmap", "", "", "", {}, "files are always mapped; leave the line out"},
    {"use_mlock", "", "", "", {}, "memory is not locked; leave the line out"},
    {"f16_kv", "", "", "", {}, "--cache-type float16 is the option for it"},
    {"logits_all", "", "", "", {}, "logits are computed as needed; leave the line out"},
    {"vocab_only", "", "", "", {}, "loom tokenize reads the vocabulary alone"},
    {"num_gqa", "", "", "", {}, kOfModel},
    {"rope_frequency_base", "", "", "", {}, kOfModel},
    {"rope_frequency_scale", "", "", "", {}, kOfModel},
};

constexpr std::pair<std::string_view, std::string_view> kRefused[] = {
    {"adapter", "adapters are not supported; merge it into the weights first"},
    {"renderer", "a chat template in Jinja has its place: TEMPLATE"},
    {"parser", "the chat template chooses it; leave the line out"},
    {"requires", "it names a version of Ollama; leave the line out"},
};

bool is_blank_char(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank_char(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank_char(text.back())) text.remove_suffix(1);
  return text;
}

// The first word, in lower case; the text loses it.
std::string take_word(std::string_view& text) {
  text = without_blanks(text);
  const size_t end = std::min(text.find_first_of(" \t\r\n"), text.size());
  std::string word = lower(text.substr(0, end));
  text = without_blanks(text.substr(end));
  return word;
}

// The number that the whole text is.
template <class T>
std::optional<T> number_of(std::string_view text) {
  T value{};
  const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || last != text.data() + text.size()) return std::nullopt;
  return value;
}

const ParameterRow* row_of(std::string_view name) {
  const auto* found = std::ranges::find(kParameters, name, &ParameterRow::name);
  return found == std::end(kParameters) ? nullptr : found;
}

// Templates of Ollama are in Go's language: {{ .Prompt }}, {{ if .System }}, {{ range .Messages }}.
bool is_go_template(std::string_view text) {
  for (size_t at = text.find("{{"); at != text.npos; at = text.find("{{", at + 2)) {
    std::string_view rest = text.substr(at + 2);
    if (rest.starts_with('-')) rest.remove_prefix(1);
    rest = without_blanks(rest);
    for (const std::string_view start : {".", "$", "if ", "range ", "end", "else", "template "})
      if (rest.starts_with(start)) return true;
  }
  return false;
}

class Reader {
 public:
  explicit Reader(Modelfile& file) : file_(file) {}

  Status read() {
    const std::string_view all = file_.text;
    while (at_ < all.size()) {
      const size_t end = std::min(all.find('\n', at_), all.size());
      std::string_view line = without_blanks(all.substr(at_, end - at_));
      ++line_;
      at_ = end + 1;
      if (line.empty() || line.starts_with('#')) continue;
      const std::string instruction = take_word(line);
      LOOM_TRY(take(instruction, line));
    }
    if (!file_.from.empty()) return check_turns();
    return Error{Code::bad_file, "has no FROM; write FROM and a model, as FROM ./model.gguf",
                 file_.path, -1};
  }

 private:
  Error wrong(const std::string& what) const { return wrong_at(line_, what); }
  Error wrong_at(int64_t line, const std::string& what) const {
    return Error{Code::bad_file, what, fmt::format("{}:{}", file_.path, line), -1};
  }

  // A value to the end of the line, in quotes, or between """ over several lines.
  Result<std::string> value(std::string_view rest) {
    if (!rest.starts_with(kTripleQuote)) {
      const bool quoted = rest.size() > 1 && rest.front() == '"' && rest.back() == '"';
      return std::string(quoted ? rest.substr(1, rest.size() - 2) : rest);
    }
    const std::string_view all = file_.text;
    const size_t from = static_cast<size_t>(rest.data() - all.data()) + kTripleQuote.size();
    const size_t end = all.find(kTripleQuote, from);
    if (end == all.npos) return wrong("a text that begins with \"\"\" has no \"\"\" at its end");
    const int64_t first = line_;
    const size_t next = std::min(all.find('\n', end), all.size());
    line_ += std::count(all.begin() + static_cast<std::ptrdiff_t>(from),
                        all.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    if (!without_blanks(all.substr(end + 3, next - end - 3)).empty())
      return wrong("nothing may follow \"\"\" at the end of a text");
    at_ = next + 1;
    std::string text(all.substr(from, end - from));
    if (line_ > first && text.starts_with('\n')) text.erase(0, 1);
    return text;
  }

  Status take(const std::string& instruction, std::string_view rest) {
    if (instruction == "parameter") return parameter(rest);
    if (instruction == "message") return message(rest);
    std::string* to = instruction == "from"       ? &file_.from
                      : instruction == "system"   ? &file_.system
                      : instruction == "template" ? &file_.chat_template
                      : instruction == "license"  ? &file_.license
                                                  : nullptr;
    if (to == nullptr) return unknown(instruction);
    const std::string name = upper(instruction);
    LOOM_ASSIGN(std::string text, value(rest));
    if (text.empty()) return wrong(name + " needs a value");
    if (instruction == "license" && !to->empty()) text = *to + "\n" + text;
    if (instruction != "license" && !to->empty()) return wrong(name + " is there twice");
    if (instruction == "template" && is_go_template(text))
      return wrong(
          "TEMPLATE is in Go's language, and Loom reads Jinja; leave it out to use the "
          "model's own, or write it in Jinja");
    *to = std::move(text);
    return {};
  }

  static std::string upper(std::string text) {
    for (char& c : text)
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    return text;
  }

  Status unknown(const std::string& instruction) const {
    const std::string name = upper(instruction);
    for (const auto& [refused, why] : kRefused)
      if (refused == instruction) return wrong(fmt::format("{} is not supported: {}", name, why));
    return wrong(fmt::format(
        "there is no instruction {}{}", printable(name, 60),
        did_you_mean(name, {"FROM", "SYSTEM", "TEMPLATE", "PARAMETER", "MESSAGE", "LICENSE"})));
  }

  Status parameter(std::string_view rest) {
    const std::string name = take_word(rest);
    const ParameterRow* row = row_of(name);
    if (row == nullptr) {
      std::vector<std::string> known;
      for (const ParameterRow& one : kParameters) known.emplace_back(one.name);
      return wrong(fmt::format("there is no PARAMETER {}{}", printable(name, 60),
                               did_you_mean(name, known)));
    }
    if (!row->refusal.empty())
      return wrong(fmt::format("PARAMETER {} is not supported: {}", name, row->refusal));
    LOOM_ASSIGN(std::string text, value(rest));
    LOOM_TRY(check(*row, text));
    const auto found = std::ranges::find(file_.parameters, name, &Modelfile::Parameter::name);
    if (found == file_.parameters.end()) {
      file_.parameters.push_back({name, {std::move(text)}});
    } else if (name == "stop") {
      found->values.push_back(std::move(text));
    } else {
      return wrong(fmt::format("PARAMETER {} is there twice", name));
    }
    return {};
  }

  Status check(const ParameterRow& row, const std::string& text) const {
    if (text.empty()) return wrong(fmt::format("PARAMETER {} needs a value", row.name));
    if (row.kind == Kind::text) return {};
    const std::optional<int64_t> integer = number_of<int64_t>(text);
    if (row.kind == Kind::whole ? !integer : !number_of<double>(text))
      return wrong(fmt::format("PARAMETER {} must be {}, not '{}'", row.name,
                               row.kind == Kind::whole ? "an integer" : "a number",
                               printable(text, 60)));
    SamplerOptions options;
    const Status status = row.option.empty() ? Status() : set_option(options, row.option, text);
    if (!status.ok()) return wrong("PARAMETER " + status.error().message);
    if (row.option.empty() && integer && *integer < row.least)
      return wrong(
          fmt::format("PARAMETER {} must be {} or more, not {}", row.name, row.least, text));
    return {};
  }

  Status message(std::string_view rest) {
    const std::string role = take_word(rest);
    if (role != "system" && role != "user" && role != "assistant")
      return wrong(fmt::format("MESSAGE needs a role: user, assistant or system; got '{}'",
                               printable(role, 60)));
    LOOM_ASSIGN(std::string text, value(rest));
    if (text.empty()) return wrong("MESSAGE needs a text after its role");
    if (role == "system") {
      if (!file_.system.empty()) return wrong("MESSAGE system: there is a SYSTEM already");
      file_.system = std::move(text);
      return {};
    }
    const bool question = role == "user";
    if (question != (file_.messages.size() % 2 == 0))
      return wrong(fmt::format("MESSAGE {}: messages of user and assistant alternate", role));
    ChatTurn turn;
    turn.role = role;
    turn.content = std::move(text);
    file_.messages.push_back(std::move(turn));
    return {};
  }

  Status check_turns() const {
    if (file_.messages.size() % 2 == 0) return {};
    return wrong("the last MESSAGE is of user; one of assistant has to follow");
  }

  Modelfile& file_;
  size_t at_ = 0;
  int64_t line_ = 0;
};

// The first line that is not a comment begins with an instruction that only Modelfiles begin with.
bool begins_like_modelfile(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = without_blanks(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#')) continue;
    return take_word(line) == "from" && !line.empty();
  }
  return false;
}

// The value of a parameter as a flag of `loom run` takes it.
std::string flag_value(const std::string& name, const std::string& value) {
  if (name == "num_predict" && value.starts_with('-')) return "2147483647";  // no bound
  if (value.starts_with('-') && name == "repeat_last_n") return "0";
  return value;
}

std::string json_string(std::string_view text) {
  return Json::string(text).text();
}

}  // namespace

std::string_view Modelfile::value(std::string_view parameter) const {
  const auto found = std::ranges::find(parameters, parameter, &Parameter::name);
  return found == parameters.end() ? std::string_view() : found->values.front();
}

std::string Modelfile::name() const {
  constexpr std::string_view kEnd = ".modelfile", kStart = "modelfile.";
  const fs::path full = fs::absolute(path).lexically_normal();
  const std::string file = full.filename().string(), small = lower(file);
  if (small.ends_with(kEnd) && small.size() > kEnd.size())
    return file.substr(0, file.size() - kEnd.size());
  if (small.starts_with(kStart) && small.size() > kStart.size()) return file.substr(kStart.size());
  const std::string folder = full.parent_path().filename().string();
  return small == "modelfile" && !folder.empty() ? folder : file;
}

std::string Modelfile::parameter_text() const {
  std::string out;
  for (const Parameter& one : parameters)
    for (const std::string& value : one.values)
      out += fmt::format("{:<30} {}\n", one.name, one.name == "stop" ? json_string(value) : value);
  if (!out.empty()) out.pop_back();
  return out;
}

bool is_modelfile(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  const std::string name = lower(fs::path(path).filename().string());
  if (name == "modelfile" || name.starts_with("modelfile.") || name.ends_with(".modelfile"))
    return true;
  // A model is not read for this.
  std::string start(4096, '\0');
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  start.resize(std::fread(start.data(), 1, start.size(), file));
  std::fclose(file);
  return start.find('\0') == start.npos && begins_like_modelfile(start);
}

Result<Modelfile> read_modelfile(const std::string& path) {
  Modelfile file;
  file.path = path;
  LOOM_ASSIGN(file.text, read_text(path, kMaxBytes));
  LOOM_TRY(Reader(file).read());
  // A path is relative to the folder of the file.
  const fs::path near = fs::path(path).parent_path() / file.from;
  std::error_code error;
  if (fs::exists(near, error)) file.from = near.string();
  return file;
}

std::vector<std::pair<std::string, std::vector<std::string>>> run_flags(const Modelfile& file) {
  std::vector<std::pair<std::string, std::vector<std::string>>> flags;
  for (const Modelfile::Parameter& one : file.parameters) {
    const ParameterRow& row = *row_of(one.name);
    if (row.flag.empty()) continue;
    std::vector<std::string> values;
    for (const std::string& value : one.values) values.push_back(flag_value(one.name, value));
    // A window of 0 is the whole text for Loom, and no penalty for Ollama.
    const bool off = one.name == "repeat_last_n" && values.front() == "0" &&
                     !one.values.front().starts_with('-');
    if (off) flags.insert(flags.begin(), {"repetition-penalty", {"1"}});
    if (!off) flags.emplace_back(row.flag, std::move(values));
  }
  return flags;
}

std::string completion_fields(const Modelfile& file) {
  Json out = Json::object();
  for (const Modelfile::Parameter& one : file.parameters) {
    const ParameterRow& row = *row_of(one.name);
    if (row.field.empty()) continue;
    if (row.kind == Kind::text) {
      Json list = Json::array();
      for (const std::string& value : one.values) list.push(Json::string(value));
      out.add(row.field, list);
      continue;
    }
    const std::string& value = one.values.front();
    if (row.kind == Kind::number) {
      out.add(row.field, Json::real(number_of<double>(value).value_or(0)));
      continue;
    }
    const int64_t integer = number_of<int64_t>(value).value_or(0);
    out.add(row.field,
            Json::integer(one.name == "num_predict" ? std::max<int64_t>(integer, -1) : integer));
  }
  return out.empty() ? std::string() : out.text();
}

}  // namespace loom::cli
