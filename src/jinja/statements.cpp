// Parses tags to statements. "generation" marks are transparent. Tags that read another template
// (import, include, extends, block), and tags that transformers disables, are refused with a
// message that names them.
#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "jinja/parser.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::jinja {
namespace {

class StatementParser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;
  using Body = std::vector<Statement>;

  Result<Body> run() {
    LOOM_ASSIGN(Body body, statements({}));
    if (peek().kind != TemplateToken::Kind::end) return fail(cat("unexpected '", tag_name(), "'"));
    return body;
  }

 private:
  std::string tag_name() const {
    return at_ + 1 < tokens_.size() ? tokens_[at_ + 1].text : std::string();
  }

  // Statements up to the end of the template or a tag in `ends`, which is not consumed.
  Result<Body> statements(std::initializer_list<std::string_view> ends) {
    if (++nesting_ > kMaxTreeDepth) return refuse(cat("nesting deeper than ", kMaxTreeDepth));
    Body body;
    while (peek().kind != TemplateToken::Kind::end) {
      const TemplateToken& token = peek();
      if (token.kind == TemplateToken::Kind::block_begin) {
        const std::string name = tag_name();
        if (std::find(ends.begin(), ends.end(), name) != ends.end()) break;
        if (ends.size() == 0 && name.substr(0, 3) == "end") break;
        next();
        LOOM_TRY(tag(body));
        continue;
      }
      Statement statement;
      statement.offset = token.offset;
      if (token.kind == TemplateToken::Kind::data) {
        statement.text = next().text;
      } else {
        next();
        statement.kind = Statement::Kind::output;
        LOOM_ASSIGN(ExprPtr value, tuple());
        statement.values.push_back(std::move(value));
        if (peek().kind != TemplateToken::Kind::variable_end) return fail("expected '}}'");
        next();
      }
      body.push_back(std::move(statement));
    }
    --nesting_;
    return body;
  }

  Status end_of_tag() {
    if (peek().kind != TemplateToken::Kind::block_end) return fail("expected '%}'");
    next();
    return {};
  }

  // Reads "{% name", which statements() stopped at.
  Status closing(std::string_view name) {
    if (peek().kind == TemplateToken::Kind::end) return fail(cat("expected '{% ", name, " %}'"));
    next();
    if (!accept_name(name)) return fail(cat("expected '{% ", name, " %}'"));
    return {};
  }

  Status tag(Body& body) {
    Statement statement;
    statement.offset = peek().offset;
    if (peek().kind != TemplateToken::Kind::name) return fail("expected the name of a tag");
    if (accept_name("generation")) {
      LOOM_TRY(end_of_tag());
      LOOM_ASSIGN(Body inner, statements({"endgeneration"}));
      LOOM_TRY(closing("endgeneration"));
      LOOM_TRY(end_of_tag());
      for (Statement& part : inner) body.push_back(std::move(part));
      return {};
    }
    if (accept_name("if")) {
      LOOM_TRY(branch(statement));
    } else if (accept_name("for")) {
      LOOM_TRY(loop(statement));
    } else if (accept_name("set")) {
      LOOM_TRY(set(statement));
    } else if (accept_name("macro")) {
      LOOM_TRY(macro(statement));
    } else if (accept_name("call")) {
      LOOM_TRY(call_block(statement));
    } else if (accept_name("filter")) {
      LOOM_TRY(filter_block(statement));
    } else if (accept_name("with")) {
      LOOM_TRY(with(statement));
    } else if (is_name("break") || is_name("continue")) {
      if (loops_ == 0) return fail(cat("'", peek().text, "' outside of a loop"));
      statement.kind = is_name("break") ? Statement::Kind::stop : Statement::Kind::skip;
      next();
      LOOM_TRY(end_of_tag());
    } else if (is_name("elif") || is_name("else") || peek().text.substr(0, 3) == "end") {
      return fail(cat("unexpected '", peek().text, "'"));
    } else {
      return refuse(cat("the tag '", printable(peek().text), "'"));
    }
    body.push_back(std::move(statement));
    return {};
  }

  Status branch(Statement& statement) {
    statement.kind = Statement::Kind::branch;
    for (bool more = true; more;) {
      LOOM_ASSIGN(ExprPtr condition, tuple(false));
      LOOM_TRY(end_of_tag());
      LOOM_ASSIGN(Body body, statements({"elif", "else", "endif"}));
      statement.values.push_back(std::move(condition));
      statement.bodies.push_back(std::move(body));
      if (peek().kind == TemplateToken::Kind::end) return fail("expected '{% endif %}'");
      next();
      more = accept_name("elif");
    }
    if (accept_name("else")) {
      LOOM_TRY(end_of_tag());
      LOOM_ASSIGN(Body body, statements({"endif"}));
      statement.values.push_back(nullptr);
      statement.bodies.push_back(std::move(body));
      LOOM_TRY(closing("endif"));
    } else if (!accept_name("endif")) {
      return fail("expected '{% endif %}'");
    }
    return end_of_tag();
  }

