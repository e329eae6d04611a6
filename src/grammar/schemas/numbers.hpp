// JSON numbers between two bounds, as expressions over their digits.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "grammar/builder.hpp"
#include "io/json/json.hpp"

namespace loom::core::grammar {

// A bound in decimal: sign, digits before the point without leading zeros ("0" if there are none),
// digits after it without trailing zeros.
struct Bound {
  bool negative = false;
  std::string whole = "0", part;
  bool open = false;  // the bound itself is excluded
  bool is_zero() const { return whole == "0" && part.empty(); }
};

// Errors: invalid_argument (not a number), unsupported (more than 60 digits).
Result<Bound> bound_of(const JsonValue& value, bool open);
int compare(const Bound& a, const Bound& b);  // by value alone

struct NumberRange {
  std::optional<Bound> low, high;
};

// Integers without fraction and exponent, of up to 18 digits if there is no bound.
ExprId add_integers(Builder& builder, const NumberRange& range);
// Numbers with a fraction of up to 15 digits more than the bounds have. Without any bound also with
// an exponent of two digits.
ExprId add_reals(Builder& builder, const NumberRange& range);

}  // namespace loom::core::grammar
