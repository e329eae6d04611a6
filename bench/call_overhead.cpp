// The cost of a call: the same network run through C++ and through C, in nanoseconds per call, the
// minimum of many rounds. bench/call_overhead.py adds Python, and prints the ratios.
//   call_overhead WIDTH [ROUNDS]     a Dense of 1 x WIDTH x WIDTH on one thread
// WIDTH 1 costs almost nothing.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "loom.h"
#include "loom/loom.hpp"

namespace {

using Clock = std::chrono::steady_clock;

// Nanoseconds per call of f, the minimum of `rounds`.
template <class F>
double least(int rounds, int calls, F&& f) {
  double best = 1e30;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) f();
    const std::chrono::duration<double, std::nano> took = Clock::now() - start;
    best = std::min(best, took.count() / calls);
  }
  return best;
}

void must(loom_status status) {
  if (status == LOOM_OK) return;
  std::fprintf(stderr, "%s\n", loom_last_error());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t width = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 300;
  const int calls = width > 64 ? 20 : 200;
  const loom::Engine engine = loom::Engine::create({.threads = 1}).or_exit();
  const loom::Network net = loom::Network::sequential({loom::Dense{.in = width, .out = width}},
                                                      {.input = {width}, .engine = engine})
                                .or_exit();
  loom::Session session = net.session().or_exit();
  std::vector<float> x(static_cast<size_t>(width), 0.5F), y(static_cast<size_t>(width));
  const int64_t shape[] = {1, width};
  const double cpp = least(rounds, calls, [&] {
    const loom::Tensor out = session.run(loom::Tensor::view(x.data(), {1, width})).or_exit();
    y[0] += static_cast<float>(out.rank());
  });
  const double cpp_into = least(rounds, calls, [&] {
    session.run_into(loom::Tensor::view(x.data(), {1, width}), y).or_exit();
  });

  const std::string json = net.json();
  loom_engine* c_engine = nullptr;
  loom_network* c_net = nullptr;
  loom_session* c_session = nullptr;
  loom_engine_options how = LOOM_ENGINE_OPTIONS_INIT;
  how.threads = 1;
  must(loom_engine_create(&how, &c_engine));
  must(loom_network_from_json(c_engine, json.c_str(), nullptr, &c_net));
  must(loom_network_session(c_net, nullptr, &c_session));
  const double c_run = least(rounds, calls, [&] {
    const loom_tensor in = LOOM_TENSOR(LOOM_FLOAT32, x.data(), 2, shape);
    loom_array* out = nullptr;
    must(loom_session_run(c_session, &in, &out));
    loom_array_free(out);
  });
  const double c_into = least(rounds, calls, [&] {
    const loom_tensor in = LOOM_TENSOR(LOOM_FLOAT32, x.data(), 2, shape);
    const loom_tensor out = LOOM_TENSOR(LOOM_FLOAT32, y.data(), 2, shape);
    must(loom_session_run_into(c_session, &in, &out));
  });
  loom_session_free(c_session);
  loom_network_free(c_net);
  loom_engine_free(c_engine);
  std::printf("{\"cpp\": %.1f, \"cpp_into\": %.1f, \"c\": %.1f, \"c_into\": %.1f}\n", cpp, cpp_into,
              c_run, c_into);
}
