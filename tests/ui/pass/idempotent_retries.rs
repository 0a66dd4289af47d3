//! `retries` with everything that a run of the body may keep.
#![forbid(unsafe_code)]
#![deny(warnings, clippy::pedantic)]

use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use diesel_async::AsyncPgConnection;
use idem_diesel::{Error, IdempotencyKey, Intent, Outcome, RequestHash, Tenant, idempotent};

#[derive(Clone, RequestHash)]
struct Line {
    id: i64,
    name: String,
}

struct Desk {
    served: Vec<String>,
}

impl Desk {
    #[idempotent(scope = "desk.serve", ttl = "48h", retries = 3)]
    fn serve(
        &mut self,
        db: &mut SqliteConnection,
        intent: Intent,
        mut first: Line,
        #[idempotent(name = "second")] Line { id, name }: Line,
        #[idempotent(skip)] mark: String,
    ) -> Result<Outcome<String>, Error> {
        diesel::sql_query("SELECT 1").execute(db)?;
        first.name.push_str(&name);
        self.served.push(first.name);
        drop(intent);
        Ok(format!("{id}{mark}").into())
    }

    #[idempotent(scope = "desk.close", ttl = "48h", retries = 1)]
    async fn close(
        &mut self,
        db: &mut AsyncPgConnection,
        intent: Option<Intent>,
        cmd: Line,
    ) -> QueryResult<usize> {
        let _ = cmd.id;
        self.served.push(cmd.name);
        diesel_async::RunQueryDsl::execute(diesel::sql_query("SELECT 1"), db).await
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut db = <SqliteConnection as diesel::Connection>::establish(":memory:")?;
    idem_diesel::ensure_schema(&mut db)?;
    let mut desk = Desk { served: Vec::new() };
    let _ = Desk::close;
    let intent = Intent::new(Tenant::shared("acme")?, IdempotencyKey::new("k")?);
    let line = |id, name: &str| Line {
        id,
        name: name.to_owned(),
    };
    for _ in 0..2 {
        let answer = desk.serve(
            &mut db,
            intent.clone(),
            line(1, "a"),
            line(2, "b"),
            "!".to_owned(),
        )?;
        assert_eq!(answer.get(), "2!");
    }
    assert!(desk.served.iter().all(|served| served == "ab"));
    Ok(())
}
