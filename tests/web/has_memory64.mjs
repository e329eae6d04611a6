// Ends with 0 if this Node.js supports memory with 64-bit addresses.
process.exitCode = WebAssembly.validate(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 5, 3, 1, 4, 1])) ? 0 : 1;
