// Any bytes as calls of the C interface: each call takes handles from a table of live, freed, null,
// foreign and made-up ones, and tensors of any shape and type. Every call ends with a code and no
// harm.
#include <array>
#include <cstring>

#include "check.hpp"
#include "loom.h"

namespace {

constexpr size_t kHandles = 12;
alignas(64) std::array<double, 512> memory;  // the memory of all tensors

// Bytes of the input, then zeros.
struct Bytes {
  const uint8_t* at;
  const uint8_t* end;
  uint8_t next() { return at < end ? *at++ : uint8_t{0}; }
  bool done() const { return at >= end; }
};

struct Shaped {
  std::array<int64_t, 18> shape{}, strides{};
  loom_tensor tensor{};
};

// A tensor within `memory`, or one that has to be refused: too large for any memory, negative, of
// no type.
void read_tensor(Bytes& from, Shaped& to) {
  static constexpr int64_t kExtents[] = {0, 1,  2,         3,         4,
                                         5, -1, INT64_MAX, INT64_MIN, int64_t{1} << 62};
  to.tensor = loom_tensor{};
  to.tensor.dtype = static_cast<loom_dtype>(from.next() % 40) - 1;
  to.tensor.rank = static_cast<int32_t>(from.next() % 20) - 1;
  to.tensor.shape = to.shape.data();
  int64_t count = 1;
  bool none = false;
  for (int i = 0; i < to.tensor.rank && i < 18; ++i) {
    to.shape[static_cast<size_t>(i)] = kExtents[from.next() % std::size(kExtents)];
    none = none || to.shape[static_cast<size_t>(i)] < 0 ||
           __builtin_mul_overflow(count, to.shape[static_cast<size_t>(i)], &count);
  }
  const uint8_t how = from.next();
  if (!none && count > static_cast<int64_t>(memory.size())) to.tensor.rank = 1, to.shape[0] = 4;
  if (how % 8 == 1) to.tensor.shape = nullptr;
  if (how % 8 != 2) to.tensor.data = memory.data();
}

struct Table {
  std::array<void*, kHandles> handles{};
  std::array<int, kHandles> kinds{};  // selects the function that frees it; 0 means none

