// Samples that are files of their own, pictures or sounds: a folder that has a folder for each
// class, a folder without classes, or one file. Private to the room; load_dataset() comes here.
#pragma once

#include "train_io/dataset_files.hpp"
#include "train_io/wanted.hpp"

namespace loom::core {

// A folder, or a picture or WAV file by its first bytes. Errors: those of opening the file.
Result<bool> are_media(const FileRef& path);

// Classes are the folders in the order of their names (options.names, where training knows them),
// samples the files below each, folders in it included, in the order of their names; names that end
// neither as pictures nor as sounds do are left out, with a note. A network with one output takes
// two classes as targets 0 and 1. Errors: bad_file, naming the file; not_found (no such file);
// invalid_argument (the network takes neither, or has fewer classes); cancelled; out_of_memory.
Result<LoadedDataset> load_media(const FileRef& path, const InputSchema& schema,
                                 const DatasetOptions& options);

}  // namespace loom::core
