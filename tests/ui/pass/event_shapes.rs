//! Every shape of an event.

use std::borrow::Cow;
use std::fmt::Display;

use idem_diesel::Event;
use serde::Serialize;

#[derive(Serialize, Event)]
#[event(type = "order.placed", aggregate_type = "order")]
struct OrderPlaced {
    #[event(aggregate_id)]
    order_id: i64,
    amount_cents: i64,
}

#[derive(Serialize, Event)]
#[event(type = "order.noted")]
#[event(aggregate_type = "order", crate = idem_diesel)]
struct OrderNoted(String, #[event(aggregate_id)] OrderId);

#[derive(Serialize)]
struct OrderId(i64);

impl Display for OrderId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "order-{}", self.0)
    }
}

#[derive(Serialize, Event)]
#[event(aggregate_type = "cart")]
enum CartEvent<'a> {
    #[event(type = "cart.opened")]
    Opened {
        #[event(aggregate_id)]
        r#type: &'a str,
        id: i64,
    },
    #[event(type = "cart.closed")]
    Closed(#[event(aggregate_id)] Cow<'a, str>),
}

#[derive(Serialize, Event)]
#[event(aggregate_type = "nothing")]
enum Never {}

#[derive(Serialize, Event)]
#[event(type = "generic.happened", aggregate_type = "generic")]
struct Happened<'a, K, T: ?Sized, const N: usize>
where
    K: Serialize,
    T: Serialize,
{
    #[event(aggregate_id)]
    key: K,
    what: &'a T,
    #[serde(skip)]
    rest: [K; N],
}

trait Keyed {
    type Key: Serialize;
}

struct Orders;

impl Keyed for Orders {
    type Key = u32;
}

#[derive(Serialize, Event)]
#[event(aggregate_type = "keyed")]
#[serde(bound = "")]
enum KeyedEvent<K: Keyed> {
    #[event(type = "keyed.created")]
    Created(#[event(aggregate_id)] K::Key),
    #[event(type = "keyed.removed")]
    Removed(#[event(aggregate_id)] K::Key),
}

macro_rules! event {
    ($name:ident, $type:literal, $key:ident: $key_type:ty) => {
        #[derive(Serialize, Event)]
        #[event(type = $type, aggregate_type = "generated")]
        struct $name {
            #[event(aggregate_id)]
            $key: $key_type,
        }
    };
}

event!(Generated, "generated.happened", number: u8);

#[track_caller]
fn check(event: &impl Event, [event_type, aggregate_type, id]: [&str; 3]) {
    assert_eq!(event.event_type(), event_type);
    assert_eq!(event.aggregate_type(), aggregate_type);
    assert_eq!(event.aggregate_id(), id);
}

fn main() {
    let placed = OrderPlaced {
        order_id: 7,
        amount_cents: 500,
    };
    check(&placed, ["order.placed", "order", "7"]);
    assert_eq!(placed.amount_cents, 500);
    let noted = OrderNoted("note".to_owned(), OrderId(7));
    check(&noted, ["order.noted", "order", "order-7"]);
    assert_eq!(noted.0, "note");
    let opened = CartEvent::Opened { r#type: "a", id: 1 };
    check(&opened, ["cart.opened", "cart", "a"]);
    let closed = CartEvent::Closed("b".into());
    check(&closed, ["cart.closed", "cart", "b"]);
    assert!(None::<Never>.is_none());
    let happened = Happened {
        key: 'k',
        what: "text",
        rest: ['a', 'b'],
    };
    check(&happened, ["generic.happened", "generic", "k"]);
    assert_eq!((happened.what, happened.rest.len()), ("text", 2));
    let created = KeyedEvent::<Orders>::Created(7);
    check(&created, ["keyed.created", "keyed", "7"]);
    let removed = KeyedEvent::<Orders>::Removed(8);
    check(&removed, ["keyed.removed", "keyed", "8"]);
    check(
        &Generated { number: 9 },
        ["generated.happened", "generated", "9"],
    );
}
