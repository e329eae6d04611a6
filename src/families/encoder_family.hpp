// A family of encoders is one row of data in its own file, src/families/encoder/NAME.cpp: the rules
// of config.json, and the tensor names of Hugging Face folders. The defaults are those of BERT.
// family.hpp has the rows of decoders, and says how rows are found.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "llm/encoder_config.hpp"
#include "llm/roles.hpp"

namespace loom::core {

// The names of settings in config.json. An empty name: the class has no such setting.
struct EncoderKeys {
  std::string_view hidden = "hidden_size", inner = "intermediate_size";
  std::string_view layers = "num_hidden_layers", heads = "num_attention_heads";
  std::string_view act = "hidden_act", eps = "layer_norm_eps";
};

struct EncoderRules {
  EncoderKeys keys = {};
  double norm_eps = 1e-12;         // when absent
  int32_t max_positions = 512;     // max_position_embeddings when absent
  bool types = true;               // a table of token types
  bool absolute_positions = true;  // position_embedding_type and is_decoder are checked
  bool padded_positions = false;   // the first position has the row after that of the padding
  // Norms before attention and a gated unit, without biases; rotary positions and windows in
  // place of a table; classifier_* has the settings of the head (ModernBERT).
  bool modern = false;
  std::string_view head_act = "tanh";
};

// The name of a part in folders, without ".weight" or ".bias".
struct EncoderPartName {
  EncoderRole role;
  std::string_view name;
};

// Names that are absent here are those of BERT (formats/hf/encoder_names.cpp).
struct EncoderFolder {
  std::span<const EncoderPartName> names = {};
  std::string_view prefix = "bert.";          // of all names except the head's
  std::string_view block = "encoder.layer.";  // between that prefix and the number of a block
  bool fused = false;                         // q, k and v in one tensor, gate and up in another
  bool norm_biases = true;                    // otherwise the biases of norms are zero
};

struct EncoderFamily {
  std::string_view name;        // "Bert", of BertModel, BertForMaskedLM, ...
  std::string_view model_type;  // "bert"
  EncoderRules config = {};
  EncoderFolder folder = {};
};

// All rows, by the name of their file.
std::span<const EncoderFamily* const> encoder_families();

// A class of a family: "BertForSequenceClassification".
struct EncoderClass {
  const EncoderFamily* family = nullptr;  // null: none has this class
  bool scores = false;                    // has a classifier head
};
EncoderClass find_encoder_class(std::string_view hf_class);
// The row of a model_type; null if there is none.
const EncoderFamily* find_encoder_of_type(std::string_view model_type);

}  // namespace loom::core
