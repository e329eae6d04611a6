// Variants: the possible tile shapes (tiles.hpp) of a product. The Tuner finds the fastest shape
// for each class of products by a short search on the device, and remembers it. All of them give
// the same bits.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/webgpu/kernels/products/tiles.hpp"

namespace loom::core::webgpu {

// Raised when a shape or a kernel changes such that earlier choices are invalid.
constexpr int64_t kVariantsVersion = 1;

// Every variant, in the order in which a search tries them.
std::span<const TileShape> tile_variants();
// "16x16 of 8x8, k 16, ahead 1, band 8": invocations of sums each.
std::string name_of(const TileShape& shape);
// May be null: no variant has that name.
const TileShape* find_variant(std::string_view name);
bool fits(const TileShape& shape, const AdapterReport& adapter);

// The representative product of a class: sides are rounded to powers of two and capped. Nothing for
// a product that is too small for the choice to matter.
std::optional<Product> class_of(const Product& product);
std::string name_of(const Product& product);

// Seconds of one run with a shape; an error if the device refuses it.
using Run = std::function<Result<double>(const TileShape&)>;
// Seconds since an arbitrary start.
using Clock = std::function<double()>;
// The candidate with the best time. Each has one warm-up run and three timed runs. A candidate
// whose first run takes twice as long as the best so far is dropped. The search ends early, after
// the current candidate, if the runs took kSearchRuns or the whole search took kSearchTime. Nothing
// if no candidate ran.
constexpr double kSearchRuns = 0.05, kSearchTime = 1.0;
std::optional<TileShape> search(std::span<const TileShape> candidates, const Run& run,
                                const Clock& clock);

class Tuner : public Shapes {
 public:
  // Prepares the runs of a product on the device.
  using Prepare = std::function<Result<Run>(const Product&)>;
  Tuner(const AdapterReport& adapter, Tuning tuning, Prepare prepare, Clock clock);

  TileShape shape_for(const Product& product, const TileShape& rule) override;

  std::vector<Choice> choices() const;
  // Sets choices as if searches had found them. Unknown names are skipped.
  void choose(std::span<const Choice> choices);
  // Called after a search has found a choice.
  void on_choice(std::function<void()> call) { on_choice_ = std::move(call); }
  // Forces this shape for all products from now on; nothing restores the choices.
  void force(std::optional<TileShape> shape) { forced_ = shape; }
  // The shape of the last product; nothing if there was none.
  const std::optional<TileShape>& last() const { return last_; }

 private:
  TileShape chosen(const Product& product, const TileShape& rule);
  std::optional<TileShape> searched(const Product& product);

  const AdapterReport* adapter_;
  Tuning tuning_;
  Prepare prepare_;
  Clock clock_;
  std::map<std::string, std::optional<TileShape>, std::less<>> chosen_;  // nothing: the rule
  std::optional<TileShape> forced_;
  std::function<void()> on_choice_;
  std::optional<TileShape> last_;
};

}  // namespace loom::core::webgpu
