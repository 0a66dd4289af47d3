use idem_diesel::consumer;

#[consumer(subscriber = "billing", retention = "7d")]
struct Bill;

fn main() {
    let _ = Bill;
}
