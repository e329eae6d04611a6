// Loom: a neural engine that other programs embed. This header brings all of the C++ interface.
// Standard library only; nothing here throws, prints, or reads the environment. Everything that can
// fail returns a Result; an Error prints as one line: what went wrong, where, what to do.
#pragma once

#include "loom/absorb.hpp"          // IWYU pragma: export
#include "loom/architectures.hpp"   // IWYU pragma: export
#include "loom/batch.hpp"           // IWYU pragma: export
#include "loom/beams.hpp"           // IWYU pragma: export
#include "loom/blocks.hpp"          // IWYU pragma: export
#include "loom/chat.hpp"            // IWYU pragma: export
#include "loom/cluster.hpp"         // IWYU pragma: export
#include "loom/convert.hpp"         // IWYU pragma: export
#include "loom/darts.hpp"           // IWYU pragma: export
#include "loom/dataset.hpp"         // IWYU pragma: export
#include "loom/dna.hpp"             // IWYU pragma: export
#include "loom/dtype.hpp"           // IWYU pragma: export
#include "loom/embedding.hpp"       // IWYU pragma: export
#include "loom/engine.hpp"          // IWYU pragma: export
#include "loom/ensemble.hpp"        // IWYU pragma: export
#include "loom/evaluation.hpp"      // IWYU pragma: export
#include "loom/evaluator.hpp"       // IWYU pragma: export
#include "loom/evolve.hpp"          // IWYU pragma: export
#include "loom/files.hpp"           // IWYU pragma: export
#include "loom/generation.hpp"      // IWYU pragma: export
#include "loom/graph.hpp"           // IWYU pragma: export
#include "loom/inspect.hpp"         // IWYU pragma: export
#include "loom/language_model.hpp"  // IWYU pragma: export
#include "loom/layers.hpp"          // IWYU pragma: export
#include "loom/lookup.hpp"          // IWYU pragma: export
#include "loom/memory_history.hpp"  // IWYU pragma: export
#include "loom/merge.hpp"           // IWYU pragma: export
#include "loom/mesh.hpp"            // IWYU pragma: export
#include "loom/network.hpp"         // IWYU pragma: export
#include "loom/proof.hpp"           // IWYU pragma: export
#include "loom/result.hpp"          // IWYU pragma: export
#include "loom/session.hpp"         // IWYU pragma: export
#include "loom/state_dict.hpp"      // IWYU pragma: export
#include "loom/table.hpp"           // IWYU pragma: export
#include "loom/telemetry.hpp"       // IWYU pragma: export
#include "loom/templates.hpp"       // IWYU pragma: export
#include "loom/tensor.hpp"          // IWYU pragma: export
#include "loom/text.hpp"            // IWYU pragma: export
#include "loom/tokenizer.hpp"       // IWYU pragma: export
#include "loom/trainer.hpp"         // IWYU pragma: export
#include "loom/version.hpp"         // IWYU pragma: export
