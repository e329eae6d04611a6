//! Links the shared library of Loom: that of the folder in LOOM_LIB_DIR, or one that the linker
//! finds by itself.

fn main() {
    println!("cargo:rerun-if-env-changed=LOOM_LIB_DIR");
    if let Ok(folder) = std::env::var("LOOM_LIB_DIR") {
        println!("cargo:rustc-link-search=native={folder}");
    }
    println!("cargo:rustc-link-lib=dylib=loom");
}
