// Ends with 0 where this Node.js knows memory with addresses of 64 bits.
process.exitCode = WebAssembly.validate(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 5, 3, 1, 4, 1])) ? 0 : 1;
