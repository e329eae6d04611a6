// A layer's configuration as data: every kind lists its fields (name, type, range, default), and a
// LayerConfig holds one value per field. JSON schema, language bindings and documentation are
// derived from the same list.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "dtype/dtype.hpp"

namespace loom::core {

enum class LayerKind : uint8_t {
#define LOOM_LAYER(id, enumerator, definition) enumerator = id,
#include "layers/core/registry.def"
#undef LOOM_LAYER
};

// Kinds from here on are in development. No release has them, so lists of released kinds (hashes,
// bindings) omit them.
constexpr int kFirstUnreleasedKind = 200;
constexpr bool released(LayerKind kind) {
  return static_cast<int>(kind) < kFirstUnreleasedKind;
}

// list: integers; a single number is a list of one.
enum class FieldType : uint8_t { integer, real, boolean, text, list };

struct FieldDesc {
  std::string_view name;
  FieldType type = FieldType::integer;
  double default_number = 0;
  double min = 0;
  double max = 0;
  std::string_view default_text;
  std::string_view doc;
  std::string_view old_name = {};  // its name in files of the original
  bool late = false;               // files omit it at its default
};

// The value of one field. Small, because a description may hold millions. Texts and lists are
// stored separately, and only if they differ from the default. LayerConfig reads and sets them.
class FieldValue {
 public:
  FieldValue() = default;
  explicit FieldValue(double v) : number(v) {}
  FieldValue(const FieldValue& other);
  FieldValue(FieldValue&& other) noexcept = default;
  FieldValue& operator=(const FieldValue& other) { return *this = FieldValue(other); }
  FieldValue& operator=(FieldValue&& other) noexcept = default;
  ~FieldValue() = default;

  double number = 0;

 private:
  friend struct LayerConfig;
  struct More {
    std::string text;
    std::vector<int64_t> list;
  };
  std::unique_ptr<const More> more_;  // null means the default
};

struct LayerDef;

// The layer that a user builds: its field values and children. make_layer() makes it, finalize()
// completes it.
struct LayerConfig {
  const LayerDef* def = nullptr;
  std::vector<FieldValue> values;  // in the order of def->fields
  std::vector<LayerConfig> children;
  bool disabled = false;  // identity

  int64_t integer(int field) const {
    return static_cast<int64_t>(values[static_cast<size_t>(field)].number);
  }
  double real(int field) const { return values[static_cast<size_t>(field)].number; }
  bool flag(int field) const { return values[static_cast<size_t>(field)].number != 0; }
  std::string_view text(int field) const;
  const std::vector<int64_t>& list(int field) const;
  void set_text(int field, std::string text);
  void set_list(int field, std::vector<int64_t> list);
};

// A field by name and its value, for make_layer.
struct Field {
  std::string_view name;
  double number = 0;
  std::string text;
  std::vector<int64_t> list;
  FieldType type = FieldType::real;
  Field(std::string_view n, double v) : name(n), number(v) {}
  Field(std::string_view n, int64_t v) : name(n), number(static_cast<double>(v)) {}
  Field(std::string_view n, int v) : name(n), number(v) {}
  Field(std::string_view n, bool v) : name(n), number(v ? 1 : 0), type(FieldType::boolean) {}
  Field(std::string_view n, std::string v) : name(n), text(std::move(v)), type(FieldType::text) {}
  Field(std::string_view n, const char* v) : Field(n, std::string(v)) {}
  Field(std::string_view n, std::vector<int64_t> v)
      : name(n), list(std::move(v)), type(FieldType::list) {}
};

// A layer with defaults and the given fields. Errors: unknown names, wrong types, and values out of
// range.
Result<LayerConfig> make_layer(LayerKind kind, const std::vector<Field>& fields,
                               std::vector<LayerConfig> children = {});
// The same for a kind or a block. A block is expanded.
Result<LayerConfig> make_layer(const LayerDef& def, const std::vector<Field>& fields,
                               std::vector<LayerConfig> children = {});

}  // namespace loom::core
