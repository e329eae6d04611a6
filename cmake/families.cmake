# The lists of the families of language models: each file of src/families/decoder and of
# src/families/encoder is a row. decoder/gpt_neox.cpp defines kGptNeoxFamily, and encoder/bert.cpp
# defines kBertEncoder. A missing row is an error of the linker.

# loom_families(FOLDER TYPE SUFFIX HEADER FUNCTION): adds FUNCTION(), the list of the rows.
function(loom_families folder type suffix header function)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/families/${folder}/*.cpp)
  list(SORT files COMPARE FILE_BASENAME)
  set(rows "")
  set(list "")
  foreach(file ${files})
    get_filename_component(words ${file} NAME_WE)
    string(REPLACE "_" ";" words ${words})
    set(row k)
    foreach(word ${words})
      string(SUBSTRING ${word} 0 1 first)
      string(SUBSTRING ${word} 1 -1 rest)
      string(TOUPPER ${first} first)
      string(APPEND row ${first}${rest})
    endforeach()
    string(APPEND rows "extern const ${type} ${row}${suffix};\n")
    string(APPEND list "      &${row}${suffix},\n")
  endforeach()
  set(out ${PROJECT_BINARY_DIR}/${function}.cpp)
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT
"// Written by cmake/families.cmake from the names of the files in src/families/${folder}.
#include \"families/${header}\"

namespace loom::core {

${rows}
std::span<const ${type}* const> ${function}() {
  static constexpr const ${type}* kRows[] = {
${list}  };
  return kRows;
}

}  // namespace loom::core
")
  target_sources(loom_families PRIVATE ${out})
endfunction()

loom_families(decoder DecoderFamily Family family.hpp decoder_families)
loom_families(encoder EncoderFamily Encoder encoder_family.hpp encoder_families)
