//! Which requests are the same: replayed, or refused as another.

use std::collections::{HashMap, HashSet};

use idem_diesel::request_hash::Json;
use idem_diesel::{Error, ErrorKind, Operation, Outcome, RequestHash, Retention, idempotent_sync};

use crate::backend::{Backend, SqliteSync, intent};

const SEND: Operation = Operation::new("tests.send", Retention::literal("48h"));

/// What a sequence of requests under one key gets.
#[derive(Debug, PartialEq, Eq)]
enum Got {
    Executed,
    Replayed,
    Mismatch,
}

/// Sends requests under one key, one after the other.
struct Key(crate::backend::Place, diesel::SqliteConnection);

impl Key {
    fn new() -> Self {
        use diesel::Connection;
        let place = SqliteSync::place();
        let db = diesel::SqliteConnection::establish(place.url()).unwrap();
        Self(place, db)
    }

    fn send(&mut self, request: &impl RequestHash) -> Got {
        let body = |_: &mut _, _: &_| Ok::<_, Error>(Outcome::from(1));
        match idempotent_sync(&mut self.1, &intent("k"), &SEND, request, body) {
            Ok(outcome) if outcome.is_replayed() => Got::Replayed,
            Ok(_) => Got::Executed,
            Err(error) if error.kind() == &ErrorKind::Mismatch => Got::Mismatch,
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn case_c1_member_order_of_json_does_not_count_and_element_order_does() {
    let mut key = Key::new();
    let body = Json(br#"{"b":1,"a":{"d":4,"c":[{"y":2,"x":1}]}}"#.as_slice());
    assert_eq!(key.send(&body), Got::Executed);
    let reordered = Json(br#"{ "a": {"c":[{"x":1,"y":2}], "d":4}, "b":1 }"#.as_slice());
    assert_eq!(key.send(&reordered), Got::Replayed);

    let mut key = Key::new();
    assert_eq!(key.send(&Json(b"[1,2]".as_slice())), Got::Executed);
    assert_eq!(key.send(&Json(b"[2,1]".as_slice())), Got::Mismatch);
}

#[test]
fn case_c2_numbers_count_by_value() {
    let mut key = Key::new();
    assert_eq!(
        key.send(&Json(br#"{"amount":1}"#.as_slice())),
        Got::Executed
    );
    for same in [
        r#"{"amount":1.0}"#,
        r#"{"amount":1e0}"#,
        r#"{"amount":10e-1}"#,
    ] {
        assert_eq!(key.send(&Json(same.as_bytes())), Got::Replayed, "{same}");
    }
    assert_eq!(
        key.send(&Json(br#"{"amount":1.01}"#.as_slice())),
        Got::Mismatch
    );

    let mut key = Key::new();
    assert_eq!(key.send(&0.0_f64), Got::Executed);
    assert_eq!(key.send(&-0.0_f64), Got::Replayed);
}

#[test]
fn case_c4_no_value_is_not_a_number_that_is_none() {
    #[derive(RequestHash)]
    struct Measured {
        x: Option<f64>,
    }
    let mut key = Key::new();
    assert_eq!(key.send(&Measured { x: None }), Got::Executed);
    let body = |_: &mut _, _: &_| Ok::<_, Error>(1);
    for x in [f64::NAN, f64::INFINITY] {
        let request = Measured { x: Some(x) };
        let refused = idempotent_sync(&mut key.1, &intent("k"), &SEND, &request, body).unwrap_err();
        assert_eq!(refused.kind(), &ErrorKind::Unhashable);
        assert!(std::error::Error::source(&refused).is_some());
    }
    assert_eq!(key.send(&Measured { x: Some(0.0) }), Got::Mismatch);
}

#[test]
fn case_c5_an_added_optional_field_keeps_honest_retries() {
    mod v1 {
        #[derive(idem_diesel::RequestHash)]
        pub struct Pay {
            pub amount: u32,
        }
    }
    #[derive(RequestHash)]
    struct Pay {
        note: Option<String>,
        amount: u64,
    }
    let mut key = Key::new();
    assert_eq!(key.send(&v1::Pay { amount: 1 }), Got::Executed);
    assert_eq!(
        key.send(&Pay {
            amount: 1,
            note: None
        }),
        Got::Replayed
    );
    let with_note = Pay {
        amount: 1,
        note: Some("x".into()),
    };
    assert_eq!(key.send(&with_note), Got::Mismatch);

    // A row of a scheme that this build does not know is refused by another name, never matched by less.
    key.0
        .run("UPDATE api_idempotency SET request_hash = '02' || substr(request_hash, 3)");
    let body = |_: &mut _, _: &_| Ok::<_, Error>(1);
    let refused = idempotent_sync(
        &mut key.1,
        &intent("k"),
        &SEND,
        &v1::Pay { amount: 1 },
        body,
    )
    .unwrap_err();
    assert_eq!(refused.kind(), &ErrorKind::SchemeChanged { stored: 2 });
}

#[test]
fn case_c7_maps_and_sets_have_no_order() {
    #[derive(RequestHash)]
    struct Tags {
        map: HashMap<String, i32>,
        set: HashSet<String>,
    }
    let mut key = Key::new();
    let names = ["a", "b", "c", "d"];
    for round in 0..50 {
        let mut names = names.map(str::to_owned);
        names.rotate_left(round % 4);
        let tags = Tags {
            map: names.iter().cloned().map(|name| (name, 1)).collect(),
            set: names.into_iter().collect(),
        };
        let expected = if round == 0 {
            Got::Executed
        } else {
            Got::Replayed
        };
        assert_eq!(key.send(&tags), expected);
    }
}

/// Case A13 (b): the same operation from a function that was renamed and moved.
#[test]
fn case_a13_a_function_that_was_renamed_and_moved_knows_its_keys() {
    use idem_diesel::{Intent, idempotent};

    #[idempotent(scope = "charge.v1", ttl = "48h")]
    fn charge(
        _db: &mut diesel::SqliteConnection,
        _intent: &Intent,
        amount: i64,
    ) -> Result<Outcome<i64>, Error> {
        Ok(amount.into())
    }
    mod billing {
        use idem_diesel::{Error, Intent, Outcome, idempotent};

        #[idempotent(scope = "charge.v1", ttl = "48h")]
        pub fn take_payment(
            _db: &mut diesel::SqliteConnection,
            _intent: &Intent,
            amount: i64,
        ) -> Result<Outcome<i64>, Error> {
            Ok((amount + 1).into())
        }
        #[idempotent(scope = "refund.v1", ttl = "48h")]
        pub fn refund(
            _db: &mut diesel::SqliteConnection,
            _intent: &Intent,
            amount: i64,
        ) -> Result<Outcome<i64>, Error> {
            Ok((-amount).into())
        }
    }
    let mut key = Key::new();
    assert_eq!(
        charge(&mut key.1, &intent("k"), 7).unwrap(),
        Outcome::Executed(7)
    );
    let moved = billing::take_payment(&mut key.1, &intent("k"), 7).unwrap();
    assert!(moved.is_replayed());
    assert_eq!(*moved.get(), 7);
    // (a) Another operation with the same key and payload is its own.
    assert_eq!(
        billing::refund(&mut key.1, &intent("k"), 7).unwrap(),
        Outcome::Executed(-7)
    );
    assert_eq!(key.0.records(), 2);
}

/// Several parameters are one request, whatever order they stand in.
#[test]
fn several_parameters_are_hashed_by_name() {
    use idem_diesel::{Intent, idempotent};

    #[idempotent(scope = "tests.several", ttl = "48h")]
    fn first(
        _db: &mut diesel::SqliteConnection,
        _intent: &Intent,
        amount: i64,
        to: &str,
        #[idempotent(skip)] _trace: &str,
    ) -> Result<Outcome<i64>, Error> {
        let _ = to;
        Ok(amount.into())
    }
    #[idempotent(scope = "tests.several", ttl = "48h")]
    fn second(
        to: &str,
        #[idempotent(name = "amount")] cents: u32,
        _intent: &Intent,
        _db: &mut diesel::SqliteConnection,
    ) -> Result<Outcome<i64>, Error> {
        let _ = to;
        Ok(i64::from(cents).into())
    }
    let mut key = Key::new();
    assert!(
        !first(&mut key.1, &intent("k"), 7, "bob", "t1")
            .unwrap()
            .is_replayed()
    );
    assert!(
        first(&mut key.1, &intent("k"), 7, "bob", "t2")
            .unwrap()
            .is_replayed()
    );
    assert!(
        second("bob", 7, &intent("k"), &mut key.1)
            .unwrap()
            .is_replayed()
    );
    let refused = second("eve", 7, &intent("k"), &mut key.1).unwrap_err();
    assert_eq!(refused.kind(), &ErrorKind::Mismatch);
}
