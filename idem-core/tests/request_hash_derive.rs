//! What the derive writes: which changes keep a hash, and which requests differ.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
#![expect(clippy::option_option, reason = "each depth is a value of its own")]

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::marker::PhantomData;
use std::num::{NonZeroI128, NonZeroU8};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use idem_core::request_hash::{Encoder, Json, canonical_bytes};
use idem_core::{HashError, RequestDigest, RequestHash};
use idem_macros::RequestHash;
use serde::Deserialize;

fn bytes<T: RequestHash + ?Sized>(value: &T) -> Vec<u8> {
    canonical_bytes(value).unwrap()
}

#[track_caller]
fn same<A: RequestHash + ?Sized, B: RequestHash + ?Sized>(one: &A, other: &B) {
    assert_eq!(bytes(one), bytes(other));
    assert_eq!(RequestDigest::of(one), RequestDigest::of(other));
}

#[track_caller]
fn differ<A: RequestHash + ?Sized, B: RequestHash + ?Sized>(one: &A, other: &B) {
    assert_ne!(bytes(one), bytes(other));
    assert_ne!(RequestDigest::of(one), RequestDigest::of(other));
}

#[track_caller]
fn refused<T: RequestHash + ?Sized>(value: &T, path: &str, message: &str) {
    let error: HashError = RequestDigest::of(value).unwrap_err();
    assert_eq!(error.path(), path);
    assert_eq!(error.to_string(), message);
}

