// Networks as importers make them, as models that were opened. Private to the room; of builds that
// read ONNX files.
#pragma once

#include <string>

#include "convert/convert.hpp"
#include "onnx/import/import.hpp"

namespace loom::core {

// for_training: what unset means of the format. Constants that the importer does not fold itself
// are folded by the evaluator, in builds that have it.
OnnxImportOptions import_options(const OpenOptions& options, bool for_training);
// Its normalization is stored as that of the file. Metadata is left to the caller.
OpenedModel opened_network(std::string format, const FileRef& path, ImportedNetwork imported);

}  // namespace loom::core
