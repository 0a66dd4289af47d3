//! Properties of the request hash over generated values of every kind.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
#![expect(clippy::option_option, reason = "each depth is a value of its own")]

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use idem_core::request_hash::{Json, canonical_bytes};
use idem_core::{RequestDigest, RequestHash};
use idem_macros::RequestHash;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;

/// One type that holds every kind of value, so that two of them are equal or must have different bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, RequestHash)]
#[request_hash(crate = idem_core)]
enum Any {
    Unit,
    Nothing(()),
    Bool(bool),
    Small(u8),
    Signed(i128),
    Unsigned(u128),
    Char(char),
    Text(String),
    Bytes(Vec<u8>),
    Words(Vec<String>),
    Option(Option<Box<Any>>),
    Depths(Option<Option<Option<bool>>>),
    List(Vec<Any>),
    Pair(Box<Any>, Box<Any>),
    Map(BTreeMap<Any, Any>),
    Set(BTreeSet<Any>),
    Length(Duration),
    Record(Box<Record>),
    Inline {
        a: Option<Box<Any>>,
        b: Option<Box<Any>>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, RequestHash)]
#[request_hash(crate = idem_core)]
struct Record {
    b: Any,
    a: Option<Any>,
    ab: Option<Option<u8>>,
    #[request_hash(default)]
    count: u32,
    #[request_hash(default = some_seven)]
    limit: Option<u32>,
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "a default has the type of its field"
)]
fn some_seven() -> Option<u32> {
    Some(7)
}

/// Few letters, so that values that are nearly equal are frequent.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]{0,3}", any::<String>()]
}

fn few<T: Clone + std::fmt::Debug + 'static>(values: &'static [T]) -> impl Strategy<Value = T> {
    proptest::sample::select(values)
}

fn leaf() -> impl Strategy<Value = Any> {
    let depths = few(&[None, Some(None), Some(Some(None)), Some(Some(Some(false)))]);
    prop_oneof![
        few(&[Any::Unit, Any::Nothing(())]),
        any::<bool>().prop_map(Any::Bool),
        few(&[0, 1, 255]).prop_map(Any::Small),
        prop_oneof![-2..3_i128, any::<i128>()].prop_map(Any::Signed),
        prop_oneof![0..3_u128, any::<u128>()].prop_map(Any::Unsigned),
        few(&['a', 'b', '😂']).prop_map(Any::Char),
        text().prop_map(Any::Text),
        vec(0..3_u8, 0..4).prop_map(Any::Bytes),
        vec(text(), 0..4).prop_map(Any::Words),
        depths.prop_map(Any::Depths),
        (0..2_u64, 0..2_u32)
            .prop_map(|(seconds, nanos)| Any::Length(Duration::new(seconds, nanos))),
    ]
}

fn any_value() -> impl Strategy<Value = Any> {
    leaf().prop_recursive(4, 24, 4, |inner| {
        let optional = proptest::option::of(inner.clone());
        let boxed = || optional.clone().prop_map(|value| value.map(Box::new));
        let nested = few(&[None, Some(None), Some(Some(0)), Some(Some(1))]);
        let record = (
            inner.clone(),
            optional.clone(),
            nested,
            0..2_u32,
            few(&[None, Some(0), Some(7)]),
        );
        prop_oneof![
            boxed().prop_map(Any::Option),
            vec(inner.clone(), 0..4).prop_map(Any::List),
            (inner.clone(), inner.clone())
                .prop_map(|(one, other)| Any::Pair(one.into(), other.into())),
            btree_map(inner.clone(), inner.clone(), 0..4).prop_map(Any::Map),
            btree_set(inner, 0..4).prop_map(Any::Set),
            (boxed(), boxed()).prop_map(|(a, b)| Any::Inline { a, b }),
            record.prop_map(|(b, a, ab, count, limit)| Any::Record(Box::new(Record {
                b,
                a,
                ab,
                count,
                limit
            }))),
        ]
    })
}

fn bytes<T: RequestHash + ?Sized>(value: &T) -> Vec<u8> {
    canonical_bytes(value).unwrap()
}

