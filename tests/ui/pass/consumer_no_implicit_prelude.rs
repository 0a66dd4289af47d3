//! Nothing of the standard prelude is in scope where the attribute expands.

#![no_implicit_prelude]

mod handlers {
    use ::diesel::RunQueryDsl as _;
    use ::idem_diesel::consumer;
    use ::std::convert::Into as _;
    use ::std::result::Result::Ok;

    #[derive(::idem_diesel::RequestHash)]
    pub struct OrderPaid {
        pub order_id: i64,
    }

    #[consumer(subscriber = "bill", retention = "7d", redelivery = "1d")]
    pub fn bill(
        db: &mut ::diesel::SqliteConnection,
        id: &::idem_diesel::MessageId,
        OrderPaid { order_id }: OrderPaid,
    ) -> ::diesel::QueryResult<::idem_diesel::Consumed<i64>> {
        ::diesel::sql_query("SELECT 1").execute(db)?;
        Ok(order_id.into())
    }

    #[consumer(subscriber = "note", retention = "7d")]
    pub fn note(
        db: &mut ::diesel::SqliteConnection,
        id: ::idem_diesel::MessageId,
        intent: ::std::option::Option<::idem_diesel::Intent>,
        text: &str,
        amount: i64,
    ) -> ::diesel::QueryResult<()> {
        ::diesel::sql_query("SELECT 1").execute(db)?;
        Ok(())
    }
}

mod asynchronous {
    use ::diesel_async::RunQueryDsl as _;
    use ::idem_diesel::consumer;
    use ::std::result::Result::Ok;

    #[consumer(subscriber = "bill_async", retention = "7d")]
    pub async fn bill(
        db: &mut ::diesel_async::AsyncPgConnection,
        id: &::idem_diesel::MessageId,
        text: &str,
        amount: i64,
    ) -> ::diesel::QueryResult<()> {
        ::diesel::sql_query("SELECT 1").execute(db).await?;
        Ok(())
    }
}

mod application {
    use ::diesel::prelude::*;
    use ::idem_diesel::{Consumed, MessageId, ensure_schema};
    use ::std::assert_eq;
    use ::std::prelude::v1::*;

    fn database() -> SqliteConnection {
        let mut db = SqliteConnection::establish(":memory:").unwrap();
        ensure_schema(&mut db).unwrap();
        db
    }

    pub fn main() {
        let db = &mut database();
        let _ = super::asynchronous::bill;
        let id = MessageId::new("1").unwrap();
        let order = super::handlers::OrderPaid { order_id: 7 };
        let billed = super::handlers::bill(db, &id, order).unwrap();
        assert_eq!(billed, Consumed::Processed(7));
        super::handlers::note(db, id, None, "seven", 7).unwrap();
    }
}

fn main() {
    application::main();
}
