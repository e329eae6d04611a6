// The one check of weights that are NaN or infinite: where a network or a converter reads them, and
// where packing makes them so (a value above the largest of the type). Invariant: the check changes
// no value. Its cost is a pass over values that are in the cache; of packed matrices one value per
// scale is decoded.
#pragma once

#include "bridge/weight_source.hpp"

namespace loom::core {

// source.weight(param), whose rows() and packing report a value that is not finite. Nothing is
// checked if source.allow_nonfinite is set. A buffer (a mask) may hold infinities.
// Errors: bad_file, naming the tensor, the element and the file.
Result<SourceWeight> finite_weight(const WeightSource& source, const Param& param);

// Does `tensor`, a loaded or mapped parameter, hold finite values? buffer: ParamSpec::trained is
// false. `name` and `where` are for the message.
Status check_finite(const Tensor& tensor, bool buffer, const std::string& name,
                    const std::string& where);

// A finite value at `at` of a tensor of `columns` (0: a vector) that `dtype` has no number for.
Error too_large(std::string_view name, int64_t columns, int64_t at, std::string_view dtype,
                const std::string& where);

}  // namespace loom::core
