// Variants: the shapes of tiles (tiles.hpp) that a product may be made with, and the Tuner, which
// finds the fastest for each class of products by a short search on the device, and remembers it.
// All of them give the same bits.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/webgpu/kernels/tiles.hpp"

namespace loom::core::webgpu {

// Raised when a shape or a kernel changes so that earlier choices mean nothing.
constexpr int64_t kVariantsVersion = 1;

// Every variant, in the order in which a search tries them.
std::span<const TileShape> tile_variants();
// "16x16 of 8x8, k 16, ahead 1, band 8": invocations of sums each.
std::string name_of(const TileShape& shape);
// Null: there is none of that name.
const TileShape* find_variant(std::string_view name);
bool fits(const TileShape& shape, const AdapterReport& adapter);

// The product that stands for all of a class: sides rounded to powers of two and no larger than
// need be. Nothing for a product that is too small for the choice to matter.
std::optional<Product> class_of(const Product& product);
std::string name_of(const Product& product);

// Seconds of one run with a shape; an error where the device refuses it.
using Run = std::function<Result<double>(const TileShape&)>;
// Seconds since some time.
using Clock = std::function<double()>;
// The candidate whose best of three runs, after one that is not counted, is the least. One whose
// first run takes twice as long as the best so far is left at that. It ends early, after the
// candidate that is being tried, when the runs together took kSearchRuns or all of it kSearchTime.
// Nothing: none ran.
constexpr double kSearchRuns = 0.05, kSearchTime = 1.0;
std::optional<TileShape> search(std::span<const TileShape> candidates, const Run& run,
                                const Clock& clock);

class Tuner : public Shapes {
 public:
  // What runs a product on the device.
  using Prepare = std::function<Result<Run>(const Product&)>;
  Tuner(const AdapterReport& adapter, Tuning tuning, Prepare prepare, Clock clock);

  TileShape shape_for(const Product& product, const TileShape& rule) override;

  std::vector<Choice> choices() const;
  // As if searches had found them; those with names that nothing has are passed over.
  void choose(std::span<const Choice> choices);
  // Called when a search has found something.
  void on_choice(std::function<void()> call) { on_choice_ = std::move(call); }
  // All products with this shape, from now on; nothing: by choice again.
  void force(std::optional<TileShape> shape) { forced_ = shape; }
  // That a product was made with last; nothing: there was none.
  const std::optional<TileShape>& last() const { return last_; }

 private:
  TileShape chosen(const Product& product, const TileShape& rule);
  std::optional<TileShape> searched(const Product& product);

  const AdapterReport* adapter_;
  Tuning tuning_;
  Prepare prepare_;
  Clock clock_;
  std::map<std::string, std::optional<TileShape>, std::less<>> chosen_;  // nothing: the rule's
  std::optional<TileShape> forced_;
  std::function<void()> on_choice_;
  std::optional<TileShape> last_;
};

}  // namespace loom::core::webgpu
