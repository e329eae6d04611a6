// Samples that are files of their own: a folder that has a folder of pictures for each class, a
// folder of pictures without classes, or one picture. Private to the room; load_dataset() comes
// here.
#pragma once

#include "train_io/dataset_files.hpp"
#include "train_io/wanted.hpp"

namespace loom::core {

// A folder, or a picture by its first bytes. Errors: those of opening the file.
Result<bool> are_media(const FileRef& path);

// Classes are the folders in the order of their names (options.names, where training knows them),
// samples the files below each, folders in it included, in the order of their names; names that end
// neither as pictures do are left out, with a note. A network with one output takes two classes as
// targets 0 and 1. Errors: bad_file, naming the file; not_found (no picture); invalid_argument
// (the network takes no picture, or has fewer classes); cancelled; out_of_memory.
Result<LoadedDataset> load_media(const FileRef& path, const Wanted& wanted,
                                 const DatasetOptions& options);

}  // namespace loom::core
