// Savers with distinct generations, for tests that interrupt saving and check the result.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>

#include "backend/cpu/cpu.hpp"
#include "base/threads/thread_pool.hpp"
#include "bridge/network_json.hpp"
#include "io/weights/entity.hpp"
#include "io/weights/safetensors_write.hpp"
#include "train_io/training_files.hpp"

namespace loom::core::test {

struct Saver {
  const char* name;
  bool keeps;  // PATH.previous holds the generation before
  // Generations 0, 1 and 2.
  std::function<Status(const std::string& path, int generation)> save;
  // Opens the file and reads all of it.
  std::function<Status(const std::string& path)> verify;
};

inline std::ostream& operator<<(std::ostream& out, const Saver& saver) {
  return out << saver.name;
}

inline std::string content(size_t size, int generation) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i)
    bytes += static_cast<char>(i * 31 + static_cast<size_t>(generation) * 7);
  return bytes;
}

inline Status save_entity(const std::string& path, int generation) {
  JsonValue header = JsonValue::object();
  header.add("generation", JsonValue::integer(generation));
  return write_entity(path, header,
                      {text_output("text/a", content(5000, generation)),
                       text_output("text/b", content(130, generation))});
}

inline Status verify_entity(const std::string& path) {
  LOOM_ASSIGN(const std::unique_ptr<Entity> file, Entity::open(path));
  for (size_t i = 0; i < file->blobs().size(); ++i) LOOM_TRY(file->verify(i));
  return {};
}

inline Status save_safetensors(const std::string& path, int generation) {
  const std::string bytes = content(3000, generation);
  return write_safetensors(path, {{"t", SafeDType::u8, {3000}, std::as_bytes(std::span(bytes))}},
                           {{"generation", std::to_string(generation)}});
}

inline Status verify_safetensors(const std::string& path) {
  LOOM_ASSIGN(const SafeTensors file, SafeTensors::open(path));
  return {};
}

inline Status save_text(const std::string& path, int generation) {
  const std::string bytes = content(1000, generation);
  return write_file_atomic(path, std::as_bytes(std::span(bytes)));
}

inline Status verify_text(const std::string& path) {
  LOOM_ASSIGN(const std::string text, read_file(path));
  return text.size() == 1000 ? Status() : Status(bad_file("not whole", path));
}

// Runs of training after 0, 1 and 2 epochs.
struct Runs {
  TrainedModel model{*build_mlp({2, 2, {5}, "tanh"}), DType::f32, {}, {}, {}};
  Dataset data;
  TrainerSpec options;
  ThreadPool pool{1};
  std::vector<std::unique_ptr<Trainer>> trainers;
  RecordedRun run;
};

inline std::unique_ptr<Trainer> new_trainer(Runs& r) {
  Result<Trainer> made =
      Trainer::create(r.model.network.grid, r.data, r.options, cpu_ops(best_isa()), r.pool);
  EXPECT_TRUE(made.ok()) << made.error().str();
  return std::make_unique<Trainer>(std::move(*made));
}

inline std::shared_ptr<Runs> make_runs() {
  auto r = std::make_shared<Runs>();
  Dataset& d = r->data;
  d.samples = 8;
  d.sample = Shape{2};
  d.outputs = 2;
  for (int i = 0; i < 16; ++i) {
    d.inputs.push_back(0.1f * static_cast<float>(i % 5));
    d.targets.push_back(0.1f * static_cast<float>(i % 3));
  }
  for (int generation = 0; generation < 3; ++generation) {
    r->trainers.push_back(new_trainer(*r));
    for (int i = 0; i < generation; ++i) EXPECT_TRUE(r->trainers.back()->epoch(d, {}).ok());
  }
  r->run.options = run_options(r->options, d, {});
  return r;
}

inline Saver checkpoint_saver() {
  const auto runs = make_runs();
  const auto save = [runs](const std::string& path, int generation) {
    return save_checkpoint(path, runs->model, *runs->trainers[static_cast<size_t>(generation)],
                           runs->run);
  };
  const auto verify = [runs](const std::string& path) -> Status {
    const std::unique_ptr<Trainer> trainer = new_trainer(*runs);
    RecordedRun run = runs->run;
    LOOM_ASSIGN(const std::string from, load_checkpoint(path, runs->model, *trainer, run));
    return from == path ? Status() : Status(bad_file("is not the file that was loaded", path));
  };
  return {"save_checkpoint", true, save, verify};
}

inline std::vector<Saver> savers() {
  return {{"write_entity", false, save_entity, verify_entity},
          {"write_safetensors", false, save_safetensors, verify_safetensors},
          {"write_file_atomic", false, save_text, verify_text},
          checkpoint_saver()};
}

}  // namespace loom::core::test
