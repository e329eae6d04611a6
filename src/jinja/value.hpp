// Values of the template language: what Python would hold in the variables of a chat template.
// Immutable and shared, except the attributes of a namespace. Nothing of the host is reachable from
// a value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loom::core::jinja {

class Value {
 public:
  enum class Kind : uint8_t {
    undefined,
    none,
    boolean,
    integer,
    string,
    list,
    dict,
    space,
    function
  };
  using List = std::vector<Value>;
  using Member = std::pair<std::string, Value>;
  using Dict = std::vector<Member>;  // in the order of insertion, as in Python

  Value() = default;                         // undefined
  static Value undefined(std::string name);  // remembers what was looked for
  static Value none() { return Value(Kind::none); }
  static Value boolean(bool v) { return Value(Kind::boolean, v ? 1 : 0); }
  static Value integer(int64_t v) { return Value(Kind::integer, v); }
  static Value string(std::string v);
  static Value list(List v);
  static Value dict(Dict v);
  static Value space(Dict v);  // what namespace() makes: its attributes can be set
  // A function of the library by its name: it is defined, and nothing else can be done with it.
  static Value function() { return Value(Kind::function, 1); }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_number() const { return kind_ == Kind::integer || kind_ == Kind::boolean; }
  int64_t number() const { return number_; }
  // Empty when the value is of another kind.
  const std::string& text() const;
  const List& items() const;
  const Dict& members() const;

  const Value* find(std::string_view key) const;
  void set_attribute(const std::string& key, Value value) const;  // of a namespace

  bool truthy() const;
  bool equals(const Value& other) const;       // the == of Python
  int depth() const { return depth_; }         // levels of lists and dicts inside
  uint64_t weight() const { return weight_; }  // values inside, shared ones as often as they appear
  bool holds_space() const { return holds_space_; }

 private:
  explicit Value(Kind kind, int64_t number = 0) : kind_(kind), number_(number) {}
  void note(const Value& child);
  Kind kind_ = Kind::undefined;
  bool holds_space_ = false;
  int depth_ = 0;
  uint64_t weight_ = 1;
  int64_t number_ = 0;
  std::shared_ptr<const std::string> text_;
  std::shared_ptr<const List> list_;
  std::shared_ptr<Dict> dict_;
};

std::string_view kind_name(Value::Kind kind);

}  // namespace loom::core::jinja
