//! How often a call waits for the server, and in which order it speaks to it.

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};
use idem_diesel::{Intent, Isolation, Outcome, Policy, idempotent};
use support::proxy::Proxy;

use super::asynchronous::body;
use super::conversation::{Conversation, Turn};
use super::{AsyncPg, CMD, Client, run};
use crate::backend::{Backend, PgAsync, Place, intent};
use crate::shop::{ChangeOrder, CreateOrder, Order, OrderStatus, ShopError};

/// As often as this every count is the same.
const ROUNDS: i64 = 20;

/// Rounds before it in which everything is prepared.
const WARM_UP: i64 = 2;

/// Stands in every statement that stores an answer.
const STORE: &str = "INSERT INTO api_idempotency";

const RELEASE: &str = "RELEASE SAVEPOINT idem_body";
const ROLL_BACK: &str = "ROLLBACK TO SAVEPOINT idem_body; RELEASE SAVEPOINT idem_body";

const REPEATABLE_READ: Policy = Policy::new().isolation(Isolation::RepeatableRead);

#[idempotent(
    scope = "orders.replace",
    ttl = "48h",
    transition(OrderStatus::Pending => OrderStatus::Cancelled, id = old.order_id)
)]
async fn replace(
    db: &mut AsyncPgConnection,
    intent: &Intent,
    old: &ChangeOrder,
    cmd: &CreateOrder,
) -> Result<Outcome<Order>, ShopError> {
    Ok(body(db, cmd).await?.into())
}

/// A pending row comes first, and is ended by the store.
#[idempotent(scope = "orders.strict", ttl = "48h", policy = REPEATABLE_READ)]
async fn sell_strictly(
    db: &mut AsyncPgConnection,
    intent: &Intent,
    cmd: &CreateOrder,
) -> Result<Outcome<Order>, ShopError> {
    Ok(body(db, cmd).await?.into())
}

/// A connection that is listened to.
struct Heard {
    conn: AsyncPgConnection,
    proxy: Proxy,
    conversation: Conversation,
}

impl Heard {
    /// Nothing is prepared on it yet.
    async fn connect(place: &Place) -> Self {
        let proxy = Proxy::in_front_of(place.url());
        let mut conn = AsyncPg::connect(proxy.url()).await;
        // Connecting leaves things behind that nobody waits for; they are answered before this is.
        conn.batch_execute("SELECT 1").await.unwrap();
        assert_eq!(proxy.overhear(), [[]]);
        Self {
            conn,
            proxy,
            conversation: Conversation::default(),
        }
    }

    /// What has come to an end since the last time.
    fn turns(&mut self) -> Vec<Turn> {
        let [said] = &self.proxy.overhear()[..] else {
            unreachable!("one connection goes through the proxy");
        };
        self.conversation.hear(said)
    }

    /// Waits until nothing is unanswered.
    async fn settle(&mut self) -> Vec<Turn> {
        self.conn.batch_execute("SELECT 1").await.unwrap();
        let turns = self.turns();
        assert_eq!(self.conversation.unanswered(), &Turn::default());
        turns
    }

    /// What a call gives, and its waits: the turns that ended before it returned.
    async fn call<T>(
        &mut self,
        call: impl AsyncFnOnce(&mut AsyncPgConnection) -> T,
    ) -> (T, Vec<Turn>) {
        self.settle().await;
        let given = call(&mut self.conn).await;
        (given, self.turns())
    }

    /// The waits of a call that ends well.
    async fn waits<T>(
        &mut self,
        is_replayed: bool,
        call: impl AsyncFnOnce(&mut AsyncPgConnection) -> Result<Outcome<T>, ShopError>,
    ) -> Vec<Turn> {
        let (outcome, turns) = self.call(call).await;
        assert_eq!(outcome.unwrap().is_replayed(), is_replayed);
        turns
    }
}

/// All statements of these turns, in the order in which they went over the wire.
fn executed(turns: &[Turn]) -> Vec<&str> {
    let turns = turns.iter();
    turns
        .flat_map(|turn| &turn.executed)
        .map(String::as_str)
        .collect()
}

