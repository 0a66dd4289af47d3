//! Digests that are stored somewhere already: none of them may ever change under its scheme.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::marker::PhantomData;
use std::num::{NonZeroI64, NonZeroU8};
use std::time::Duration;

use idem_core::request_hash::Json;
use idem_core::{RequestDigest, RequestHash};
use idem_macros::RequestHash;

const FILE: &str = "idem-core/tests/golden/request_hash.txt";
const STORED: &str = include_str!("golden/request_hash.txt");

#[derive(RequestHash)]
#[request_hash(crate = idem_core)]
struct PayOrder {
    order_id: i64,
    amount_cents: i64,
    currency: String,
    note: Option<String>,
    #[request_hash(default)]
    retries: u8,
    items: Vec<Item>,
    method: Method,
}

#[derive(RequestHash)]
#[request_hash(crate = idem_core)]
struct Item {
    r#type: &'static str,
    price: f64,
}

#[derive(RequestHash)]
#[request_hash(crate = idem_core)]
enum Method {
    Cash,
    Card(u64),
    Split(u8, u8),
    Sepa {
        iban: &'static str,
        mandate: Option<u32>,
    },
}

#[derive(RequestHash)]
#[request_hash(crate = idem_core)]
struct OrderId(i64);

#[derive(RequestHash)]
#[request_hash(crate = idem_core)]
struct Ping;

#[derive(RequestHash)]
#[request_hash(crate = idem_core)]
struct Tree<T> {
    value: T,
    children: Vec<Tree<T>>,
}

fn pay(note: Option<&str>, retries: u8, method: Method) -> PayOrder {
    PayOrder {
        order_id: 42,
        amount_cents: 12_50,
        currency: "EUR".into(),
        note: note.map(Into::into),
        retries,
        items: vec![
            Item {
                r#type: "tea",
                price: 2.5,
            },
            Item {
                r#type: "cup",
                price: 10.0,
            },
        ],
        method,
    }
}