#[test]
fn case_c1_the_order_of_members_does_not_count_and_the_order_of_elements_does() {
    let stored = Json(r#"{"b":1,"a":{"d":4,"c":[{"y":2,"x":1}]}}"#);
    let retry = Json(r#"{"a":{"c":[{"x":1,"y":2}],"d":4},"b":1}"#);
    same(&stored, &retry);
    differ(&Json("[1,2]"), &Json("[2,1]"));

    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    same(&value(stored.0), &value(retry.0));
    same(&value(stored.0), &stored);
    differ(&value("[1,2]"), &value("[2,1]"));
}

#[test]
fn case_c2_one_and_one_point_zero_are_one_json_number_and_no_integer_by_accident() {
    #[derive(Debug, Deserialize, RequestHash)]
    #[request_hash(crate = idem_core)]
    struct Pay {
        amount: i64,
    }

    same(&Json(r#"{"amount":1}"#), &Json(r#"{"amount":1.0}"#));
    same(&Json(r#"{"amount":1}"#), &Json(r#"{"amount":1e0}"#));
    let pay: Pay = serde_json::from_str(r#"{"amount":1}"#).unwrap();
    same(&pay, &Pay { amount: 1 });
    assert!(serde_json::from_str::<Pay>(r#"{"amount":1.0}"#).is_err());
    same(&0.0_f64, &-0.0_f64);
    same(&0.0_f32, &-0.0_f64);
}

#[test]
fn case_c4_what_is_no_number_is_not_taken_for_none() {
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct Measured {
        x: Option<f64>,
    }

    assert!(RequestDigest::of(&Measured { x: None }).is_ok());
    for nan in [f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001)] {
        refused(
            &Measured { x: Some(nan) },
            "x",
            "no request hash: `x` is not a number",
        );
    }
    for infinity in [f64::INFINITY, f64::NEG_INFINITY] {
        refused(
            &Measured { x: Some(infinity) },
            "x",
            "no request hash: `x` is infinite",
        );
    }
    refused(&f32::NAN, "", "no request hash: the value is not a number");
}

#[test]
fn case_c5_a_new_optional_field_keeps_the_hashes_that_are_stored() {
    #[derive(Deserialize, RequestHash)]
    #[request_hash(crate = idem_core)]
    struct V1 {
        amount: i64,
    }
    #[derive(Deserialize, RequestHash)]
    #[request_hash(crate = idem_core)]
    struct V2 {
        amount: i64,
        note: Option<String>,
    }

    let stored: V1 = serde_json::from_str(r#"{"amount":1}"#).unwrap();
    let retry = |text: &str| serde_json::from_str::<V2>(text).unwrap();
    same(&stored, &retry(r#"{"amount":1}"#));
    same(&stored, &retry(r#"{"amount":1,"note":null}"#));
    differ(&stored, &retry(r#"{"amount":1,"note":"x"}"#));

    let current = RequestDigest::of(&stored).unwrap();
    let other_scheme = RequestDigest::from_hex(&format!("02{}", &current.to_hex()[2..])).unwrap();
    assert_ne!(current, other_scheme);
}

#[test]
fn case_c7_the_order_of_maps_and_sets_does_not_count() {
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct Unordered {
        map: HashMap<String, u32>,
        set: HashSet<String>,
    }
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct Ordered {
        map: BTreeMap<String, u32>,
        set: BTreeSet<String>,
    }

    let names = ["tea", "milk", "sugar", "a"].map(String::from);
    let hashes: HashSet<String> = (0..50)
        .map(|_| {
            let map = names.iter().cloned().zip(1..).collect();
            let set = names.iter().cloned().collect();
            RequestDigest::of(&Unordered { map, set }).unwrap().to_hex()
        })
        .collect();
    // A constant, because another process must agree, too.
    let expected = "01e48ac7781f956990070824bc686e7d1b6e259176cdfb800e0edeb97ccc9a1cf1";
    assert_eq!(hashes, HashSet::from([expected.to_owned()]));
    let ordered = Ordered {
        map: names.iter().cloned().zip(1..).collect(),
        set: names.iter().cloned().collect(),
    };
    assert_eq!(RequestDigest::of(&ordered).unwrap().to_hex(), expected);
}

#[test]
fn where_one_value_ends_counts() {
    differ(&("ab", "c"), &("a", "bc"));
    differ(&["ab", "c"], &["a", "bc"]);
    differ(&(vec![1, 2], vec![3]), &(vec![1], vec![2, 3]));
    differ(&vec![vec![0_u16; 0]; 2], &vec![vec![0_u16; 0]; 1]);
    differ(&"", &None::<u8>);
    differ(&"", &Vec::<u8>::new());
    differ(&0, &false);
    differ(&"1", &1);
    differ(&1, &1.0);
    differ(&[1_u16, 2], &(1, 2));
    differ(&BTreeSet::from([1_u16]), &[1_u16]);
    differ(&(1,), &1);
    differ(&(), &None::<u8>);
}

#[test]
fn an_integer_that_grows_keeps_its_hash() {
    for small in [0_u8, 1, 127, 128, 255] {
        same(&small, &u16::from(small));
        same(&small, &u32::from(small));
        same(&small, &u64::from(small));
        same(&small, &u128::from(small));
        same(&small, &usize::from(small));
        same(&small, &i64::from(small));
        same(&small, &i128::from(small));
    }
    for small in [i8::MIN, -1, 0, i8::MAX] {
        same(&small, &i16::from(small));
        same(&small, &i32::from(small));
        same(&small, &i64::from(small));
        same(&small, &i128::from(small));
        same(&small, &isize::from(small));
    }
    same(&NonZeroU8::MAX, &255_u64);
    same(&NonZeroI128::MIN, &i128::MIN);
    differ(&1, &-1);
    differ(&u64::MAX, &-1_i64);
    differ(&i128::MIN, &i128::MAX);
    differ(&u128::MAX, &(u128::MAX - 1));
    differ(&256, &1);
    same(&0.5_f32, &0.5_f64);
}

#[test]
fn wrappers_are_transparent() {
    let text = "tea".to_owned();
    same("tea", &text);
    same("tea", &&&text);
    same("tea", &Box::<str>::from("tea"));
    same("tea", &Rc::<str>::from("tea"));
    same("tea", &Arc::new(text.clone()));
    same("tea", &Cow::Borrowed("tea"));
    same("tea", &Cow::<str>::Owned(text.clone()));
    same("tea", &&mut text.clone());
    same("t", &'t');
    same(&[1_u16, 2], &vec![1, 2]);
    same(&[1_u16, 2][..], &VecDeque::from([1, 2]));
    same(&1, &(Box::new(1) as Box<dyn RequestHash>));
}

#[test]
fn bytes_are_one_string_however_they_are_held() {
    let expected = [6, 0, 0, 0, 3, 1, 2, 3];
    assert_eq!(bytes(&[1_u8, 2, 3]), expected);
    assert_eq!(bytes(&vec![1_u8, 2, 3]), expected);
    assert_eq!(bytes(&[1_u8, 2, 3][..]), expected);
    assert_eq!(bytes(&Box::<[u8]>::from([1, 2, 3])), expected);
    assert_eq!(bytes(&Cow::<[u8]>::Borrowed(&[1, 2, 3])), expected);
    let mut turned = VecDeque::from([2_u8, 3]);
    turned.push_front(1);
    assert_eq!(bytes(&turned), expected);
    assert_eq!(bytes(&Vec::<u8>::new()), [6, 0, 0, 0, 0]);
    differ(&[1_u8, 2, 3], &[1_u16, 2, 3]);
}

#[test]
fn every_depth_of_an_option_differs() {
    let depths: [Option<Option<Option<u8>>>; 4] =
        [None, Some(None), Some(Some(None)), Some(Some(Some(0)))];
    let distinct: HashSet<_> = depths.iter().map(bytes).collect();
    assert_eq!(distinct.len(), depths.len());
    same(&Some(Some(7)), &7);
    same(&Some(Box::new(None::<u8>)), &Some(None::<u8>));

    let mut deep = [0, 0, 0, 0, 1, 3].to_vec();
    assert_eq!(bytes(&Some(Some(Some(None::<u8>)))), deep);
    deep[5] = 2;
    assert_eq!(bytes(&Some(Some(None::<u8>))), deep);
}

#[test]
fn a_field_that_becomes_optional_keeps_the_hash() {
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct Before {
        note: String,
    }
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct After<'a> {
        note: Option<&'a str>,
    }

    same(&Before { note: "x".into() }, &After { note: Some("x") });
    differ(
        &Before {
            note: String::new(),
        },
        &After { note: None },
    );
}

#[test]
fn only_an_outer_none_adds_nothing() {
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct Patch {
        name: Option<Option<String>>,
    }

    let [unchanged, cleared, set] =
        [None, Some(None), Some(Some(String::new()))].map(|name| bytes(&Patch { name }));
    assert_eq!(unchanged, [9, 0, 0, 0, 0]);
    assert_ne!(unchanged, cleared);
    assert_ne!(cleared, set);
    assert_ne!(unchanged, set);
}

#[test]
fn a_none_counts_where_positions_count() {
    differ(&(None::<u8>, 1), &(1,));
    differ(&[Some(1), None], &[None, Some(1)]);
    differ(&[None::<u8>], &[None::<u8>; 2]);
    differ(&vec![None::<u8>], &Vec::<Option<u8>>::new());
    differ(
        &BTreeMap::from([("a", None::<u8>)]),
        &BTreeMap::<&str, Option<u8>>::new(),
    );
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "a default has the type of its field"
)]
fn ten() -> Option<u32> {
    Some(10)
}

#[test]
fn a_default_adds_nothing_and_a_none_beside_it_does() {
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct Old {
        id: u8,
    }
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct New {
        id: u8,
        #[request_hash(default)]
        retries: u32,
        #[request_hash(default = ten)]
        limit: Option<u32>,
    }

    let new = |retries, limit| New {
        id: 1,
        retries,
        limit,
    };
    same(&Old { id: 1 }, &new(0, Some(10)));
    differ(&Old { id: 1 }, &new(1, Some(10)));
    differ(&Old { id: 1 }, &new(0, Some(11)));
    differ(&Old { id: 1 }, &new(0, None));
}

fn lower_case(text: &str, encoder: &mut Encoder) {
    text.to_lowercase().encode(encoder);
}

#[test]
fn words_of_fields_do_what_they_say() {
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct Written {
        #[request_hash(skip)]
        _trace: PhantomData<fn()>,
        #[request_hash(with = lower_case)]
        email: String,
        #[request_hash(rename = "type")]
        kind: u8,
        #[request_hash(default, with = lower_case, rename = "lang")]
        language: String,
    }
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct Plain {
        r#type: u8,
        lang: Option<String>,
        email: &'static str,
    }

    let written = |language: &str| Written {
        _trace: PhantomData,
        email: "ADA".into(),
        kind: 1,
        language: language.into(),
    };
    let plain = |lang: Option<&str>| Plain {
        r#type: 1,
        lang: lang.map(Into::into),
        email: "ada",
    };
    same(&written("EN"), &plain(Some("en")));
    same(&written(""), &plain(None));
}

#[test]
fn types_have_no_name_and_fields_have_no_order() {
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct One {
        bb: u8,
        a: u8,
        c: u8,
    }
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct Other {
        c: u64,
        a: u64,
        bb: u64,
    }

    let one = One { bb: 2, a: 1, c: 3 };
    same(&one, &Other { c: 3, a: 1, bb: 2 });
    differ(&one, &Other { c: 1, a: 3, bb: 2 });
    let fields = RequestDigest::of_fields(&[("c", &3), ("bb", &2), ("a", &1)]);
    assert_eq!(RequestDigest::of(&one), fields);
    let permuted = RequestDigest::of_fields(&[("a", &1), ("c", &3), ("bb", &2)]);
    assert_eq!(RequestDigest::of(&one), permuted);
}

#[test]
fn newtypes_are_transparent_and_tuples_are_tuples() {
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct Id(u64);
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct Marked(u64, #[request_hash(skip)] PhantomData<u8>);
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct Pair(u64, Option<u8>);
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct Unit;
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct NoFields {}
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct Named {
        id: u64,
    }

    same(&Id(7), &7);
    same(&Marked(7, PhantomData), &7);
    same(&Pair(7, None), &(7, None::<u8>));
    same(&Unit, &NoFields {});
    differ(&Named { id: 7 }, &7);
    differ(&Unit, &());
}

#[test]
fn variants_count_by_name_and_content() {
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    enum Method {
        Cash,
        Voucher(),
        Card(u32),
        Transfer(u32, u32),
        Sepa {
            iban: String,
            note: Option<String>,
        },
        #[request_hash(rename = "Cheque")]
        Check,
    }
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    enum Later {
        Cheque,
        Sepa { iban: String },
        Cash { note: Option<String> },
    }
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    enum Never {}

    let iban = || "NL01".to_owned();
    let note = None;
    let all = [
        bytes(&Method::Cash),
        bytes(&Method::Voucher()),
        bytes(&Method::Card(1)),
        bytes(&Method::Card(2)),
        bytes(&Method::Transfer(1, 2)),
        bytes(&Method::Sepa { iban: iban(), note }),
        bytes(&Method::Check),
    ];
    assert_eq!(HashSet::from(all.clone()).len(), all.len());
    same(
        &Method::Sepa {
            iban: iban(),
            note: None,
        },
        &Later::Sepa { iban: iban() },
    );
    same(&Method::Cash, &Later::Cash { note: None });
    differ(&Method::Cash, &Later::Cash { note: Some(iban()) });
    same(&Method::Check, &Later::Cheque);
    same(&None::<Never>, &None::<u8>);
}

#[test]
fn generic_and_recursive_types_are_hashed() {
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct Node<T, M> {
        next: Option<Box<Node<T, M>>>,
        value: T,
        marker: PhantomData<M>,
    }
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct Typed<T, I: Iterator, const N: usize> {
        id: [u64; N],
        items: Vec<I::Item>,
        of: PhantomData<T>,
    }
    struct NotHashed;

    fn list<T>(first: T, second: T) -> Node<T, NotHashed> {
        let node = |value, next| Node {
            next,
            value,
            marker: PhantomData,
        };
        node(first, Some(Box::new(node(second, None))))
    }
    same(&list(1_u8, 2), &list(1_u64, 2));
    differ(&list(1, 2), &list(2, 1));
    let typed = Typed::<NotHashed, std::ops::Range<u8>, 2> {
        id: [1, 2],
        items: vec![3],
        of: PhantomData,
    };
    assert_eq!(
        RequestDigest::of(&typed),
        RequestDigest::of_fields(&[("items", &vec![3_u8]), ("id", &[1, 2])])
    );
}

#[test]
fn an_error_names_the_way_to_the_field() {
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    struct Order {
        id: u8,
        items: Vec<Item>,
    }
    #[derive(RequestHash)]
    #[request_hash(crate = idem_core)]
    enum Item {
        Priced { price: f64 },
        Free(f64),
        Span((u8, f32)),
        Table(BTreeMap<String, f64>),
    }

    let order = |wrong| Order {
        id: 1,
        items: vec![Item::Free(0.0), wrong],
    };
    let check = |wrong, path: &str| {
        refused(
            &order(wrong),
            path,
            &format!("no request hash: `{path}` is not a number"),
        );
    };
    check(Item::Priced { price: f64::NAN }, "items[1].Priced.price");
    check(Item::Free(f64::NAN), "items[1].Free");
    check(Item::Span((0, f32::NAN)), "items[1].Span[1]");
    check(
        Item::Table(BTreeMap::from([("secret".into(), f64::NAN)])),
        "items[1].Table[..]",
    );
    refused(
        &vec![Some(f64::INFINITY), Some(f64::NAN)],
        "[0]",
        "no request hash: `[0]` is infinite",
    );
}

#[test]
fn an_implementation_that_does_not_write_one_value_is_refused() {
    struct Values(u8);
    impl RequestHash for Values {
        fn encode(&self, encoder: &mut Encoder) {
            (0..self.0).for_each(|number| number.encode(encoder));
        }
    }

    same(&Values(1), &0);
    for wrong in [0, 2] {
        let problem = "was not written as exactly one value";
        refused(
            &Values(wrong),
            "",
            &format!("no request hash: the value {problem}"),
        );
        refused(
            &[Values(wrong)],
            "[0]",
            &format!("no request hash: `[0]` {problem}"),
        );
        refused(
            &Some(Values(wrong)),
            "",
            &format!("no request hash: the value {problem}"),
        );
    }
    let twice = RequestDigest::of_fields(&[("a", &1), ("b", &1), ("a", &2)]).unwrap_err();
    assert_eq!(
        twice.to_string(),
        "no request hash: the value has two fields of one name"
    );
}

#[test]
fn durations_are_compared_by_length() {
    same(&Duration::from_millis(1500), &Duration::new(1, 500_000_000));
    differ(&Duration::from_secs(1), &1_000_000_000);
    assert!(RequestDigest::of(&Duration::MAX).is_ok());
}

#[test]
fn the_public_types_can_be_sent() {
    fn check<T: Send + Sync + Clone + std::fmt::Debug + 'static>() {}
    check::<RequestDigest>();
    check::<HashError>();
}

#[cfg(feature = "chrono")]
#[test]
fn times_are_compared_by_value() {
    use chrono::{DateTime, FixedOffset, NaiveDate, TimeDelta, Utc};

    let berlin: DateTime<FixedOffset> = "2026-03-01T12:00:00.5+01:00".parse().unwrap();
    let utc: DateTime<Utc> = "2026-03-01T11:00:00.5Z".parse().unwrap();
    same(&berlin, &utc);
    differ(&utc, &utc.naive_utc());
    differ(&berlin.naive_local(), &utc.naive_utc());
    differ(&utc.date_naive(), &utc.time());
    let day = NaiveDate::from_ymd_opt(2026, 3, 1).unwrap();
    let leap = day.and_hms_nano_opt(23, 59, 59, 1_500_000_000).unwrap();
    let next = day
        .succ_opt()
        .unwrap()
        .and_hms_nano_opt(0, 0, 0, 500_000_000)
        .unwrap();
    differ(&leap, &next);
    differ(&leap.and_utc(), &next.and_utc());
    differ(&leap.time(), &next.time());
    same(&TimeDelta::milliseconds(1500), &Duration::from_millis(1500));
    differ(
        &TimeDelta::milliseconds(1500),
        &TimeDelta::milliseconds(-1500),
    );
    differ(
        &TimeDelta::milliseconds(-500),
        &TimeDelta::milliseconds(-1500),
    );
    for extreme in [TimeDelta::MIN, TimeDelta::MAX] {
        assert!(RequestDigest::of(&extreme).is_ok());
    }
    for extreme in [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC] {
        assert!(RequestDigest::of(&extreme).is_ok());
    }
}

#[cfg(feature = "rust_decimal")]
#[test]
fn decimals_are_compared_by_value() {
    use rust_decimal::Decimal;

    let decimal = |text: &str| text.parse::<Decimal>().unwrap();
    same(&decimal("1.0"), &decimal("1.00"));
    same(&decimal("-0"), &decimal("0.000"));
    same(&decimal("1200"), &Json("12e2"));
    same(&decimal("-0.00000000000000000000000001"), &Json("-1e-26"));
    differ(&decimal("1"), &decimal("10"));
    differ(&decimal("1"), &decimal("-1"));
    for extreme in [Decimal::MIN, Decimal::MAX] {
        same(&extreme, &Json(extreme.to_string()));
    }
}
