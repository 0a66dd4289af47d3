use diesel::QueryResult;
use idem_diesel::{Intent, idempotent};

#[idempotent(scope = "orders.pay", ttl = "48h")]
fn pay(db: &mut Vec<u8>, intent: &Intent) -> QueryResult<usize> {
    db.push(1);
    Ok(db.len())
}

fn main() {}
