//! What the tests of the attributes stand on: golden files, and the errors of mistakes that come together.
//!
//! `BLESS=1 cargo test -p idem-macros` rewrites what is generated here.

use std::path::Path;
use std::{env, fs};

use proc_macro2::TokenStream;

/// Compares an expansion with the file `path` of this crate.
#[track_caller]
pub(crate) fn golden(path: &str, expansion: TokenStream) {
    let file = syn::parse2(expansion).expect("an expansion is Rust");
    generated(path, &prettyplease::unparse(&file));
}

/// Compares what was generated with the file that holds it.
#[track_caller]
pub(crate) fn generated(path: &str, actual: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if env::var_os("BLESS").is_some() {
        fs::write(&file, actual).expect("the file is writable");
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    let differs = |(is, was): &(&str, &str)| is != was;
    let padding = std::iter::repeat("");
    let lines = actual
        .lines()
        .chain(padding.clone())
        .zip(expected.lines().chain(padding));
    let at_most = actual.lines().count().max(expected.lines().count());
    let first = lines
        .take(at_most)
        .enumerate()
        .find(|(_, lines)| differs(lines));
    assert!(
        actual == expected,
        "{path} is not what is generated, {first:#?}: look at the change that BLESS=1 makes"
    );
}

/// One error for each expected part, in this order and no other, and the item beside them.
#[track_caller]
pub(crate) fn refused(expansion: TokenStream, expected: &[&str]) {
    let errors = errors(expansion);
    let all_right = errors.len() == expected.len()
        && errors
            .iter()
            .zip(expected)
            .all(|(error, expected)| error.contains(expected));
    assert!(all_right, "expected {expected:#?}, got {errors:#?}");
}

/// The messages of the errors, in order.
fn errors(expansion: TokenStream) -> Vec<String> {
    let file: syn::File = syn::parse2(expansion).expect("the item is emitted beside the errors");
    let messages = file.items.into_iter().filter_map(|item| match item {
        syn::Item::Macro(item) if item.mac.path.segments.last()?.ident == "compile_error" => Some(
            item.mac
                .parse_body::<syn::LitStr>()
                .expect("a message")
                .value(),
        ),
        _ => None,
    });
    messages.collect()
}

/// The fixtures of every shape that `attribute` accepts, each a module, as they are when somebody deletes the attribute. A fixture
/// that begins with "Needs the attribute" is about what is then missing.
#[track_caller]
pub(crate) fn without_the_attribute_is_up_to_date(attribute: &str) {
    const FIXTURES: &str = "../tests/ui/pass";
    let prefix = format!("{attribute}_");
    let generated_name = format!("{attribute}_without_the_attribute.rs");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FIXTURES);
    let mut names: Vec<String> = fs::read_dir(&folder)
        .expect("the fixtures are beside this crate")
        .map(|entry| {
            entry
                .expect("a readable folder")
                .file_name()
                .into_string()
                .expect("a UTF-8 name")
        })
        .filter(|name| name.starts_with(&prefix) && *name != generated_name)
        .collect();
    names.sort();
    assert!(!names.is_empty(), "no fixtures in {}", folder.display());

    let mut modules = format!(
        "//! The other `{attribute}_*` fixtures without the attribute: still ordinary Rust. Written by a test of `idem-macros`.\n\
         #![allow(unused)]\n",
    );
    let mut calls = String::new();
    for name in names {
        let source = fs::read_to_string(folder.join(&name)).expect("a fixture");
        if source.starts_with("//! Needs the attribute") {
            continue;
        }
        let module = name.trim_start_matches(&prefix).trim_end_matches(".rs");
        let source = without_the_attribute(attribute, &source);
        modules.extend(["\nmod ", module, " {\n", &source, "}\n"]);
        calls.extend(["    ", module, "::main();\n"]);
    }
    generated(
        &format!("{FIXTURES}/{generated_name}"),
        &format!("{modules}\nfn main() {{\n{calls}}}\n"),
    );
}

/// The text without the attribute and without its import, with a `main` that the parent can call.
fn without_the_attribute(attribute: &str, source: &str) -> String {
    let mut rest = source;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once(&format!("#[{attribute}(")) {
        kept.push_str(before.trim_end_matches(' '));
        let (_, after) = after.split_once(")]").expect("the attribute ends");
        rest = after.trim_start_matches([' ', '\n']);
        // What follows on the next line begins where the attribute did.
        kept.push_str(&before[before.trim_end_matches(' ').len()..]);
    }
    kept.push_str(rest);
    let import = format!("::{attribute};");
    let lines = kept.lines().filter(|line| !line.ends_with(&import));
    let mut text: String = lines.flat_map(|line| [line, "\n"]).collect();
    for main in ["\nfn main()", "\nasync fn main()"] {
        text = text.replace(main, &format!("\npub(crate) {}", main.trim_start()));
    }
    text
}
