// The functions that templates may call. Each follows the Jinja or Python function of that name for
// the types that exist here.
#include "jinja/library.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::jinja {
namespace {

using Kind = Value::Kind;

template <size_t N>
bool among(std::string_view name, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Result<Value> length_of(const Call& call, Meter& meter) {
  const Value& self = call.self;
  LOOM_TRY(meter.work(self.text().size(), call.offset));
  switch (self.kind()) {
    case Kind::undefined: return Value::integer(0);
    case Kind::string:
      return Value::integer(static_cast<int64_t>(text::count_code_points(self.text())));
    case Kind::list:
      if (self.sequence() == Value::Sequence::generator) break;
      return Value::integer(static_cast<int64_t>(self.items().size()));
    case Kind::dict: return Value::integer(static_cast<int64_t>(self.members().size()));
    default: break;
  }
  return meter.fail(cat("no length of ", kind_name(self)), call.offset);
}

// {{ loop.cycle("a", "b") }} and {{ loop.changed(x) }}.
Result<Value> loop_method(const Call& call, Meter& meter) {
  const Callable& loop = *call.self.callable();
  if (call.name == "cycle") {
    if (call.arguments.empty()) return meter.fail("cycle() of nothing", call.offset);
    const Value* index = call.self.find("index0");
    const auto at = static_cast<size_t>(index != nullptr ? index->number() : 0);
    return call.arguments[at % call.arguments.size()];
  }
  const Value now = Value::list(call.arguments);
  if (now.holds_space()) return meter.refuse("changed() of a function", call.offset);
  LOOM_TRY(meter.work(64 * now.weight(), call.offset));
  const bool same = !loop.changed->empty() && loop.changed->front().equals(now);
  *loop.changed = {now};
  return Value::boolean(!same);
}

Result<Value> dict_method(const Call& call, Meter& meter) {
  if (call.name == "get") {
    const Value key = call.argument(0, "key");
    const bool usable = key.is(Kind::string) || key.is_integer();
    const Value* found = usable ? call.self.find(dict_key(key)) : nullptr;
    if (found != nullptr) return *found;
    return call.arguments.size() > 1 ? call.arguments[1] : Value::none();
  }
  if (call.name == "copy") return call.self;
  if (call.name == "fromkeys") return meter.refuse("fromkeys()", call.offset);
  return items_of(call.self, call.name, meter, call.offset);
}

Result<Value> list_method(const Call& call, Meter& meter) {
  if (call.name == "copy") return call.self;
  const Value what = call.argument(0);
  int64_t times = 0;
  for (size_t i = 0; i < call.self.items().size(); ++i) {
    LOOM_TRY(meter.work(32 * what.weight() + what.text().size(), call.offset));
    if (!call.self.items()[i].equals(what)) continue;
    if (call.name == "index") return Value::integer(static_cast<int64_t>(i));
    ++times;
  }
  if (call.name == "index") return meter.fail("index() of what is not there", call.offset);
  return Value::integer(times);
}

Result<Value> range(const Call& call, Meter& meter) {
  const size_t count = call.arguments.size();
  for (const Value& argument : call.arguments) {
    if (!argument.is_integer()) return meter.fail("range() needs integers", call.offset);
  }
  if (count < 1 || count > 3) return meter.fail("range() takes 1 to 3 integers", call.offset);
  int64_t at = count == 1 ? 0 : call.arguments[0].number();
  const int64_t end = call.arguments[count == 1 ? 0 : 1].number();
  const int64_t step = count == 3 ? call.arguments[2].number() : 1;
  if (step == 0) return meter.fail("range() with step 0", call.offset);
  Value::List list;
  while (step > 0 ? at < end : at > end) {
    LOOM_TRY(meter.work(64, call.offset));
    if (list.size() == 100'000) return meter.fail("range() of more than 100000", call.offset);
    list.push_back(Value::integer(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return meter.make(std::move(list), call.offset);
}

Result<Value> make_space(const Call& call, Meter& meter) {
  Value::Dict members;
  for (const Value& argument : call.arguments) {
    if (!argument.is(Kind::dict)) return meter.fail("namespace() needs mappings", call.offset);
    members.insert(members.end(), argument.members().begin(), argument.members().end());
  }
  const Value space = Value::space(std::move(members));
  for (const auto& [key, value] : call.named) {
    if (value.holds_space()) {
      return meter.refuse("a namespace or a function in a namespace", call.offset);
    }
    space.set_attribute(key, value);
  }
  return space;
}

Result<Value> make_dict(const Call& call, Meter& meter) {
  if (call.arguments.size() > 1 ||
      (call.arguments.size() == 1 && !call.arguments[0].is(Kind::dict))) {
    return meter.refuse("dict() of anything but a mapping and names", call.offset);
  }
  Value::Dict members = call.arguments.empty() ? Value::Dict() : call.arguments[0].members();
  for (const auto& [key, value] : call.named) {
    const auto found = std::find_if(members.begin(), members.end(),
                                    [&, k = key](const auto& m) { return m.first == k; });
    if (found != members.end()) {
      found->second = value;
    } else {
      members.emplace_back(key, value);
    }
  }
  return meter.make(std::move(members), call.offset);
}

}  // namespace

Result<Value> call_filter(const Call& call, Meter& meter) {
  const std::string_view name = call.name;
  if (name == "length" || name == "count") return length_of(call, meter);
  if (name == "default" || name == "d") {
    const bool missing = call.self.is(Kind::undefined) ||
                         (call.argument(1, "boolean").truthy() && !call.self.truthy());
    if (!missing) return call.self;
    const Value given = call.argument(0, "default_value");
    const bool has_none = call.arguments.empty() && call.named.empty();
    return has_none ? Value::string("") : given;
  }
  if (name == "tojson") return to_json(call, meter);
  if (name == "attr") {
    const Value* found =
        call.self.is(Kind::space) ? call.self.find(call.argument(0).text()) : nullptr;
    return found != nullptr ? *found : Value::undefined(call.argument(0).text());
  }
  using Family = Result<Value> (*)(const Call&, bool&, Meter&);
  for (const Family family : {list_filter, ordered_filter, number_filter, text_filter}) {
    bool known = false;
    Result<Value> result = family(call, known, meter);
    if (known) return result;
  }
  return meter.refuse(cat("the filter '", printable(name), "'"), call.offset);
}

Method method_of(const Value& object, std::string_view name) {
  static constexpr std::string_view kOfText[] = {
      "capitalize", "casefold",     "center",      "count",      "encode",       "endswith",
      "expandtabs", "find",         "format",      "format_map", "index",        "isalnum",
      "isalpha",    "isascii",      "isdecimal",   "isdigit",    "isidentifier", "islower",
      "isnumeric",  "isspace",      "istitle",     "isupper",    "join",         "ljust",
      "lower",      "lstrip",       "partition",   "replace",    "rfind",        "rindex",
      "rjust",      "rpartition",   "rsplit",      "rstrip",     "split",        "splitlines",
      "startswith", "strip",        "swapcase",    "title",      "translate",    "upper",
      "zfill",      "removeprefix", "removesuffix"};
  static constexpr std::string_view kOfDict[] = {"copy",  "fromkeys", "get",
                                                 "items", "keys",     "values"};
  static constexpr std::string_view kChangeDict[] = {"clear", "pop", "popitem", "setdefault",
                                                     "update"};
  static constexpr std::string_view kOfList[] = {"count", "index", "copy"};
  static constexpr std::string_view kChangeList[] = {"append", "clear", "pop",    "reverse",
                                                     "insert", "sort",  "extend", "remove"};
  static constexpr std::string_view kOfLoop[] = {"cycle", "changed"};
  bool known = false, changes = false;
  switch (object.kind()) {
    case Kind::string: known = among(name, kOfText); break;
    case Kind::dict:
      known = among(name, kOfDict);
      changes = among(name, kChangeDict);
      break;
    case Kind::list:
      known = object.sequence() <= Value::Sequence::tuple && among(name, kOfList);
      changes = object.sequence() == Value::Sequence::list && among(name, kChangeList);
      break;
    case Kind::function:
      known = object.callable()->kind == Callable::Kind::loop && among(name, kOfLoop);
      break;
    default: break;
  }
  return changes ? Method::changes : known ? Method::known : Method::none;
}

Result<Value> call_method(const Call& call, Meter& meter) {
  if (call.self.is(Kind::function)) return loop_method(call, meter);
  if (call.self.is(Kind::dict)) return dict_method(call, meter);
  if (call.self.is(Kind::list)) return list_method(call, meter);
  if (call.name == "join" && call.arguments.size() == 1) {
    LOOM_ASSIGN(const Value::List items, iterate(call.arguments[0], meter, call.offset));
    for (const Value& item : items) {
      if (!item.is(Kind::string))
        return meter.fail(cat("join() of ", kind_name(item)), call.offset);
    }
    return join_items(call, call.arguments[0], call.self, meter);
  }
  bool known = false;
  Result<Value> result = text_operation(call, call.self.text(), known, meter);
  if (known) return result;
  return meter.refuse(cat("the method '", printable(call.name), "' of ", kind_name(call.self)),
                      call.offset);
}

bool is_function(std::string_view name) {
  static constexpr std::string_view kNames[] = {"raise_exception", "namespace", "dict", "range",
                                                "strftime_now"};
  return among(name, kNames);
}

Result<Value> call_function(const Call& call, const CivilTime& now, Meter& meter) {
  if (call.name == "raise_exception") {
    LOOM_ASSIGN(const std::string message, meter.to_text(call.argument(0, "message"), call.offset));
    return meter.fail(cat("the template refuses the messages: ", printable(message, 500)),
                      call.offset);
  }
  if (call.name == "namespace") return make_space(call, meter);
  if (call.name == "dict") return make_dict(call, meter);
  if (call.name == "range" && call.named.empty()) return range(call, meter);
  if (call.name == "strftime_now") {
    const Value format = call.argument(0, "format");
    if (!format.is(Kind::string)) return meter.fail("strftime_now() needs a format", call.offset);
    LOOM_TRY(meter.work(16 * format.text().size(), call.offset));
    std::optional<std::string> text = format_time(now, format.text());
    if (!text) return meter.refuse(cat("the format '", printable(format.text()), "'"), call.offset);
    return meter.make(std::move(*text), call.offset);
  }
  return meter.refuse(cat("this use of the function '", printable(call.name), "'"), call.offset);
}

}  // namespace loom::core::jinja
