//! Nothing of the standard prelude is in scope where the attribute expands.

#![no_implicit_prelude]

mod handlers {
    use ::diesel::RunQueryDsl as _;
    use ::idem_diesel::idempotent;
    use ::std::result::Result::Ok;

    #[derive(::idem_diesel::RequestHash)]
    pub struct PayOrder {
        pub order_id: i64,
    }

    #[idempotent(scope = "pay", ttl = "48h")]
    pub fn pay(
        db: &mut ::diesel::SqliteConnection,
        intent: &::idem_diesel::Intent,
        PayOrder { order_id }: PayOrder,
    ) -> ::diesel::QueryResult<i64> {
        ::diesel::sql_query("SELECT 1").execute(db)?;
        Ok(order_id)
    }

    #[idempotent(scope = "note", ttl = "48h")]
    pub fn note(
        db: &mut ::diesel::SqliteConnection,
        intent: ::std::option::Option<::idem_diesel::Intent>,
        text: &str,
        amount: i64,
    ) -> ::diesel::QueryResult<i64> {
        ::diesel::sql_query("SELECT 1").execute(db)?;
        Ok(amount)
    }
}

mod asynchronous {
    use ::diesel_async::RunQueryDsl as _;
    use ::idem_diesel::idempotent;
    use ::std::result::Result::Ok;

    #[idempotent(scope = "pay_async", ttl = "48h")]
    pub async fn pay(
        db: &mut ::diesel_async::AsyncPgConnection,
        intent: &::idem_diesel::Intent,
        text: &str,
        amount: i64,
    ) -> ::diesel::QueryResult<i64> {
        ::diesel::sql_query("SELECT 1").execute(db).await?;
        Ok(amount)
    }
}

mod application {
    use ::diesel::prelude::*;
    use ::idem_diesel::{IdempotencyKey, Intent, Tenant, ensure_schema};
    use ::std::assert_eq;
    use ::std::prelude::v1::*;

    fn database() -> SqliteConnection {
        let mut db = SqliteConnection::establish(":memory:").unwrap();
        ensure_schema(&mut db).unwrap();
        db
    }

    fn intent(key: &str) -> Intent {
        Intent::new(
            Tenant::of("acme", "alice").unwrap(),
            IdempotencyKey::new(key).unwrap(),
        )
    }

    pub fn main() {
        let db = &mut database();
        let _ = super::asynchronous::pay;
        let order = super::handlers::PayOrder { order_id: 7 };
        assert_eq!(super::handlers::pay(db, &intent("1"), order).unwrap(), 7);
        assert_eq!(
            super::handlers::note(db, Some(intent("2")), "seven", 7).unwrap(),
            7
        );
    }
}

fn main() {
    application::main();
}
