// Structs of options of the C interface as those of C++, without what points to objects.
#pragma once

#include "loom.h"
#include "loom/adapter_options.hpp"
#include "loom/beam_options.hpp"
#include "loom/convert_options.hpp"
#include "loom/evaluation_options.hpp"
#include "loom/fit_options.hpp"
#include "loom/generation_options.hpp"
#include "loom/mesh_options.hpp"
#include "loom/text_options.hpp"
#include "loom/training_options.hpp"

namespace loom::capi {

// Errors: invalid_argument: a value that an enum has not, a list without a pointer.
Result<TrainerOptions> read_options(const loom_trainer_options& from);
Result<GenerateOptions> read_options(const loom_generate_options& from);
Result<AdapterOptions> read_options(const loom_adapter_options& from);
Result<ConvertOptions> read_options(const loom_convert_options& from);
Result<FitOptions> read_options(const loom_fit_options& from);
Result<PerplexityOptions> read_options(const loom_perplexity_options& from);
Result<MergeOptions> read_options(const loom_merge_options& from);
Result<SpliceOptions> read_options(const loom_splice_options& from);
Result<MeshFitOptions> read_options(const loom_mesh_fit_options& from);
Result<AdaptationOptions> read_options(const loom_adaptation_options& from);
Result<EncodeOptions> read_options(const loom_encode_options& from);
Result<EmbedOptions> read_options(const loom_embed_options& from);
Result<RerankOptions> read_options(const loom_rerank_options& from);
Result<BeamOptions> read_options(const loom_beam_options& from);

}  // namespace loom::capi
