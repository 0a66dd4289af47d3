//! JSON is hashed by its value: from bytes, from a `serde_json::Value`, under every set of `serde_json` features.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use idem_core::request_hash::{Json, MAX_JSON_DEPTH, canonical_bytes};
use idem_core::{RequestDigest, RequestHash};
use serde_json::Value;

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn digest<T: RequestHash + ?Sized>(value: &T) -> String {
    RequestDigest::of(value).unwrap().to_hex()
}

#[track_caller]
fn same(one: &str, other: &str) {
    assert_eq!(
        canonical_bytes(&Json(one)).unwrap(),
        canonical_bytes(&Json(other)).unwrap()
    );
}

#[track_caller]
fn differ(one: &str, other: &str) {
    assert_ne!(
        canonical_bytes(&Json(one)).unwrap(),
        canonical_bytes(&Json(other)).unwrap()
    );
}

#[track_caller]
fn refused(text: impl AsRef<[u8]>, problem: &str) {
    let error = RequestDigest::of(&Json(text)).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("no request hash: the value {problem} of the JSON text)")
    );
}

#[test]
fn numbers_are_compared_by_their_exact_decimal_value() {
    for one in [
        "1", "1.0", "1e0", "10e-1", "0.1e1", "1E+0", "0.01e+2", "1.000", "1000e-3",
    ] {
        same("1", one);
    }
    for zero in [
        "0",
        "-0",
        "0.0",
        "-0.0e5",
        "0e999999999",
        "0e-999999999",
        "0.000",
    ] {
        same("0", zero);
    }
    same("120", "1.2e2");
    same("-0.05", "-5e-2");
    same("0.0501", "501e-4");
    same("100.10", "1001e-1");
    differ("1", "-1");
    differ("1", "10");
    differ("12", "1.2");
    differ("0.1", "0.10000000000000000001");
    differ("9007199254740992", "9007199254740993");
    differ(
        "123456789012345678901234567890",
        "123456789012345678901234567891",
    );
    differ("1", "\"1\"");
    differ("0", "false");
    differ("0", "null");
    differ("[]", "{}");
    differ("\"\"", "null");
    differ(r#"{"a":null}"#, "{}");
}

#[test]
fn numbers_have_bounds() {
    let problem = "has a number that is too large or too close to zero (at byte 0";
    let start = Instant::now();
    for far in [
        "1e999999999",
        "-1e999999999",
        "1e-999999999",
        "1e1001",
        "10e1000",
        "0.1e1002",
        "1e-1001",
        "0.1e-1000",
    ] {
        refused(far, problem);
    }
    refused(format!("1e{}", "9".repeat(100_000)), problem);
    refused(format!("1e-{}", "9".repeat(100_000)), problem);
    refused(format!("1{}", "0".repeat(1001)), problem);
    assert!(start.elapsed() < Duration::from_secs(5));
    for near in ["1e1000", "0.1e1001", "1e-1000", "10e-1001"] {
        assert!(RequestDigest::of(&Json(near)).is_ok(), "{near}");
    }
    same(&format!("0.{}1", "0".repeat(999)), "1e-1000");
    same(&format!("1{}", "0".repeat(1000)), "1e1000");
    same(&format!("1{}e-2000", "0".repeat(2000)), "1");
    differ(&"1".repeat(1000), &format!("{}2", "1".repeat(999)));
}

#[test]
fn strings_are_compared_by_their_characters() {
    same(r#""\u0041\/\n""#, r#""A/\u000a""#);
    same(r#""\ud83d\ude02\uD83D\uDE02""#, "\"😂😂\"");
    same(
        r#""\"\\\/\b\f\r\t""#,
        r#""\u0022\u005c\u002f\u0008\u000c\u000d\u0009""#,
    );
    same(r#"{"\u0061":1}"#, r#"{"a":1}"#);
    // No Unicode normalisation: the two spellings of é are two texts.
    differ("\"\u{e9}\"", "\"e\u{301}\"");
    differ(r#""\u0000""#, r#""""#);
}

#[test]
fn what_two_parties_could_read_in_two_ways_is_refused() {
    refused(r#"{"a":1,"a":1}"#, "has two members of one name (at byte 0");
    refused(
        r#"[{"a":1,"b":2,"\u0061":1}]"#,
        "has two members of one name (at byte 1",
    );
    for lone in [
        r#""\ud83d""#,
        r#""\ude02""#,
        r#""\ud83d\ud83d""#,
        r#""\ud83dx""#,
        r#""\ud83d\n""#,
    ] {
        let error = RequestDigest::of(&Json(lone)).unwrap_err().to_string();
        assert!(error.contains("lone surrogate"), "{lone}: {error}");
    }
    refused(b"\"a\xff\"", "is not UTF-8 (at byte 2");
    refused(b"\xed\xa0\x80", "is not UTF-8 (at byte 0");
}

#[test]
fn only_json_is_json() {
    let invalid = [
        "",
        " ",
        "\u{feff}1",
        "nul",
        "nullx",
        "True",
        "NaN",
        "Infinity",
        "+1",
        "01",
        "-01",
        "-",
        "1.",
        ".1",
        "1.e1",
        "1e",
        "1e+",
        "0x1",
        "1_0",
        "[1,]",
        "[,]",
        "[1 2]",
        "[",
        "]",
        "{",
        "}",
        "{a:1}",
        "{'a':1}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{"a":1 "b":2}"#,
        "{1:2}",
        "\"",
        "\"\t\"",
        "\"\n\"",
        "\"\u{0}\"",
        r#""\x""#,
        r#""\u12""#,
        r#""\u+123""#,
        r#""\u 123""#,
        r#""\uéé""#,
        "1 2",
        "{} []",
        "null,",
        "// 1",
        "1 // c",
        "\u{a0}1",
        "\u{b}1",
        "\"\\",
        r#""\ud83d\u"#,
        "\"\\u123é\"",
    ];
    for text in invalid {
        assert!(
            RequestDigest::of(&Json(text)).is_err(),
            "{text:?} was accepted"
        );
        assert!(
            serde_json::from_str::<Value>(text).is_err(),
            "{text:?} is JSON for serde_json"
        );
    }
    for text in [
        "\t\r\n 1 \n",
        "[ ]",
        "{ }",
        r#" { "a" : [ true , false , null ] } "#,
        "\"\u{7f}\u{80}\u{2028}\"",
        "-0e-0",
    ] {
        assert_eq!(digest(&Json(text)), digest(&value(text)), "{text:?}");
    }
}

#[test]
fn depth_is_bounded_for_text_and_value() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    assert!(RequestDigest::of(&Json(nested(MAX_JSON_DEPTH))).is_ok());
    assert!(RequestDigest::of(&Json(objects(MAX_JSON_DEPTH))).is_ok());
    refused(
        nested(MAX_JSON_DEPTH + 1),
        "is JSON that is nested too deep (at byte 128",
    );
    refused(
        "[".repeat(1_000_000),
        "is JSON that is nested too deep (at byte 128",
    );
    assert!(RequestDigest::of(&Json(objects(MAX_JSON_DEPTH + 1))).is_err());

    let deep = |depth| (1..depth).fold(Value::Array(vec![]), |inner, _| Value::Array(vec![inner]));
    assert_eq!(
        digest(&deep(MAX_JSON_DEPTH)),
        digest(&Json(nested(MAX_JSON_DEPTH)))
    );
    let error = RequestDigest::of(&deep(MAX_JSON_DEPTH + 1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no request hash: the value is JSON that is nested too deep"
    );
}

#[test]
fn time_grows_with_the_size_of_the_text() {
    let members: Vec<String> = (0..20_000)
        .rev()
        .map(|number| format!(r#""member {number}":{number}"#))
        .collect();
    let mut text = format!("{{{}}}", members.join(","));
    for level in 0..100 {
        text = format!(r#"{{"z":{text},"a{level}":1}}"#);
    }
    let start = Instant::now();
    assert!(RequestDigest::of(&Json(&text)).is_ok());
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}",
        start.elapsed()
    );
}

/// The digests are constants. `tests/run` runs this test under several feature sets of `serde_json`, too.
#[test]
fn the_digest_does_not_depend_on_the_features_of_serde_json() {
    let documents = [
        (
            r#"{"b":1,"a":{"d":4,"c":[{"y":2,"x":1}]}}"#,
            "0187c1098a8fd424bdb291fbbb1512f9be144c05086ffa8d741fdf3b539b4aaa2e",
        ),
        (
            r"[0,-0,-0.0,1,1.0,1e0,10e-1,-1,0.1,4.50,2e-3,1E30,1e-27,333333333.33333329]",
            "01d8dc7768a42bde306e5ed9fd8e25a2e41cf39e3eceddac2dc97a705dbba3a37a",
        ),
        (
            r"[18446744073709551615,-9223372036854775808,9007199254740993,1.7976931348623157e308]",
            "01b84800e284d9f1297cf84211877dafb02cfa611c14a49e977fd3139db7483128",
        ),
        (
            r#"{"zz":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","z":[null,true,false],"a":{},"aa":[]}"#,
            "0189de4ec3ccd5f625e869595f39012cb50feb9e8b0baf0f2789fe108a07ab1557",
        ),
        // Numbers that lose digits in an `f64`: for a `Value` these are lost under every feature set.
        (
            r"[18446744073709551616,123456789012345678901234567890,0.10000000000000000001]",
            "014e051adc13974b3b0d047af4b7150cc6d06a9a9cadd7b2050d0712f69d3795a1",
        ),
    ];
    let measured: Vec<_> = documents
        .iter()
        .map(|(text, _)| digest(&value(text)))
        .collect();
    let expected: Vec<_> = documents.iter().map(|(_, digest)| *digest).collect();
    assert_eq!(measured, expected);
}

#[test]
fn a_value_is_hashed_like_its_text_as_long_as_its_numbers_survive() {
    for text in [
        r#"{"b":1,"a":{"d":4,"c":[{"y":2,"x":1}]}}"#,
        "[0,-0,1,1.0,-1,0.1,4.50,2e-3,1E30,1e-27,1e21,1e22,123456.789,5e-324,1.7976931348623157e308]",
        "[18446744073709551615,-9223372036854775808,9007199254740993]",
        r#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/""#,
    ] {
        assert_eq!(digest(&value(text)), digest(&Json(text)), "{text}");
    }
    let object = value(r#"{"b":[1],"a":null}"#);
    assert_eq!(digest(object.as_object().unwrap()), digest(&object));

    let lossy = "0.10000000000000000001";
    assert_eq!(digest(&value(lossy)), digest(&Json("0.1")));
    assert_ne!(digest(&value(lossy)), digest(&Json(lossy)));
}

/// The vectors of RFC 8785 stand beside the repository, because they have their own licence.
#[test]
fn the_jcs_documents_hash_equal_in_their_input_and_output_forms() {
    let vectors = std::env::var_os("IDEM_VECTORS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors"),
        PathBuf::from,
    );
    let folder = vectors.join("jcs");
    if !folder.is_dir() {
        let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(
            !in_ci,
            "the JCS vectors are missing: set IDEM_VECTORS to the folder that holds `jcs`"
        );
        println!("outside suite not run: jcs");
        return;
    }
    let mut seen = 0;
    for entry in folder.join("input").read_dir().unwrap() {
        let name = entry.unwrap().file_name();
        let [input, output] =
            ["input", "output"].map(|form| std::fs::read(folder.join(form).join(&name)).unwrap());
        let [input_value, output_value] =
            [&input, &output].map(|text| serde_json::from_slice::<Value>(text).unwrap());
        assert_eq!(
            digest(&input_value),
            digest(&output_value),
            "{}",
            name.display()
        );
        // JCS rounds numbers to an `f64` and text does not: 333333333.33333329 is not 333333333.3333333.
        if name == "values.json" {
            assert_ne!(digest(&Json(&input)), digest(&Json(&output)));
            let rounded = String::from_utf8(input)
                .unwrap()
                .replace("333333333.33333329", "333333333.3333333");
            assert_eq!(digest(&Json(rounded)), digest(&Json(&output)));
        } else {
            assert_eq!(
                digest(&Json(&input)),
                digest(&Json(&output)),
                "{}",
                name.display()
            );
            assert_eq!(
                digest(&Json(&input)),
                digest(&input_value),
                "{}",
                name.display()
            );
        }
        seen += 1;
    }
    assert_eq!(seen, 6);
}
