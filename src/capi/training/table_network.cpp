// Networks for tables.
#include "capi/json_text.hpp"
#include "capi/reading.hpp"
#include "capi/support.hpp"

namespace {

using namespace loom;
using namespace loom::capi;

std::string json_of(const TableNetwork& made) {
  JsonText json;
  json.open('{');
  json.add("description", made.description);
  json.open('[', "notes");
  for (const std::string& note : made.notes) json.add("", note);
  json.close(']');
  json.add("samples", made.samples);
  json.close('}');
  return json.text();
}

// Gives the network for `table`, a path or bytes.
template <class Source>
Status give_network(loom_engine* engine, const Source& table, const loom_dataset_options* reading,
                    const loom_load_options* options, loom_network** out, char** json) {
  LOOM_ASSIGN(const DatasetOptions read, dataset_options(reading));
  LOOM_ASSIGN(const LoadOptions how, load_options(engine, options));
  LOOM_ASSIGN(TableNetwork made, network_for_table(table, read, how));
  if (json != nullptr) LOOM_TRY(give_text(json, json_of(made)));
  return give(out, std::move(made.network));
}

}  // namespace

extern "C" {

loom_status loom_network_for_table(loom_engine* engine, const char* path,
                                   const loom_dataset_options* reading,
                                   const loom_load_options* options, loom_network** out,
                                   char** json) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string file, text_of(path, "path"));
    return give_network(engine, file, reading, options, out, json);
  });
}

loom_status loom_network_for_table_memory(loom_engine* engine, const void* bytes, int64_t size,
                                          const char* name, const loom_dataset_options* reading,
                                          const loom_load_options* options, loom_network** out,
                                          char** json) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const FileBytes file, file_of(bytes, size, name, false));
    return give_network(engine, file, reading, options, out, json);
  });
}

}  // extern "C"
