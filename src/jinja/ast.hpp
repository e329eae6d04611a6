// The tree of a template. Its depth is bounded by the parser, so that walking it may recurse.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace loom::core::jinja {

inline constexpr int kMaxTreeDepth = 120;

struct Expr {
  enum class Kind : uint8_t {
    string,   // name
    integer,  // number
    boolean,  // number
    none,
    variable,    // name
    list,        // children
    dict,        // children: key, value, key, value...
    attribute,   // child 0 . name
    item,        // child 0 [ child 1 ]
    slice,       // child 0 [ child 1 : child 2 : child 3 ]; an absent bound is null
    call,        // child 0 ( children 1... )
    filter,      // child 0 | name ( children 1... )
    test,        // child 0 is name ( children 1... )
    negation,    // not child 0
    minus,       // - child 0
    binary,      // child 0 name child 1: + - * / // % ** ~ == != < > <= >= in, not in, and, or
    conditional  // child 0 if child 1 else child 2 (may be null)
  };
  Kind kind = Kind::none;
  int depth = 1;
  int64_t offset = 0;
  int64_t number = 0;
  std::string name;
  std::vector<std::unique_ptr<Expr>> children;
  std::vector<std::string> keywords;  // of call and filter: the names of the last children
};
using ExprPtr = std::unique_ptr<Expr>;

struct Statement {
  enum class Kind : uint8_t { data, output, branch, loop, set, set_block, stop, skip };
  Kind kind = Kind::data;
  int64_t offset = 0;
  std::string text;                  // data: the text; set: the variable, or the attribute to set
  std::string space;                 // set: the namespace whose attribute is set
  std::vector<std::string> targets;  // loop
  // output: the value; set: the value; branch: a condition per body, null for else;
  // loop: the iterable and the filter, or null
  std::vector<ExprPtr> values;
  // branch: as many as values; loop: the body and the else part; set_block: one
  std::vector<std::vector<Statement>> bodies;
};

Result<std::vector<Statement>> parse_template(std::string_view source, const std::string& where);

}  // namespace loom::core::jinja
