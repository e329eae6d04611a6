// Networks as importers make them, as models that were opened. Private to the room; of builds that
// read ONNX files.
#pragma once

#include <string>

#include "convert/convert.hpp"
#include "formats/onnx/import.hpp"

namespace loom::core {

// What folds constants that the importer does not fold itself; none in builds without the
// evaluator.
OnnxFolder folder_of_constants();
// Its normalization is kept as that of the file. Metadata is left to the caller.
OpenedModel opened_network(std::string format, const FileRef& path, ImportedNetwork imported);

}  // namespace loom::core
