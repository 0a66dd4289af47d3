use idem_diesel::RequestHash;

#[derive(RequestHash)]
union Amount {
    cents: i64,
    whole: i32,
}

fn main() {}
