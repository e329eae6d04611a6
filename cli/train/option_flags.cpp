#include "option_flags.hpp"

#include <fmt/ranges.h>

#include "../shared/console.hpp"

namespace loom::cli {

// A flag as the line has it.
struct ParsedFlag {
  std::string flag;  // of today, without dashes
  std::string was;   // the former flag, if this row is one
  std::string text;
  std::vector<std::string> list;
  bool on = false, off_by_flag = false;  // off_by_flag: the flag is --no-...
  Option option;
};

namespace {

bool is_list(std::string_view type) {
  return type == "ints" || type == "floats" || type == "words" || type == "texts" ||
         type == "rates";
}

// Its sentence, and the values of an enum.
std::string help_of(const OptionInfo& info) {
  std::string text(info.help);
  if (info.values.empty()) return text;
  text.pop_back();
  for (size_t i = 0; i < info.values.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? ": " : ", ", info.values[i]);
  return text;
}

// The name of a value in the help.
std::string_view kind_of(std::string_view type) {
  if (type == "ints" || type.starts_with("int") || type == "seed") return "INT";
  if (type.starts_with("float") || type.starts_with("double")) return "NUMBER";
  if (type == "texts" || type == "text?") return "TEXT";
  if (type == "path") return "PATH";
  return type == "rates" ? "PATTERN=FACTOR" : "NAME";
}

Option declare(Command verb, const std::string& name, const OptionInfo& info, ParsedFlag& to) {
  if (info.type == "bool" || info.type == "bool?") {
    const std::string off = fmt::format("Disables: {}", info.help);
    return verb.flag(name, to.on, to.off_by_flag ? off : info.help);
  }
  if (is_list(info.type)) {
    const ListOption list = verb.option(name, to.list, info.help);
    const bool patterns = info.type == "texts" || info.type == "rates";
    return (patterns ? list.one_at_a_time() : list.split_at(',')).takes(kind_of(info.type));
  }
  to.text = info.text;
  const Option option = verb.option(name, to.text, help_of(info)).takes(kind_of(info.type));
  return info.text.empty() ? option : option.show_default();
}

}  // namespace

struct OptionFlags::Line {
  std::deque<ParsedFlag> flags;  // whose addresses stay
};

OptionFlags::OptionFlags() : line_(std::make_shared<Line>()) {}

void OptionFlags::add(Command verb, const std::vector<OptionInfo>& list,
                      const std::set<std::string_view>& by_hand) {
  for (const OptionInfo& info : list) {
    if (info.flag.empty() || by_hand.contains(info.flag)) continue;
    ParsedFlag& now = line_->flags.emplace_back();
    now.flag = info.flag;
    now.off_by_flag = info.type == "bool" && info.text == "true";
    const std::string name = fmt::format("--{}{}", now.off_by_flag ? "no-" : "", info.flag);
    now.option = declare(verb.group(info.group), name, info, now);
    if (info.type == "bool?") {  // both are there, as neither is the default
      ParsedFlag& off = line_->flags.emplace_back();
      off.flag = info.flag;
      off.off_by_flag = true;
      off.option = declare(verb.group(info.group), fmt::format("--no-{}", info.flag), info, off);
      off.option.excludes(now.option);
    }
    for (const std::string_view before : info.was) {
      ParsedFlag& old = line_->flags.emplace_back();
      old.flag = info.flag;
      old.was = before;
      old.option = declare(verb, fmt::format("--{}", before), info, old).hidden();
    }
  }
}

void OptionFlags::set(std::string_view flag, std::vector<std::string> values) {
  changed_[std::string(flag)] = std::move(values);
}

Option OptionFlags::option(std::string_view flag) const {
  for (const ParsedFlag& p : line_->flags)
    if (p.flag == flag && p.was.empty()) return p.option;
  return {};
}

std::vector<std::string> OptionFlags::given() const {
  std::vector<std::string> flags;
  for (const auto& [flag, values] : values_of_line()) flags.push_back(flag);
  return flags;
}

OptionFlags::Values OptionFlags::values_of_line() const {
  Values all;
  for (const ParsedFlag& p : line_->flags) {
    if (!p.option.given()) continue;
    if (p.on)
      all[p.flag] = {p.off_by_flag ? "false" : "true"};
    else
      all[p.flag] = p.list.empty() ? std::vector<std::string>{p.text} : p.list;
  }
  for (const auto& [flag, values] : changed_) all[flag] = values;
  return all;
}

Status OptionFlags::note_earlier_flags() const {
  for (const ParsedFlag& p : line_->flags) {
    if (p.was.empty() || !p.option.given()) continue;
    for (const ParsedFlag& now : line_->flags) {
      if (now.flag == p.flag && now.was.empty() && now.option.given())
        return Error{Code::invalid_argument,
                     fmt::format("--{} is now --{}: give one of them", p.was, p.flag), "", -1};
    }
    note(fmt::format("--{} is now --{}", p.was, p.flag));
  }
  return {};
}

std::string OptionFlags::text(std::string_view flag) const {
  const Values all = values_of_line();
  const auto found = all.find(flag);
  return found == all.end() ? std::string() : fmt::format("{}", fmt::join(found->second, ","));
}

}  // namespace loom::cli
