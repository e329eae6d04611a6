// SchemaReader: converts a JSON schema to an expression. For json_schema.cpp and its neighbours.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "grammar/builder.hpp"
#include "grammar/schemas/json_schema.hpp"
#include "grammar/schemas/schema_merge.hpp"

namespace loom::core::grammar {

// The parts of JSON texts, each compiled once.
class JsonParts {
 public:
  JsonParts(Builder& builder, const SchemaOptions& how) : b(builder), options(how) {}

  ExprId space();  // between parts
  ExprId comma();  // with the space after it
  ExprId colon();
  ExprId character();  // of a string, escaped or not
  ExprId string();
  ExprId value();                                            // any
  ExprId object();                                           // any
  ExprId array();                                            // any
  ExprId name(const std::string& text);                      // "text"
  ExprId other_name(const std::vector<std::string>& names);  // a string not in names
  // first (comma first){..}: `least` to `most` times.
  ExprId list(ExprId one, uint32_t least, uint32_t most);
  ExprId wrapped(const char* open, ExprId inside, const char* close);

  Builder& b;
  const SchemaOptions options;

 private:
  ExprId once(const char* name, ExprId (JsonParts::*make)());
  ExprId make_space();
  ExprId make_character();
  ExprId make_string();
  ExprId make_value();
  ExprId make_object();
  ExprId make_array();
  ExprId name_end(const std::vector<std::string>& rests);
  std::map<std::string, RuleId> rules_;
};

class SchemaReader {
 public:
  SchemaReader(Builder& builder, const JsonValue& root, const SchemaOptions& options)
      : parts_(builder, options), b_(builder), root_(root) {}

  Result<ExprId> read(const JsonValue& schema, const std::string& where);

 private:
  Result<ExprId> read_ref(const JsonValue& schema, const std::string& where);
  Result<ExprId> read_all(const JsonValue& schema, const std::string& where);
  Result<ExprId> read_any(const JsonValue& schema, const std::string& key,
                          const std::string& where);
  Result<ExprId> read_values(const JsonValue& schema, const std::string& where);
  Result<ExprId> read_kinds(const JsonValue& schema, const std::string& where);
  Result<ExprId> read_string(const JsonValue& schema, const std::string& where);
  Result<ExprId> read_number(const JsonValue& schema, bool whole, const std::string& where);
  Result<ExprId> read_array(const JsonValue& schema, const std::string& where);
  Result<ExprId> read_object(const JsonValue& schema, const std::string& where);

  struct Member {
    ExprId expr = 0;
    bool required = false;
  };
  struct More {  // members outside of `properties`
    bool allowed = true;
    ExprId expr = 0;
    uint32_t least = 0, most = Builder::kEndless;
  };
  Result<std::vector<Member>> read_members(const JsonValue& schema, std::vector<std::string>& names,
                                           const std::string& where);
  Result<More> read_more(const JsonValue& schema, const std::vector<std::string>& names,
                         const std::string& where);
  Result<ExprId> value_of_more(const JsonValue& schema, const std::string& where);
  Status count_members(const JsonValue& schema, const std::vector<Member>& members, More& more,
                       const std::string& where);
  ExprId member_list(const std::vector<Member>& members, const More& more);

  const JsonValue* find(std::string_view reference) const;
  // The count of a keyword; `otherwise` if it is absent.
  Result<uint32_t> count(const JsonValue& schema, const char* key, uint32_t otherwise,
                         const std::string& where) const;

  JsonParts parts_;
  Builder& b_;
  const JsonValue& root_;
  std::map<std::string, RuleId> refs_;
  int depth_ = 0, reads_ = 0;
};

// A keyword without constraints on a text: an annotation of JSON Schema, or one that pydantic, zod
// and OpenAPI write.
bool is_annotation(std::string_view key);

}  // namespace loom::core::grammar
