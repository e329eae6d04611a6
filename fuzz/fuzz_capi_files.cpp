// Any bytes as a file in memory, through the C interface. The first byte selects the kind and the
// call, the rest is the file. It is refused in one line with a code, or becomes an object that can
// be inspected, run and written again.
#include <cstring>
#include <string>
#include <vector>

#include "check.hpp"
#include "loom.h"

namespace {

loom_engine* engine() {
  static loom_engine* const kEngine = [] {
    loom_engine_options how = LOOM_ENGINE_OPTIONS_INIT;
    how.threads = 1;
    how.isa = "scalar";
    how.memory_limit = 32 << 20;
    loom_engine* made = nullptr;
    CHECK(loom_engine_create(&how, &made) == LOOM_OK);
    return made;
  }();
  return kEngine;
}

// Checks the result: on failure the error is one line and the output null. The output is a
// reference, because an earlier argument writes it, and the order of evaluation is not fixed.
template <class T>
bool worked(loom_status status, T* const& out) {
  CHECK((status == LOOM_OK) == (out != nullptr));
  if (status == LOOM_OK) return true;
  CHECK(status != LOOM_INTERNAL && loom_last_error_code() == status);
  CHECK(loom_last_error()[0] != '\0' && std::strchr(loom_last_error(), '\n') == nullptr);
  return false;
}

void use_network(loom_network* net) {
  loom_network_info info = LOOM_NETWORK_INFO_INIT;
  CHECK(loom_network_get_info(net, &info) == LOOM_OK);
  void* bytes = nullptr;
  int64_t size = 0;
  if (worked(loom_network_save_memory(net, LOOM_FORMAT_ENTITY, nullptr, &bytes, &size), bytes)) {
    loom_network* again = nullptr;
    CHECK(loom_network_load_memory(engine(), bytes, size, nullptr, nullptr, &again) == LOOM_OK);
    loom_network_free(again);
    loom_free(bytes);
  }
  int64_t shape[9] = {1}, count = 1;
  for (int i = 0; i < info.input_rank; ++i) {
    shape[i + 1] = info.input[i];
    if (__builtin_mul_overflow(count, info.input[i], &count) || count > 4096) return;
  }
  const std::vector<int32_t> zeros(static_cast<size_t>(count));
  const loom_tensor x = LOOM_TENSOR(info.takes_ids != 0 ? LOOM_INT32 : LOOM_FLOAT32, zeros.data(),
                                    info.input_rank + 1, shape);
  loom_array* y = nullptr;
  if (info.bytes < (1 << 20) && worked(loom_network_predict(net, &x, &y), y)) loom_array_free(y);
}

void use_model(loom_model* model) {
  loom_model_info info = LOOM_MODEL_INFO_INIT;
  CHECK(loom_model_get_info(model, &info) == LOOM_OK);
  loom_model_session_options how = LOOM_MODEL_SESSION_OPTIONS_INIT;
  how.context = 8;
  loom_model_session* session = nullptr;
  if (info.bytes > (1 << 20) || !worked(loom_model_start(model, &how, &session), session)) return;
  loom_generate_options write = LOOM_GENERATE_OPTIONS_INIT;
  write.max_tokens = 2;
  const int32_t first[] = {0};
  loom_generation* made = nullptr;
  if (worked(loom_model_session_generate_ids(session, first, 1, &write, &made), made))
    loom_generation_free(made);
  loom_model_session_free(session);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const char* const kNames[] = {nullptr, "x.onnx",        "x.csv",
                                       "x.npz", "x.safetensors", "x.idx"};
  if (size == 0) return 0;
  const char* name = kNames[data[0] / 4 % std::size(kNames)];
  const auto count = static_cast<int64_t>(size - 1);
  loom_network* net = nullptr;
  loom_model* model = nullptr;
  loom_tokenizer* tokenizer = nullptr;
  loom_dataset* set = nullptr;
  switch (data[0] % 4) {
    case 0:
      if (worked(loom_network_load_memory(engine(), data + 1, count, name, nullptr, &net), net))
        use_network(net);
      break;
    case 1:
      if (worked(loom_model_load_memory(engine(), data + 1, count, name, nullptr, &model), model))
        use_model(model);
      break;
    case 2:
      (void)worked(loom_tokenizer_load_memory(engine(), data + 1, count, name, &tokenizer),
                   tokenizer);
      break;
    default: {
      static const char* const kJson =
          "{\"loom\": 1, \"grid\": [1,1,1,1], \"input\": [2], \"cells\": ["
          "{\"at\":[0,0,0,0],\"type\":\"Dense\",\"in\":2,\"out\":2}]}";
      CHECK(loom_network_from_json(engine(), kJson, nullptr, &net) == LOOM_OK);
      (void)worked(loom_dataset_from_memory(data + 1, count, name, net, nullptr, &set), set);
    }
  }
  loom_network_free(net);
  loom_model_free(model);
  loom_tokenizer_free(tokenizer);
  loom_dataset_free(set);
  return 0;
}