/// A JSON value whose numbers have one spelling only.
fn json_value() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::{Map, Value};

    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        prop_oneof![-3..3_i64, any::<i64>()].prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        // Halves are exact, and never an integer.
        (-999..999_i32).prop_map(|number| Value::from(f64::from(number) + 0.5)),
        text().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((text(), inner), 0..4).prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn distinct_values_have_distinct_bytes(values in vec(any_value(), 150)) {
        let mut seen: HashMap<Vec<u8>, &Any> = HashMap::new();
        for value in &values {
            if let Some(other) = seen.insert(bytes(value), value) {
                prop_assert_eq!(value, other);
            }
        }
        let distinct: HashSet<_> = values.iter().collect();
        prop_assert_eq!(seen.len(), distinct.len(), "equal values have different bytes");
    }

    #[test]
    fn no_value_is_the_beginning_of_another(one in any_value(), other in any_value()) {
        let (one, other) = (bytes(&one), bytes(&other));
        prop_assert!(one == other || !other.starts_with(&one));
    }

    #[test]
    fn distinct_json_values_have_distinct_bytes(values in vec(json_value(), 150)) {
        let mut seen: HashMap<Vec<u8>, &serde_json::Value> = HashMap::new();
        for value in &values {
            if let Some(other) = seen.insert(bytes(value), value) {
                prop_assert_eq!(value, other);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_fields_does_not_count(values in vec(any_value(), 1..8), seed in any::<u64>()) {
        let names: Vec<String> = (0..values.len()).map(|index| "n".repeat(index % 3) + &index.to_string()).collect();
        let mut fields: Vec<(&str, &dyn RequestHash)> = Vec::new();
        for (name, value) in names.iter().zip(&values) {
            fields.push((name, value));
        }
        let one = RequestDigest::of_fields(&fields).unwrap();
        let turn = usize::try_from(seed % 8).unwrap() % fields.len();
        fields.rotate_left(turn);
        prop_assert_eq!(&one, &RequestDigest::of_fields(&fields).unwrap());
        fields.reverse();
        prop_assert_eq!(&one, &RequestDigest::of_fields(&fields).unwrap());
    }

    #[test]
    fn a_none_or_a_default_field_adds_nothing(b in any_value()) {
        let old = RequestDigest::of_fields(&[("b", &b)]).unwrap();
        let record = Record { b, a: None, ab: None, count: 0, limit: Some(7) };
        prop_assert_eq!(&old, &RequestDigest::of(&record).unwrap());
        let changed = Record { count: 1, ..record.clone() };
        prop_assert_ne!(&old, &RequestDigest::of(&changed).unwrap());
        let changed = Record { limit: None, ..record };
        prop_assert_ne!(&old, &RequestDigest::of(&changed).unwrap());
    }

    #[test]
    fn a_field_that_becomes_optional_keeps_the_hash(value in any_value()) {
        let one = RequestDigest::of_fields(&[("field", &value)]).unwrap();
        prop_assert_eq!(one, RequestDigest::of_fields(&[("field", &Some(value))]).unwrap());
    }

    #[test]
    fn integers_that_grow_keep_the_hash(number in any::<i32>(), natural in any::<u32>()) {
        prop_assert_eq!(bytes(&number), bytes(&i64::from(number)));
        prop_assert_eq!(bytes(&number), bytes(&i128::from(number)));
        prop_assert_eq!(bytes(&natural), bytes(&u64::from(natural)));
        prop_assert_eq!(bytes(&natural), bytes(&i64::from(natural)));
        prop_assert_eq!(bytes(&natural), bytes(&u128::from(natural)));
    }

    #[test]
    fn floats_are_equal_when_their_bytes_are(one in any::<f64>(), single in any::<f32>()) {
        let other = f64::from(single);
        if one.is_finite() && other.is_finite() {
            prop_assert_eq!(one.partial_cmp(&other) == Some(std::cmp::Ordering::Equal), bytes(&one) == bytes(&other));
            prop_assert_eq!(bytes(&single), bytes(&other));
        } else {
            prop_assert!(canonical_bytes(&[one, other]).is_err());
        }
    }

    #[test]
    fn containers_of_one_kind_agree(entries in btree_map(text(), any::<u8>(), 0..6)) {
        let hashed: HashMap<_, _> = entries.clone().into_iter().collect();
        prop_assert_eq!(bytes(&entries), bytes(&hashed));
        let set: BTreeSet<_> = entries.keys().collect();
        let hashed: HashSet<_> = entries.keys().collect();
        prop_assert_eq!(bytes(&set), bytes(&hashed));
        let list: Vec<_> = entries.values().copied().collect();
        let deque: VecDeque<_> = list.iter().copied().collect();
        prop_assert_eq!(bytes(&list), bytes(&deque));
        prop_assert_eq!(bytes(&list), bytes(&list.into_boxed_slice()));
    }

    #[test]
    fn json_is_hashed_by_value(value in json_value()) {
        let compact = serde_json::to_vec(&value).unwrap();
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(bytes(&Json(&compact)), bytes(&value));
        prop_assert_eq!(bytes(&Json(&pretty)), bytes(&value));
    }

    #[test]
    fn decimal_places_do_not_count(number in any::<i64>(), zeros in 0..30_usize) {
        let zeros_after = "0".repeat(zeros);
        prop_assert_eq!(bytes(&Json(format!("{number}.{zeros_after}0"))), bytes(&Json(number.to_string())));
        prop_assert_eq!(bytes(&Json(format!("{number}{zeros_after}e-{zeros}"))), bytes(&Json(number.to_string())));
        prop_assert_eq!(bytes(&Json(format!("{number}e{zeros}"))), bytes(&Json(format!("{number}{zeros_after}"))));
    }

    /// Our parser and `serde_json` take the same texts, but for what ours refuses on purpose.
    #[test]
    fn the_same_texts_are_json(text in r#"[ \[\]{},:"\\/a0-9.eE+\-tfn]{0,12}|-?[0-9.eE+-]{1,8}|"[ud\\8c0-9a-f"]{0,14}""#) {
        let ours = canonical_bytes(&Json(&text)).map_err(|error| error.to_string());
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        match ours {
            Ok(_) => prop_assert!(theirs.is_ok() || theirs.unwrap_err().to_string().contains("number out of range")),
            Err(error) if error.contains("two members") || error.contains("too large or too close") => {}
            Err(error) => prop_assert!(theirs.is_err(), "{}", error),
        }
    }

    #[test]
    fn any_bytes_are_json_or_an_error(text in vec(any::<u8>(), 0..64)) {
        let _ = RequestDigest::of(&Json(text));
    }

    #[test]
    fn a_digest_is_read_back_from_its_text(value in any_value()) {
        let digest = RequestDigest::of(&value).unwrap();
        prop_assert_eq!(RequestDigest::from_hex(&digest.to_string()), Some(digest));
    }
}
