# Additions of run.py to the project that docs/how-to/cpp.md shows. CMake reads this file after its project()
# line.
add_library(plugin SHARED ${CMAKE_CURRENT_LIST_DIR}/plugin.cpp)
target_link_libraries(plugin PRIVATE loom::loom)
target_compile_options(plugin PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow
  -Wold-style-cast -Wnon-virtual-dtor -Wundef -Werror)