type Named = (&'static str, Box<dyn RequestHash>);

fn named(name: &'static str, value: impl RequestHash + 'static) -> Named {
    (name, Box::new(value))
}

fn simple_values() -> Vec<Named> {
    vec![
        named("unit", ()),
        named("none", None::<u8>),
        named("some_none", Some(None::<u8>)),
        named("some_some_none", Some(Some(None::<u8>))),
        named("phantom", PhantomData::<str>),
        named("false", false),
        named("true", true),
        named("zero", 0),
        named("one", 1_u8),
        named("minus_one", -1),
        named("byte_max", u8::MAX),
        named("i64_min", i64::MIN),
        named("u64_max", u64::MAX),
        named("i128_min", i128::MIN),
        named("u128_max", u128::MAX),
        named("non_zero_u8", NonZeroU8::MIN),
        named("non_zero_i64", NonZeroI64::MIN),
        named("float_zero", 0.0_f64),
        named("float_minus_zero", -0.0_f64),
        named("float", 0.1_f64),
        named("float_single", 0.1_f32),
        named("float_max", f64::MAX),
        named("float_tiny", f64::from_bits(1)),
        named("char", '😂'),
        named("text_empty", ""),
        named("text", "Größe".to_owned()),
        named("text_cow", Cow::Borrowed("tea")),
        named("bytes_empty", Vec::<u8>::new()),
        named("bytes", vec![0_u8, 1, 255]),
        named("bytes_array", [0_u8, 1, 255]),
        named("bytes_64_kib", vec![7_u8; 64 * 1024]),
        named("duration", Duration::new(90, 5)),
    ]
}

fn composed_values() -> Vec<Named> {
    vec![
        named("sequence_empty", Vec::<u16>::new()),
        named("sequence", vec![1_u16, 2, 3]),
        named("sequence_deque", VecDeque::from([1_u16, 2, 3])),
        named("sequence_options", [Some("a"), None]),
        named("tuple", ("ab", "c")),
        named("tuple_other", ("a", "bc")),
        named("tuple_twelve", (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)),
        named("set", BTreeSet::from(["b", "a", "aa"])),
        named("set_hashed", HashSet::from(["b", "a", "aa"])),
        named("map", BTreeMap::from([("b", 1), ("a", 2), ("aa", 3)])),
        named("map_hashed", HashMap::from([("b", 1), ("a", 2), ("aa", 3)])),
        named("map_empty", BTreeMap::<u8, u8>::new()),
        named("struct", pay(None, 0, Method::Cash)),
        named("struct_full", pay(Some("x"), 1, Method::Card(4242))),
        named(
            "struct_tuple_variant",
            pay(Some(""), 0, Method::Split(30, 70)),
        ),
        named(
            "struct_struct_variant",
            pay(
                None,
                0,
                Method::Sepa {
                    iban: "NL01",
                    mandate: Some(9),
                },
            ),
        ),
        named(
            "struct_absent",
            pay(
                None,
                0,
                Method::Sepa {
                    iban: "NL01",
                    mandate: None,
                },
            ),
        ),
        named("newtype", OrderId(42)),
        named("unit_struct", Ping),
        named(
            "tree",
            Tree {
                value: 1,
                children: vec![
                    Tree {
                        value: 2,
                        children: vec![],
                    },
                    Tree {
                        value: 3,
                        children: vec![],
                    },
                ],
            },
        ),
        named("json_null", Json("null")),
        named("json_number", Json("-12.50e3")),
        named("json_zero", Json("-0.0")),
        named("json_text", Json(r#""\ud83d\ude02""#)),
        named("json_array", Json("[1, [], {}]")),
        named(
            "json_object",
            Json(r#"{"b": 1.0, "a": {"d": 4, "c": [true, null]}, "": ""}"#),
        ),
        named(
            "json_value",
            serde_json::json!({"b": 1.0, "a": {"d": 4, "c": [true, null]}, "": ""}),
        ),
    ]
}

#[cfg(all(feature = "chrono", feature = "uuid", feature = "rust_decimal"))]
fn values_of_other_crates() -> Vec<Named> {
    use chrono::{DateTime, FixedOffset, NaiveDate, TimeDelta};

    let instant: DateTime<FixedOffset> = "2026-03-01T12:00:00.5+01:00".parse().unwrap();
    let before_1970: DateTime<FixedOffset> = "1969-12-31T23:59:59.25Z".parse().unwrap();
    vec![
        named("chrono_instant", instant),
        named("chrono_before_1970", before_1970),
        named("chrono_date", NaiveDate::from_ymd_opt(2026, 3, 1).unwrap()),
        named("chrono_time", instant.time()),
        named("chrono_date_time", instant.naive_local()),
        named("chrono_delta", TimeDelta::milliseconds(-1500)),
        named(
            "uuid",
            uuid::Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff),
        ),
        named("decimal", rust_decimal::Decimal::new(-12_500, 3)),
        named("decimal_zero", rust_decimal::Decimal::new(0, 2)),
    ]
}

#[cfg(not(all(feature = "chrono", feature = "uuid", feature = "rust_decimal")))]
fn values_of_other_crates() -> Vec<Named> {
    println!(
        "without the features chrono, uuid and rust_decimal: their golden digests are not compared"
    );
    Vec::new()
}

fn stored() -> BTreeMap<&'static str, &'static str> {
    let lines = STORED
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').unwrap()).collect()
}

#[test]
fn no_stored_digest_has_changed() {
    let stored = stored();
    let values = [simple_values(), composed_values(), values_of_other_crates()];
    let mut changed = Vec::new();
    let mut missing = Vec::new();
    for (name, value) in values.iter().flatten() {
        let digest = RequestDigest::of(value).unwrap().to_hex();
        match stored.get(name) {
            Some(golden) if **golden == digest => {}
            Some(golden) => changed.push(format!("{name}: is {digest}, was {golden}")),
            None => missing.push(format!("{name} {digest}")),
        }
    }
    assert!(
        changed.is_empty(),
        "digests changed. Requests whose hash is stored would be refused as another request after a deploy: \
         undo the change, or give the new encoding a new RequestDigest::CURRENT_SCHEME and keep the old one.\n{}",
        changed.join("\n")
    );
    assert!(
        missing.is_empty(),
        "values without a golden digest. If they are new, add these lines to {FILE}:\n{}",
        missing.join("\n")
    );
}

#[test]
fn every_stored_digest_has_its_value() {
    let values = [simple_values(), composed_values(), values_of_other_crates()];
    let names: HashSet<_> = values.iter().flatten().map(|(name, _)| *name).collect();
    assert_eq!(
        names.len(),
        values.iter().flatten().count(),
        "two values of one name"
    );
    let of_other_crates = ["chrono", "uuid", "decimal"];
    for (name, digest) in stored() {
        let skipped = values_of_other_crates().is_empty()
            && of_other_crates.iter().any(|it| name.starts_with(it));
        assert!(
            skipped || names.contains(name),
            "{name} is in {FILE} and not in this test"
        );
        let scheme = RequestDigest::from_hex(digest).unwrap().scheme();
        assert_eq!(scheme, RequestDigest::CURRENT_SCHEME);
    }
}

/// Values that are written alike on purpose; all others differ.
#[test]
fn only_equal_values_have_equal_digests() {
    let alike: [&[&str]; 11] = [
        &["none", "phantom", "json_null"],
        &["one", "non_zero_u8"],
        &["i64_min", "non_zero_i64"],
        &["float_zero", "float_minus_zero"],
        &["char", "json_text"],
        &["bytes", "bytes_array"],
        &["sequence", "sequence_deque"],
        &["set", "set_hashed"],
        &["map", "map_hashed"],
        &["json_object", "json_value"],
        &["json_zero", "decimal_zero"],
    ];
    let mut names_of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, digest) in stored() {
        names_of.entry(digest).or_default().push(name);
    }
    let mut found: Vec<_> = names_of
        .into_values()
        .filter(|names| names.len() > 1)
        .collect();
    let mut expected: Vec<_> = alike
        .map(|names| {
            let mut names = names.to_vec();
            names.sort_unstable();
            names
        })
        .to_vec();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}
