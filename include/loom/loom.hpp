// Loom: a neural engine that other programs embed. This header brings all of the C++ interface.
// Standard library only; nothing here throws, prints, or reads the environment. Everything that can
// fail returns a Result; an Error prints as one line: what went wrong, where, what to do.
#pragma once

#include "loom/engine.hpp"          // IWYU pragma: export
#include "loom/generation.hpp"      // IWYU pragma: export
#include "loom/language_model.hpp"  // IWYU pragma: export
#include "loom/result.hpp"          // IWYU pragma: export
