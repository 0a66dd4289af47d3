//! Examples live in their own files; see `cargo run --example checkout`.
