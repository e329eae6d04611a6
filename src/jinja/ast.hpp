// The syntax tree of a template. The parser bounds its depth, so walking it may recurse.
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
    real,     // real
    boolean,  // number
    none,
    variable,    // name
    list,        // children
    tuple,       // children
    dict,        // children: key, value, key, value...
    attribute,   // child 0 . name
    item,        // child 0 [ child 1 ]
    slice,       // child 0 [ child 1 : child 2 : child 3 ]; an absent bound is null
    call,        // child 0 ( children 1... )
    filter,      // child 0 | name ( children 1... ); child 0 is null in a filter block
    test,        // child 0 is name ( children 1... )
    negation,    // not child 0
    minus,       // - child 0
    plus,        // + child 0
    binary,      // child 0 name child 1: + - * / // % ** ~ and or
    comparison,  // child 0, keywords 0, child 1, keywords 1, child 2...: == != < > <= >= in, not in
    conditional  // child 0 if child 1 else child 2 (may be null)
  };
  Kind kind = Kind::none;
  int depth = 1;
  int64_t offset = 0;
  int64_t number = 0;
  double real = 0;
  std::string name;
  std::vector<std::unique_ptr<Expr>> children;
  // for call, filter and test: the names of the last children; "*" and "**" unpack theirs
  std::vector<std::string> keywords;
};
using ExprPtr = std::unique_ptr<Expr>;

// The target of a loop or an assignment: a name, an attribute of a namespace, or a tuple of these.
struct Target {
  std::string name;
  std::string space;          // the namespace whose attribute `name` is set
  std::vector<Target> parts;  // of a tuple
};

struct Statement {
  enum class Kind : uint8_t {
    data,          // text
    output,        // values 0
    branch,        // a value per body, null for else
    loop,          // values: the iterable, the filter or null; bodies: the rounds, else
    set,           // target, values 0
    set_block,     // target, values 0: a chain of filters or null; bodies 0
    stop,          // break
    skip,          // continue
    macro,         // text: its name; parameters; values: their defaults or null; bodies 0
    call_block,    // values 0: a call; parameters and values 1...: of caller(); bodies 0
    filter_block,  // values 0: a chain of filters; bodies 0
    with           // target: a tuple; values; bodies 0
  };
  Kind kind = Kind::data;
  int64_t offset = 0;
  std::string text;
  Target target;
  bool recursive = false;  // of a loop
  bool takes_more = false, takes_named = false,
       takes_caller = false;  // of a macro: its body uses caller()
  std::vector<std::string> parameters;
  std::vector<ExprPtr> values;
  std::vector<std::vector<Statement>> bodies;
};

// Names that are undefined until the template assigns them, even if the conversation defines them.
std::vector<std::string> hidden_names(const std::vector<Statement>& body);

Result<std::vector<Statement>> parse_template(std::string_view source, const std::string& where);

}  // namespace loom::core::jinja