  template <class T>
  T* get(Bytes& from) {
    return static_cast<T*>(handles[from.next() % kHandles]);
  }
  void put(void* made, int kind, Bytes& from) {
    if (made == nullptr) return;
    const size_t at = from.next() % kHandles;
    release(at);
    handles[at] = made;
    kinds[at] = kind;
  }
  // The value stays, as one that was freed.
  void release(size_t at) {
    void* h = handles[at];
    switch (kinds[at]) {
      case 1: loom_array_free(static_cast<loom_array*>(h)); break;
      case 2: loom_network_free(static_cast<loom_network*>(h)); break;
      case 3: loom_session_free(static_cast<loom_session*>(h)); break;
      case 4: loom_dataset_free(static_cast<loom_dataset*>(h)); break;
      case 5: loom_trainer_free(static_cast<loom_trainer*>(h)); break;
      default: break;
    }
    kinds[at] = 0;
  }
};

loom_engine* engine() {
  static loom_engine* const kEngine = [] {
    loom_engine_options how = LOOM_ENGINE_OPTIONS_INIT;
    how.threads = 1;
    how.isa = "scalar";
    loom_engine* made = nullptr;
    CHECK(loom_engine_create(&how, &made) == LOOM_OK);
    return made;
  }();
  return kEngine;
}

loom_network* network(uint8_t which) {
  static const char* const kJson[] = {
      "{\"loom\": 1, \"grid\": [1,1,1,1], \"input\": [4], \"cells\": ["
      "{\"at\":[0,0,0,0],\"type\":\"Dense\",\"in\":4,\"out\":3}]}",
      "{\"loom\": 1, \"grid\": [1,1,1,1], \"input\": [3, 2], \"cells\": ["
      "{\"at\":[0,0,0,0],\"type\":\"LSTM\",\"in\":2,\"hidden\":2}]}",
      "{\"loom\": 1, \"grid\": [1,1,1,1], \"input\": [3], \"cells\": ["
      "{\"at\":[0,0,0,0],\"type\":\"Embedding\",\"vocab\":5,\"width\":2}]}"};
  loom_network* made = nullptr;
  (void)loom_network_from_json(engine(), kJson[which % std::size(kJson)], nullptr, &made);
  return made;
}

void call_arrays(Table& t, Bytes& in, Shaped& x) {
  loom_array* array = nullptr;
  loom_tensor view{};
  switch (in.next() % 4) {
    case 0: {
      // Zeros of a large shape would be memory, which is another error than the ones sought here.
      const bool small = x.tensor.rank < 1 || x.shape[0] < 6;
      if (small) (void)loom_array_copy(&x.tensor, &array);
      break;
    }
    case 1: (void)loom_array_convert(t.get<loom_array>(in), in.next() % 40, &array); break;
    case 2: (void)loom_array_view(t.get<loom_array>(in), &view); break;
    default: {
      void* managed = nullptr;
      if (loom_array_to_dlpack(t.get<loom_array>(in), &managed) == LOOM_OK)
        CHECK(loom_array_from_dlpack(managed, &array) == LOOM_OK);
    }
  }
  t.put(array, 1, in);
}

void call_networks(Table& t, Bytes& in, Shaped& x, Shaped& y) {
  loom_array* array = nullptr;
  loom_session* session = nullptr;
  loom_session_options how = LOOM_SESSION_OPTIONS_INIT;
  char* text = nullptr;
  switch (in.next() % 8) {
    case 0: (void)loom_network_predict(t.get<loom_network>(in), &x.tensor, &array); break;
    case 1:
      how.max_batch = in.next() % 5 - 1;
      how.stateful = in.next() % 2;
      how.max_steps = in.next() % 6 - 1;
      (void)loom_network_session(t.get<loom_network>(in), &how, &session);
      break;
    case 2: (void)loom_session_run(t.get<loom_session>(in), &x.tensor, &array); break;
    case 3: (void)loom_session_run_into(t.get<loom_session>(in), &x.tensor, &y.tensor); break;
    case 4: (void)loom_network_probabilities(t.get<loom_network>(in), &x.tensor, &array); break;
    case 5:
      (void)loom_network_set_parameter(t.get<loom_network>(in), "(0, 0, 0, 0)/weight", &x.tensor);
      break;
    case 6: (void)loom_session_reset(t.get<loom_session>(in)); break;
    default:
      if (loom_network_json(t.get<loom_network>(in), &text) == LOOM_OK) loom_free(text);
  }
  t.put(array, 1, in);
  t.put(session, 3, in);
}

void call_training(Table& t, Bytes& in, Shaped& x, Shaped& y) {
  loom_dataset* set = nullptr;
  loom_trainer* trainer = nullptr;
  loom_trainer_options how = LOOM_TRAINER_OPTIONS_INIT;
  loom_step_report step = LOOM_STEP_REPORT_INIT;
  loom_evaluation found = LOOM_EVALUATION_INIT;
  loom_array* confusion = nullptr;
  switch (in.next() % 4) {
    case 0: (void)loom_dataset_from_arrays(&x.tensor, &y.tensor, &set); break;
    case 1:
      how.optimizer = in.next() % 20 - 1;
      how.loss = in.next() % 16 - 1;
      how.batch = in.next() % 6 - 1;
      (void)loom_trainer_create(t.get<loom_network>(in), &how, &trainer);
      break;
    case 2:
      (void)loom_trainer_step(t.get<loom_trainer>(in), &x.tensor, &y.tensor, nullptr, &step);
      break;
    default:
      (void)loom_trainer_evaluate(t.get<loom_trainer>(in), t.get<loom_dataset>(in), &found,
                                  &confusion);
  }
  t.put(set, 4, in);
  t.put(trainer, 5, in);
  loom_array_free(confusion);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes in{data, data + size};
  Table t;
  static Shaped x, y;
  memory.fill(0.25);
  t.put(network(in.next()), 2, in);
  t.handles[kHandles - 1] = &t;  // an address, and no handle
  for (int calls = 0; calls < 24 && !in.done(); ++calls) {
    const uint8_t what = in.next();
    read_tensor(in, x);
    read_tensor(in, y);
    switch (what % 8) {
      case 0: t.put(network(in.next()), 2, in); break;
      case 1: t.release(in.next() % (kHandles - 1)); break;
      case 2: call_arrays(t, in, x); break;
      case 3:
      case 4:
      case 5: call_networks(t, in, x, y); break;
      default: call_training(t, in, x, y);
    }
    CHECK(loom_last_error_code() != LOOM_INTERNAL || std::strstr(loom_last_error(), "finite"));
  }
  for (size_t i = 0; i < kHandles; ++i) t.release(i);
  return 0;
}
