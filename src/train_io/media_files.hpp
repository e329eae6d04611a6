// Samples that are files of their own, images or sounds: a folder with a folder for each class, a
// folder without classes, or one file. Private to the room; load_dataset() calls it.
#pragma once

#include "train_io/dataset_files.hpp"
#include "train_io/wanted.hpp"

namespace loom::core {

// Whether it is a folder, or an image or WAV file by its first bytes. Errors: those of opening the
// file.
Result<bool> are_media(const FileRef& path);

// Classes are the folders in the order of their names, or options.names if training knows them.
// Samples are the files below each folder, also in nested folders, in the order of their names.
// Files of other endings are left out with a note. A network with one output takes two classes as
// targets 0 and 1. Errors: bad_file, naming the file; not_found (no such file); invalid_argument
// (the network takes neither, or has fewer classes); cancelled; out_of_memory.
Result<LoadedDataset> load_media(const FileRef& path, const InputSchema& schema,
                                 const DatasetOptions& options);

}  // namespace loom::core
