//! Answers of every shape come back as they were, and an empty one is an answer.

use std::collections::BTreeMap;

use idem_diesel::{Error, Operation, Outcome, Retention, idempotent_sync};
use serde::{Deserialize, Serialize};

use crate::backend::{Backend, PgSync, Place, SqliteSync, intent};

const VALUE: Operation = Operation::new("tests.value", Retention::literal("48h"));

/// Runs a handler that answers `$value`, twice, on both databases, and compares.
macro_rules! survives {
    ($value:expr) => {{
        for place in [SqliteSync::place(), PgSync::place()] {
            let value = $value;
            let mut answers = Vec::new();
            let mut bodies = 0;
            for _ in 0..2 {
                let mut body = || {
                    bodies += 1;
                    Ok::<_, Error>(Outcome::from(value.clone()))
                };
                let answer = match &place {
                    Place::Sqlite(file) => {
                        let mut db =
                            <diesel::SqliteConnection as diesel::Connection>::establish(file.url())
                                .unwrap();
                        idempotent_sync(&mut db, &intent("k"), &VALUE, &1, |_, _| body())
                    }
                    Place::Postgres(database) => {
                        let mut db =
                            <diesel::PgConnection as diesel::Connection>::establish(database.url())
                                .unwrap();
                        idempotent_sync(&mut db, &intent("k"), &VALUE, &1, |_, _| body())
                    }
                };
                answers.push(answer.unwrap());
            }
            assert_eq!(bodies, 1);
            assert!(!answers[0].is_replayed() && answers[1].is_replayed());
            assert_eq!(answers[0].get(), &value);
            assert_eq!(answers[1].get(), &value);
        }
    }};
}

#[test]
fn case_d1_empty_answers_are_answers() {
    survives!(());
    survives!(None::<i32>);
    survives!(String::new());
    survives!(Vec::<i32>::new());
    survives!(BTreeMap::<String, i32>::new());
    survives!(serde_json::json!({}));
    survives!(serde_json::Value::Null);
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Signed {
    z: String,
    a: i32,
    m: f64,
}

#[test]
fn case_d3_every_text_and_order_survives() {
    survives!("a\u{0}b \u{1f600} \u{feff}".to_owned());
    let signed = || Signed {
        z: "\u{0}".into(),
        a: 1,
        m: 2e2,
    };
    survives!(signed());

    // The bytes keep the order of the members, which a client's signature may cover.
    let place = PgSync::place();
    let mut db = <diesel::PgConnection as diesel::Connection>::establish(place.url()).unwrap();
    idempotent_sync(&mut db, &intent("k"), &VALUE, &1, |_, _| {
        Ok::<_, Error>(signed())
    })
    .unwrap();
    assert_eq!(
        place
            .text("SELECT response_text FROM api_idempotency_readable")
            .as_deref(),
        Some(r#"{"z":"\u0000","a":1,"m":200.0}"#)
    );
}
