// Values of the template language: the Python values in the variables of a chat template. Immutable
// and shared, except the attributes of a namespace. No value can access the host. Keys of mappings
// are strings or integers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/json/json.hpp"

namespace loom::core::jinja {

struct Callable;

class Value {
 public:
  enum class Kind : uint8_t {
    undefined,
    none,
    boolean,
    integer,
    real,
    string,
    list,
    dict,
    space,
    function
  };
  // The Python type of a sequence: these print, compare and measure differently.
  enum class Sequence : uint8_t { list, tuple, generator, view };
  using List = std::vector<Value>;
  using Member = std::pair<std::string, Value>;
  using Dict = std::vector<Member>;  // in the order of insertion, as in Python

  Value() = default;                         // undefined
  static Value undefined(std::string name);  // remembers the requested name
  static Value none() { return Value(Kind::none); }
  static Value boolean(bool v) { return Value(Kind::boolean, v ? 1 : 0); }
  static Value integer(int64_t v) { return Value(Kind::integer, v); }
  static Value real(double v);
  static Value string(std::string v, bool safe = false);  // safe: marked as escaped
  static Value list(List v, Sequence sequence = Sequence::list);
  static Value dict(Dict v);
  static Value space(Dict v);  // the result of namespace(): its attributes can be set
  static Value function(std::shared_ptr<const Callable> v);
  static Value from_json(const JsonValue& json);  // an unsigned integer above int64 is a real

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_integer() const { return kind_ == Kind::integer || kind_ == Kind::boolean; }
  bool is_number() const { return is_integer() || kind_ == Kind::real; }
  int64_t number() const { return number_; }  // of an integer or a boolean, else 0
  double as_real() const { return kind_ == Kind::real ? real_ : static_cast<double>(number_); }
  bool is_safe() const { return safe_; }
  Sequence sequence() const { return sequence_; }
  // Empty if the value is of another type.
  const std::string& text() const;
  const List& items() const;
  const Dict& members() const;
  const Callable* callable() const { return function_.get(); }

  const Value* find(std::string_view key) const;
  void set_attribute(const std::string& key, Value value) const;  // of a namespace

  bool truthy() const;
  bool equals(const Value& other) const;       // the == of Python
  bool is_same(const Value& other) const;      // its `is`; equal texts and numbers are the same
  int depth() const { return depth_; }         // levels of lists and dicts inside
  uint64_t weight() const { return weight_; }  // values inside; shared ones count each time
  // Contains a namespace or a function: neither may be stored where it could reach itself.
  bool holds_space() const { return holds_space_; }

 private:
  explicit Value(Kind kind, int64_t number = 0) : kind_(kind), number_(number) {}
  void note(const Value& child);
  Kind kind_ = Kind::undefined;
  Sequence sequence_ = Sequence::list;
  bool holds_space_ = false, safe_ = false;
  int depth_ = 0;
  uint64_t weight_ = 1;
  int64_t number_ = 0;
  double real_ = 0;
  std::shared_ptr<const std::string> text_;
  std::shared_ptr<const List> list_;
  std::shared_ptr<Dict> dict_;
  std::shared_ptr<const Callable> function_;
};

struct Statement;
struct Scope;

// The target of a callable value. A macro refers to its surrounding variables without keeping them
// alive: they hold the macro.
struct Callable {
  enum class Kind : uint8_t {
    library,  // a function of the library by its name
    method,   // name of self
    macro,    // statement, scope
    loop      // {% for ... recursive %}: statement, depth
  };
  Kind kind = Kind::library;
  std::string name;
  Value self;
  const Statement* statement = nullptr;
  std::weak_ptr<Scope> scope;
  int64_t depth = 0;
  // loop: the last argument of loop.changed(), and the members such as {{ loop.index }}
  std::shared_ptr<Value::List> changed;
  Value::Dict members;
};

// The name of a Dict member with the key 7. It is not UTF-8, so no string of a template can equal
// it.
std::string dict_key(const Value& key);  // of a string or an integer
bool is_integer_key(const std::string& key, int64_t& number);

std::string_view kind_name(Value::Kind kind);
// The name of Python's type() for a value, in messages.
std::string kind_name(const Value& value);

}  // namespace loom::core::jinja