  Status loop(Statement& statement) {
    statement.kind = Statement::Kind::loop;
    LOOM_ASSIGN(statement.target, target(false));
    if (!accept_name("in")) return fail("expected 'in'");
    LOOM_ASSIGN(ExprPtr iterable, tuple(false));
    ExprPtr filter;
    if (accept_name("if")) {
      LOOM_ASSIGN(filter, expression());
    }
    statement.recursive = accept_name("recursive");
    LOOM_TRY(end_of_tag());
    statement.values.push_back(std::move(iterable));
    statement.values.push_back(std::move(filter));
    ++loops_;
    LOOM_ASSIGN(Body body, statements({"else", "endfor"}));
    --loops_;
    statement.bodies.push_back(std::move(body));
    Body otherwise;
    if (peek().kind == TemplateToken::Kind::block_begin && tag_name() == "else") {
      LOOM_TRY(closing("else"));
      LOOM_TRY(end_of_tag());
      LOOM_ASSIGN(otherwise, statements({"endfor"}));
    }
    statement.bodies.push_back(std::move(otherwise));
    LOOM_TRY(closing("endfor"));
    return end_of_tag();
  }

  // Parses the end of the tag, its body, and {% end %}.
  Status body_until(Statement& statement, std::string_view end) {
    LOOM_TRY(end_of_tag());
    LOOM_ASSIGN(Body body, statements({end}));
    statement.bodies.push_back(std::move(body));
    LOOM_TRY(closing(end));
    return end_of_tag();
  }

  Status set(Statement& statement) {
    LOOM_ASSIGN(statement.target, target(true));
    if (accept_symbol("=")) {
      statement.kind = Statement::Kind::set;
      LOOM_ASSIGN(ExprPtr value, tuple());
      statement.values.push_back(std::move(value));
      return end_of_tag();
    }
    statement.kind = Statement::Kind::set_block;
    LOOM_ASSIGN(ExprPtr chain, filters(nullptr));
    statement.values.push_back(std::move(chain));
    return body_until(statement, "endset");
  }

  // "(a, b=1)": the names to `parameters`, the defaults or null to `values`.
  Status signature(Statement& statement) {
    LOOM_TRY(expect_symbol("("));
    const size_t before = statement.values.size();
    while (!accept_symbol(")")) {
      if (statement.values.size() > before) LOOM_TRY(expect_symbol(","));
      if (accept_symbol(")")) break;
      LOOM_ASSIGN(std::string name, expect_any_name());
      ExprPtr value;
      if (accept_symbol("=")) {
        LOOM_ASSIGN(value, expression());
      } else if (statement.values.size() > before && statement.values.back()) {
        return fail("a parameter without a default after one that has it");
      }
      statement.parameters.push_back(std::move(name));
      statement.values.push_back(std::move(value));
    }
    return {};
  }

  Status macro(Statement& statement) {
    statement.kind = Statement::Kind::macro;
    LOOM_ASSIGN(statement.text, expect_any_name());
    LOOM_TRY(signature(statement));
    return macro_body(statement, "endmacro");
  }

  // Whether the body uses excess arguments, which determines whether calls may pass them.
  Status macro_body(Statement& statement, std::string_view end) {
    const size_t begin = at_;
    LOOM_TRY(body_until(statement, end));
    for (size_t i = begin; i < at_; ++i) {
      const bool named = tokens_[i].kind == TemplateToken::Kind::name;
      if (named && tokens_[i].text == "varargs") statement.takes_more = true;
      if (named && tokens_[i].text == "kwargs") statement.takes_named = true;
      if (named && tokens_[i].text == "caller") statement.takes_caller = true;
    }
    return {};
  }

  Status call_block(Statement& statement) {
    statement.kind = Statement::Kind::call_block;
    statement.text = "caller";
    statement.values.push_back(nullptr);
    if (is_symbol("(")) LOOM_TRY(signature(statement));
    LOOM_ASSIGN(statement.values[0], expression());
    if (statement.values[0]->kind != Expr::Kind::call) return fail("expected a call");
    return macro_body(statement, "endcall");
  }

  Status filter_block(Statement& statement) {
    statement.kind = Statement::Kind::filter_block;
    LOOM_ASSIGN(ExprPtr first, one_filter(nullptr));
    LOOM_ASSIGN(ExprPtr chain, filters(std::move(first)));
    statement.values.push_back(std::move(chain));
    return body_until(statement, "endfilter");
  }

  Status with(Statement& statement) {
    statement.kind = Statement::Kind::with;
    while (peek().kind != TemplateToken::Kind::block_end) {
      if (!statement.values.empty()) LOOM_TRY(expect_symbol(","));
      LOOM_ASSIGN(Target name, one_target(false));
      LOOM_TRY(expect_symbol("="));
      LOOM_ASSIGN(ExprPtr value, expression());
      statement.target.parts.push_back(std::move(name));
      statement.values.push_back(std::move(value));
    }
    return body_until(statement, "endwith");
  }

  int nesting_ = 0;
  int loops_ = 0;
};

// Line ends become "\n" and one at the end is dropped, as in Jinja.
std::string normalize_lines(std::string_view source) {
  std::string out;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else if (i + 1 >= source.size() || source[i + 1] != '\n') {
      out += '\n';
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

}  // namespace

Result<std::vector<Statement>> parse_template(std::string_view source, const std::string& where) {
  if (!text::is_valid_utf8(source)) return bad_file("the template is not UTF-8", where);
  const std::string text = normalize_lines(source);
  LOOM_ASSIGN(const std::vector<TemplateToken> tokens, tokenize(text, where));
  return StatementParser(tokens, where).run();
}

}  // namespace loom::core::jinja