/// The waits of one call of each kind.
#[derive(Debug)]
struct Round {
    bare: Vec<Turn>,
    first: Vec<Turn>,
    completed: Vec<Turn>,
    declined: Vec<Turn>,
    transition: Vec<Turn>,
    first_read_first: Vec<Turn>,
    replay: Vec<Turn>,
    behind_replay: Vec<Turn>,
    replay_read_first: Vec<Turn>,
    behind_replay_read_first: Vec<Turn>,
}

impl Round {
    async fn of(heard: &mut Heard, round: i64) -> Self {
        let once = &intent(&format!("once {round}"));
        let once_more = &intent(&format!("once more {round}"));
        let (bought, declined) = (
            &intent(&format!("buy {round}")),
            &intent(&format!("no {round}")),
        );
        let old = &ChangeOrder {
            order_id: 1 + round,
        };
        let (sold, bare) = heard.call(AsyncPg::sell).await;
        sold.unwrap();
        Self {
            bare,
            first: heard
                .waits(false, async |db| AsyncPg::sell_once(db, once).await)
                .await,
            completed: heard
                .waits(false, async |db| {
                    AsyncPg::try_to_sell(db, bought, false).await
                })
                .await,
            declined: heard
                .waits(false, async |db| {
                    AsyncPg::try_to_sell(db, declined, true).await
                })
                .await,
            transition: heard
                .waits(false, async |db| replace(db, once, old, &CMD).await)
                .await,
            first_read_first: heard
                .waits(false, async |db| {
                    AsyncPg::sell_once_read_first(db, once_more).await
                })
                .await,
            replay: heard
                .waits(true, async |db| AsyncPg::sell_once(db, once).await)
                .await,
            behind_replay: heard.settle().await,
            replay_read_first: heard
                .waits(true, async |db| {
                    AsyncPg::sell_once_read_first(db, once).await
                })
                .await,
            behind_replay_read_first: heard.settle().await,
        }
    }

