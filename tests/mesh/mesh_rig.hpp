// Helpers of the mesh tests: random meshes, and a mesh in doubles that stores its whole history. It
// shares no code with the engine: ticks follow the formula S_t[k] = f_k(U_t[k]) over the whole
// history, and the layers are those of outside/evaluator.hpp.
#pragma once

#include <map>
#include <optional>

#include "mesh/mesh.hpp"
#include "mesh/unroll.hpp"
#include "ops/gradients/gradient.hpp"
#include "ops/recording/program.hpp"
#include "outside/rig.hpp"

namespace loom::core::mesh_test {

using outside::Array;
using outside::Evaluator;
using outside::Tape;
using outside::Var;

struct MeshCase {
  GridSpec grid{1, 1, 1, 1};
  MeshOptions options;
  Shape input;  // with the batch axis
  std::string str() const;
};

LayerConfig made(LayerKind kind, const std::vector<Field>& fields,
                 std::vector<LayerConfig> children = {});
LayerConfig linear(int64_t width, const std::string& activation = "linear");
// Random cells that keep the shape [batch, steps, width], arbitrary links with delays, disabled
// cells, a second port, second inputs. carried: with MeshOptions::carry. any_width: the last cell
// has another width. Other cells read it as feedback, and a port "wide" has the same width.
MeshCase random_mesh(uint64_t seed, bool carried, bool any_width = false);

// Every value of every tick, in doubles.
class ScalarMesh {
 public:
  ScalarMesh(const MeshCase& mesh, const Network& network, Tape* tape);
  // Runs the next tick on the values of the ports.
  void tick(const std::vector<Array>& ports);
  // The value that the cell at flat index i committed in tick t; nothing before its first value.
  const std::optional<Array>& at(int64_t t, int64_t i) const;
  // Makes all values so far constants.
  void detach();
  std::map<std::string, std::vector<Var>> params;

 private:
  struct Source {
    MeshLink::From from = MeshLink::From::none;
    int64_t index = 0;  // of the cell, or of the port
    int64_t delay = 1;
  };
  struct CellState {
    Source first, second;
    bool two = false, has_second = false, disabled = false;
    std::vector<int64_t> extents;  // of what it reads
    const LayerConfig* layer = nullptr;
    std::string params;  // the path of the cell that owns its parameters
    GridSpec alone{1, 1, 1, 1};
    outside::Memory memory;
    bool carried = false;
  };
  std::optional<Array> value(const Source& source, int64_t t) const;
  std::optional<Array> source_value(const Source& source, int64_t t) const;
  Array run(CellState& cell, const Array& x);
  void link(const MeshLink& change);

  const MeshCase& mesh_;
  std::map<int64_t, CellState> cells_;
  std::vector<std::vector<Array>> ports_;                         // [tick][port]
  std::vector<std::map<int64_t, std::optional<Array>>> outputs_;  // [tick][cell]
  std::vector<std::map<int64_t, Array>> used_;                    // [tick][cell]: what it read
};

// A network of a case with f64 parameters (outside::param_values), and one with packed ones.
Result<Network> f64_network(const MeshCase& mesh);
Result<Network> packed_network(const MeshCase& mesh, DType dtype, ThreadPool& pool);
// Value i of a parameter of f64_network.
double* value_at(const Tensor& t, int64_t i);
// Random values for tick t of a port.
std::vector<double> port_values(const Shape& shape, int64_t t, size_t port);

}  // namespace loom::core::mesh_test
