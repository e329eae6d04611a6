// The verbs that measure and prove the engine: bench, verify, doctor. They look into its rooms; the
// other verbs do what any program can do with the public interface.
#pragma once

#include "../verbs.hpp"

namespace loom::core::webgpu {
class Backend;
}

namespace loom::core::cli {

// The rooms have commands and options of their own.
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

// The mean of the two in the middle where their number is even. At least one value.
double median(std::vector<double> values);

// How long to work before a measurement: the clocks of a GPU that had nothing to do are a fifth of
// what they are under load, and rise within a second. 0 without a GPU, and for drivers that compute
// on the CPU.
double warm_up_seconds(const webgpu::Backend* gpu);

// For --kind with a word that is no layer kind; lists those there are.
Error unknown_kind(const std::string& word);

}  // namespace loom::core::cli
