use idem_diesel::idempotent;

#[idempotent(scope = "orders.pay", ttl = "48h")]
struct PayOrder;

fn main() {
    let _ = PayOrder;
}
