// The check of weights that are NaN or infinite. It runs when a network or a converter reads them,
// and after packing, which may overflow (a value above the largest of the type). Invariant: the
// check changes no value. It costs a pass over cached values; for packed matrices it decodes one
// value per scale.
#pragma once

#include "bridge/weight_source.hpp"

namespace loom::core {

// source.weight(param) with checks: its rows() and packing report a value that is not finite.
// Nothing is checked if source.allow_nonfinite is set. A buffer (a mask) may hold infinities.
// Errors: bad_file, naming the tensor, the element and the file.
Result<SourceWeight> finite_weight(const WeightSource& source, const Param& param);

// Whether `tensor`, a loaded or mapped parameter, holds only finite values. buffer:
// ParamSpec::trained is false. `name` and `where` are for the message.
Status check_finite(const Tensor& tensor, bool buffer, const std::string& name,
                    const std::string& where);

// The error of a finite value at `at` of a tensor with `columns` (0 for a vector) that exceeds
// `dtype`.
Error too_large(std::string_view name, int64_t columns, int64_t at, std::string_view dtype,
                const std::string& where);

}  // namespace loom::core
