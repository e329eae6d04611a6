# cmake -DFILE=path -P print_size.cmake: one line with its size.
file(SIZE ${FILE} bytes)
math(EXPR kilobytes "${bytes} / 1000")
message("size: ${FILE}: ${kilobytes} kB")
