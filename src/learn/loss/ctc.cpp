// Connectionist temporal classification (Graves et al., 2006). learn/loss/ctc_batch.hpp computes
// it on the host.
#include "learn/loss/loss.hpp"

namespace loom::core {
namespace {

constexpr LossOption kCtcOptions[] = {{.key = "blank", .integer = &LossSpec::blank}};

}  // namespace

extern const LossDef kCtcLoss;
const LossDef kCtcLoss = {.form = LossForm::sequence, .options = kCtcOptions};

}  // namespace loom::core
