// Flags of the program for a struct of options, made from its description.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "../shared/flags.hpp"
#include "loom/loom.hpp"

namespace loom::cli {

// Copies share the line that was parsed; what set() changes is of one copy.
class OptionFlags {
 public:
  OptionFlags();
  // A flag for each option that has one, in the group of its heading, but not those of `by_hand`.
  // The help shows what `list` holds. Flags of earlier versions are read, with a note.
  void add(Command verb, const std::vector<OptionInfo>& list,
           const std::set<std::string_view>& by_hand = {});
  // Tells which flags of the line have another name now. Errors: both names are given.
  Status note_earlier_flags() const;
  // In place of what the line has for that flag.
  void set(std::string_view flag, std::vector<std::string> values);
  // The values of a flag at commas; "" where it is not given.
  std::string text(std::string_view flag) const;
  // A flag that add() declared, for relations to others. Errors: none; an unknown one is of no
  // command.
  Option option(std::string_view flag) const;
  // The flags that the line has, without dashes.
  std::vector<std::string> given() const;

  // Sets what the line has. Errors: those of set_flag().
  template <class Options>
  Status read(Options& to) const {
    for (const auto& [flag, values] : values_of_line()) LOOM_TRY(set_flag(to, flag, values));
    return {};
  }

 private:
  using Values = std::map<std::string, std::vector<std::string>, std::less<>>;
  struct Line;  // what the parser writes to

  Values values_of_line() const;

  std::shared_ptr<Line> line_;
  Values changed_;
};

}  // namespace loom::cli
