// The verbs that measure and prove the engine: bench, verify, doctor. They use internal headers;
// the other verbs use only the public interface.
#pragma once

#include "../shared/verbs.hpp"

namespace loom::core::webgpu {
class Backend;
}

namespace loom::core::cli {

// The rooms have their own commands and options.
using loom::cli::Command;
using loom::cli::Option;
using namespace loom::cli;

Verb add_bench(Command app);
Verb add_bench_layers(Command app);   // after add_bench
Verb add_bench_open(Command app);     // after add_bench
Verb add_bench_neat(Command app);     // after add_bench
Verb add_bench_adapt(Command app);    // after add_bench
Verb add_bench_arc(Command app);      // after add_bench
Verb add_bench_gpu(Command app);      // after add_bench
Verb add_bench_load(Command app);     // after add_bench
Verb add_bench_machine(Command app);  // after add_bench
Verb add_verify(Command app);
Verb add_verify_training(Command app);  // after add_verify
Verb add_verify_files(Command app);     // after add_verify
Verb add_doctor(Command app);

// The mean of the two middle values if their number is even. Needs at least one value.
double median(std::vector<double> values);

// Warm-up time before a measurement: an idle GPU has a fifth of its loaded clock rate, and reaches
// it within a second. 0 without a GPU, and for drivers that compute on the CPU.
double warm_up_seconds(const webgpu::Backend* gpu);

// For --kind with an unknown layer kind; lists the kinds.
Error unknown_kind(const std::string& word);

}  // namespace loom::core::cli