    fn calls(&self) -> [(&'static str, &[Turn]); 8] {
        [
            ("bare transaction", &self.bare),
            ("first call", &self.first),
            ("completed verdict", &self.completed),
            ("final failure", &self.declined),
            ("transition", &self.transition),
            ("first call, read first", &self.first_read_first),
            ("replay", &self.replay),
            ("replay, read first", &self.replay_read_first),
        ]
    }

    fn check(&self, replay: usize) {
        let bare = self.bare.len();
        let expected = [bare, bare, bare, bare, bare + 1, bare + 1, replay, 1];
        let waits = self.calls().map(|(_, turns)| turns.len());
        assert_eq!(waits, expected, "{self:#?}");
        let mut turns = self.calls().into_iter().flat_map(|(_, turns)| turns);
        assert!(turns.all(|turn| turn.prepared.is_empty()), "{self:#?}");

        // The one more of a transition is its update, which goes alone.
        let alone = self
            .transition
            .iter()
            .filter_map(|turn| match &turn.executed[..] {
                [alone] => Some(alone),
                _ => None,
            });
        let updates = alone.filter(|text| text.starts_with("UPDATE \"orders\""));
        assert_eq!(updates.count(), 1, "{self:#?}");

        // What ends a call goes together, the end of a savepoint first.
        let last = |turns: &[Turn]| turns.last().unwrap().executed.clone();
        let end = last(&self.first);
        let [store, commit] = &end[..] else {
            panic!("{self:#?}");
        };
        assert!(store.contains(STORE), "{self:#?}");
        assert_eq!(commit, "COMMIT", "{self:#?}");
        assert_eq!(last(&self.transition), end, "{self:#?}");
        for (turns, close) in [(&self.completed, RELEASE), (&self.declined, ROLL_BACK)] {
            assert_eq!(last(turns), [close, store, commit], "{self:#?}");
        }

        // Whether or not somebody waits for it, the transaction of a replay ends.
        let turns = [&self.replay[..], &self.behind_replay].concat();
        let [begin, read, rollback, _] = executed(&turns)[..] else {
            panic!("{self:#?}");
        };
        assert!(begin.starts_with("BEGIN"), "{self:#?}");
        assert_eq!(rollback, "ROLLBACK", "{self:#?}");
        let mut is_open = turns.iter().flat_map(|turn| &turn.is_open).rev();
        assert!(is_open.nth(1).is_some_and(|is_open| !is_open), "{self:#?}");

        // There is none that could end where the read comes first.
        assert_eq!(executed(&self.replay_read_first), [read]);
        let mut is_open = self.replay_read_first.iter().flat_map(|turn| &turn.is_open);
        assert!(is_open.all(|is_open| !is_open));
        assert_eq!(executed(&self.behind_replay_read_first), ["SELECT 1"]);
    }
}

/// Counts the waits of every kind of call; a replay has so many.
async fn count(replay: usize) {
    let place = PgAsync::place();
    place.run(&format!(
        "INSERT INTO orders (account_id, amount_cents, status) \
         SELECT 1, 5, 'pending' FROM generate_series(1, {})",
        WARM_UP + ROUNDS
    ));
    let mut heard = Heard::connect(&place).await;
    for round in 0..WARM_UP + ROUNDS {
        let waits = Round::of(&mut heard, round).await;
        if round >= WARM_UP {
            waits.check(replay);
        }
        if round + 1 == WARM_UP + ROUNDS {
            for (call, turns) in waits.calls() {
                println!("{:3} waits: {call}", turns.len());
            }
        }
    }
}

#[test]
fn a_first_call_waits_as_often_as_its_transaction_and_a_replay_once() {
    run(count(1));
}

/// A runtime of one thread may stop with the call, and what it has not sent by then is never sent.
#[test]
fn on_a_runtime_of_one_thread_a_replay_waits_for_its_rollback_too() {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(count(2));
}

/// A call opens its transaction before it reads, and stores its answer before it sends COMMIT, with nothing behind that.
#[track_caller]
fn check_order<T>(given: Result<Outcome<T>, ShopError>, turns: &[Turn], close: Option<&str>) {
    let executed = executed(turns);
    let [begin, read, .., before_store, store, commit] = executed[..] else {
        panic!("{turns:#?}");
    };
    assert!(begin.starts_with("BEGIN"), "{turns:#?}");
    assert!(read.contains("LEFT JOIN api_idempotency"), "{turns:#?}");
    assert!(store.contains(STORE), "{turns:#?}");
    assert_eq!(commit, "COMMIT", "{turns:#?}");
    if let Some(close) = close {
        assert_eq!(before_store, close, "{turns:#?}");
    }
    let mut prepared = turns.iter().flat_map(|turn| &turn.prepared);
    assert!(
        prepared.any(|text| text == store),
        "there was nothing to prepare: {turns:#?}"
    );
    assert!(!given.unwrap().is_replayed());
}

/// Where COMMIT came first, a transaction could be durable without its record, and run again.
#[test]
fn the_store_goes_before_commit_also_where_it_has_to_be_prepared_first() {
    run(async {
        let place = PgAsync::place();
        let key = &intent("k");

        // Neither of them is prepared.
        let mut heard = Heard::connect(&place).await;
        let (given, turns) = heard
            .call(async |db| AsyncPg::sell_once(db, key).await)
            .await;
        check_order(given, &turns, None);
        // COMMIT is, and this store is not.
        let (given, turns) = heard
            .call(async |db| sell_strictly(db, key, &CMD).await)
            .await;
        check_order(given, &turns, None);

        // The end of a savepoint goes before both.
        for (key, declines, close) in [("completed", false, RELEASE), ("declined", true, ROLL_BACK)]
        {
            let mut heard = Heard::connect(&place).await;
            let (given, turns) = heard
                .call(async |db| AsyncPg::try_to_sell(db, &intent(key), declines).await)
                .await;
            check_order(given, &turns, Some(close));
        }
        assert_eq!(place.records(), 4);
    });
}
