# The chat page of `loom serve` as C++: writes the files of src/serve/page into one table of string
# literals.
file(GLOB parts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/serve/page/*)
set(text "// Written by cmake/page.cmake from src/serve/page.\n#include \"serve/static/page.hpp\"\n\nnamespace loom::core {\n")
string(APPEND text "std::span<const PageFile> page_files() {\n  static constexpr PageFile files[] = {\n")
foreach(part ${parts})
  get_filename_component(name ${part} NAME)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${part})
  file(READ ${part} content)
  string(APPEND text "{\"${name}\", R\"~~~~(${content})~~~~\"},\n")
endforeach()
string(APPEND text "};\n  return files;\n}\n}  // namespace loom::core\n")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/serve_page.cpp CONTENT "${text}" @ONLY)
target_sources(loom_serve PRIVATE ${PROJECT_BINARY_DIR}/serve_page.cpp)
