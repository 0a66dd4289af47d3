//! What the handlers promise, scene by scene. The witness checks every claim in the tables.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, bail};
use idem_diesel::testing::{Check, Scenario};
use idem_diesel::{ErrorKind, IdempotencyKey, Intent, Invalid, Tenant};
use tokio::sync::{Barrier, Notify};

use super::handlers::{create_order, pay_order, refund_order, ship_order};
use super::witness::Witness;
use super::{Database, Db};
use crate::check::{check, paid, refusal};
use crate::shop::{
    CreateOrder, Decline, FraudCheck, Order, OrderStatus, PayOrder, RefundOrder, ShipOrder,
    ShopError,
};

const RACERS: usize = 16;

/// Plays all scenes, each with an account and keys of its own, up to the first that does not hold.
pub(crate) async fn play(database: &Database) -> anyhow::Result<()> {
    let db = &mut database.connect().await?;
    let witness = &mut Witness::new(database.connect().await?);
    tell("first call", first_call(db, witness).await)?;
    tell("retry", retry(db, witness).await)?;
    tell("same key, other payload", other_payload(db, witness).await)?;
    tell("same payload, two keys", two_keys(db, witness).await)?;
    tell("racing retries", race(database, witness).await)?;
    tell("failure after writes", failure(db, witness).await)?;
    tell("declined card", decline(db, witness).await)?;
    tell("dropped call", dropped_call(database, db, witness).await)?;
    tell("pay twice, two keys", pay_twice(db, witness).await)?;
    tell("illegal transition", illegal(db, witness).await)?;
    tell("pay, ship, refund, retry", moved_on(db, witness).await)?;
    tell("expired key", expired(db, witness).await)?;
    tell("the test kit", kit(database, witness).await)
}

/// Prints the line of a scene that held.
fn tell(scene: &'static str, line: anyhow::Result<String>) -> anyhow::Result<()> {
    println!("{scene:<26}{}", line.context(scene)?);
    Ok(())
}

/// A caller and its key. In an application the tenant comes from the login, and the key from the client.
fn intent(key: &str) -> Result<Intent, Invalid> {
    let tenant = Tenant::of("acme", "alice")?;
    Ok(Intent::new(tenant, IdempotencyKey::new(key)?))
}

fn purchase(account_id: i64) -> CreateOrder {
    CreateOrder {
        account_id,
        amount_cents: 2_500,
    }
}

async fn first_call(db: &mut Db, witness: &mut Witness) -> anyhow::Result<String> {
    let account_id = witness.open_account(10_000).await?;

    let first = create_order(db, &intent("first")?, &purchase(account_id)).await?;

    check("replayed", first.is_replayed(), false)?;
    let order = first.into_inner();
    check("amount in the answer", order.amount_cents, 2_500)?;
    witness.sees_orders(account_id, 1).await?;
    witness.sees_answer("first", &order).await?;
    Ok(format!(
        "executed: order {} is {:?}",
        order.id, order.status
    ))
}

async fn retry(db: &mut Db, witness: &mut Witness) -> anyhow::Result<String> {
    let account_id = witness.open_account(10_000).await?;
    let first = create_order(db, &intent("retry")?, &purchase(account_id)).await?;
    witness.sees_answer("retry", first.get()).await?;

    let second = create_order(db, &intent("retry")?, &purchase(account_id)).await?;

    check("replayed", second.is_replayed(), true)?;
    check("answer", second.get(), first.get())?;
    // Both answers, written as JSON, are the bytes that are stored.
    witness.sees_answer("retry", first.get()).await?;
    witness.sees_answer("retry", second.get()).await?;
    witness.sees_orders(account_id, 1).await?;
    Ok("replayed: the same bytes, one order".to_owned())
}

async fn other_payload(db: &mut Db, witness: &mut Witness) -> anyhow::Result<String> {
    let account_id = witness.open_account(10_000).await?;
    let cmd = purchase(account_id);
    let first = create_order(db, &intent("reused")?, &cmd).await?;

    let other = CreateOrder {
        amount_cents: 9_900,
        ..cmd
    };
    let refusal = refusal(create_order(db, &intent("reused")?, &other).await)?;

    check("refusal", refusal.kind(), &ErrorKind::Mismatch)?;
    witness.sees_orders(account_id, 1).await?;
    witness.sees_answer("reused", first.get()).await?;
    Ok(format!("refused: {refusal}"))
}

async fn two_keys(db: &mut Db, witness: &mut Witness) -> anyhow::Result<String> {
    let account_id = witness.open_account(10_000).await?;

    let first = create_order(db, &intent("monday")?, &purchase(account_id)).await?;
    let second = create_order(db, &intent("tuesday")?, &purchase(account_id)).await?;

    check("first replayed", first.is_replayed(), false)?;
    check("second replayed", second.is_replayed(), false)?;
    witness.sees_orders(account_id, 2).await?;
    witness.sees_answer("monday", first.get()).await?;
    witness.sees_answer("tuesday", second.get()).await?;
    let (first, second) = (first.into_inner(), second.into_inner());
    Ok(format!("two orders: {} and {}", first.id, second.id))
}

async fn race(database: &Database, witness: &mut Witness) -> anyhow::Result<String> {
    let account_id = witness.open_account(10_000).await?;
    let start = Arc::new(Barrier::new(RACERS));
    let mut calls = Vec::new();
    for _ in 0..RACERS {
        let mut db = database.connect().await?;
        let intent = intent("race")?;
        let start = Arc::clone(&start);
        calls.push(tokio::spawn(async move {
            start.wait().await;
            create_order(&mut db, &intent, &purchase(account_id)).await
        }));
    }

    let mut replayed = 0;
    for call in calls {
        let answer = call.await??;
        if answer.is_replayed() {
            replayed += 1;
        }
        witness.sees_answer("race", answer.get()).await?;
    }
    check("replayed", replayed, RACERS - 1)?;
    witness.sees_orders(account_id, 1).await?;
    let executed = RACERS - replayed;
    Ok(format!(
        "{executed} executed, {replayed} replayed, on {RACERS} connections"
    ))
}

async fn failure(db: &mut Db, witness: &mut Witness) -> anyhow::Result<String> {
    let order = pending_order(db, witness, "failure: order", 10_000).await?;
    let cmd = PayOrder { order_id: order.id };

    let failed = pay_order(db, &intent("failure")?, &cmd, &FraudCheck::Unreachable).await;

    let Err(ShopError::FraudCheckUnreachable) = failed else {
        bail!("first call: expected an unreachable fraud check, found {failed:?}");
    };
    witness
        .sees_order(&order, OrderStatus::Pending, 0, 10_000)
        .await?;
    witness.sees_no_record("failure").await?;

    let retry = pay_order(db, &intent("failure")?, &cmd, &FraudCheck::Passes).await?;

    check("retry replayed", retry.is_replayed(), false)?;
    witness
        .sees_order(&order, OrderStatus::Paid, 1, 7_500)
        .await?;
    witness
        .sees_answer("failure", &paid(retry.into_inner())?)
        .await?;
    Ok("rolled back; the retry executed".to_owned())
}

async fn decline(db: &mut Db, witness: &mut Witness) -> anyhow::Result<String> {
    let order = pending_order(db, witness, "decline: order", 1_000).await?;
    let cmd = PayOrder { order_id: order.id };
    let missing_cents = 1_500;
    let decline = Decline::InsufficientFunds { missing_cents };

    for replayed in [false, true] {
        let answer = pay_order(db, &intent("decline")?, &cmd, &FraudCheck::Passes).await?;

        check("replayed", answer.is_replayed(), replayed)?;
        check(
            "answer",
            answer.into_inner().into_result().err(),
            Some(decline),
        )?;
        witness
            .sees_order(&order, OrderStatus::Pending, 0, 1_000)
            .await?;
        witness.sees_decline("decline", &decline).await?;
    }
    Ok("rolled back, declined for good; the decline was replayed".to_owned())
}

async fn dropped_call(
    database: &Database,
    db: &mut Db,
    witness: &mut Witness,
) -> anyhow::Result<String> {
    let order = pending_order(db, witness, "dropped: order", 10_000).await?;
    let cmd = PayOrder { order_id: order.id };
    let key = intent("dropped")?;
    let asked = Arc::new(Notify::new());
    let hanging = FraudCheck::Hangs(Arc::clone(&asked));

    // The body writes, then asks the fraud check. As soon as it has asked, `select!` drops the call.
    tokio::select! {
        answer = pay_order(db, &key, &cmd, &hanging) => bail!("call: expected none, found {answer:?}"),
        () = asked.notified() => {}
    }
    witness
        .sees_order(&order, OrderStatus::Pending, 0, 10_000)
        .await?;
    witness.sees_no_record("dropped").await?;

    let other_db = &mut database.connect().await?;
    let second = pay_order(other_db, &key, &cmd, &FraudCheck::Passes).await?;

    check("second replayed", second.is_replayed(), false)?;
    let payment = paid(second.into_inner())?;

    // The connection of the dropped call can be used.
    let third = pay_order(db, &key, &cmd, &FraudCheck::Passes).await?;

    check("third replayed", third.is_replayed(), true)?;
    check("third answer", &paid(third.into_inner())?, &payment)?;
    witness
        .sees_order(&order, OrderStatus::Paid, 1, 7_500)
        .await?;
    witness.sees_answer("dropped", &payment).await?;
    Ok("rolled back; the retry executed on another connection".to_owned())
}

async fn pay_twice(db: &mut Db, witness: &mut Witness) -> anyhow::Result<String> {
    let order = pending_order(db, witness, "twice: order", 10_000).await?;
    let cmd = PayOrder { order_id: order.id };
    let first = pay_order(db, &intent("twice: 1")?, &cmd, &FraudCheck::Passes).await?;

    let second = pay_order(db, &intent("twice: 2")?, &cmd, &FraudCheck::Passes).await;

    let refusal = refusal(second)?;
    check("already applied", refusal.is_already_applied(), true)?;
    witness
        .sees_order(&order, OrderStatus::Paid, 1, 7_500)
        .await?;
    witness
        .sees_answer("twice: 1", &paid(first.into_inner())?)
        .await?;
    witness.sees_no_record("twice: 2").await?;
    Ok(format!("refused: {refusal}"))
}

async fn illegal(db: &mut Db, witness: &mut Witness) -> anyhow::Result<String> {
    let order = pending_order(db, witness, "illegal: order", 10_000).await?;
    let cmd = ShipOrder { order_id: order.id };

    let refusal = refusal(ship_order(db, &intent("illegal")?, &cmd).await)?;

    let expected = ErrorKind::IllegalTransition {
        current: "pending".to_owned(),
        to: "shipped",
    };
    check("refusal", refusal.kind(), &expected)?;
    witness
        .sees_order(&order, OrderStatus::Pending, 0, 10_000)
        .await?;
    witness.sees_no_record("illegal").await?;
    Ok(format!("refused: {refusal}"))
}

async fn moved_on(db: &mut Db, witness: &mut Witness) -> anyhow::Result<String> {
    let order = pending_order(db, witness, "moved: order", 10_000).await?;
    let order_id = order.id;
    let pay = PayOrder { order_id };
    let first = pay_order(db, &intent("moved: pay")?, &pay, &FraudCheck::Passes).await?;
    ship_order(db, &intent("moved: ship")?, &ShipOrder { order_id }).await?;
    refund_order(db, &intent("moved: refund")?, &RefundOrder { order_id }).await?;

    let retry = pay_order(db, &intent("moved: pay")?, &pay, &FraudCheck::Passes).await?;

    check("retry replayed", retry.is_replayed(), true)?;
    witness
        .sees_answer("moved: pay", &paid(first.into_inner())?)
        .await?;
    witness
        .sees_answer("moved: pay", &paid(retry.into_inner())?)
        .await?;
    witness
        .sees_order(&order, OrderStatus::Refunded, 2, 10_000)
        .await?;
    Ok("replayed: the first answer of pay, byte for byte".to_owned())
}

async fn expired(db: &mut Db, witness: &mut Witness) -> anyhow::Result<String> {
    let account_id = witness.open_account(10_000).await?;
    create_order(db, &intent("expired")?, &purchase(account_id)).await?;
    witness.expire("expired").await?;

    let late = create_order(db, &intent("expired")?, &purchase(account_id)).await;

    let refusal = refusal(late)?;
    check("refusal", refusal.kind(), &ErrorKind::Expired)?;
    witness.sees_orders(account_id, 1).await?;
    Ok(format!("refused: {refusal}"))
}

/// What the tests of an application look like: every promise above at once, and a dropped call at each await.
async fn kit(database: &Database, witness: &mut Witness) -> anyhow::Result<String> {
    let account_id = witness.open_account(1_000_000).await?;
    let connect = async || {
        let connected = database.connect().await;
        connected.unwrap_or_else(|error| panic!("{error:#}"))
    };
    let orders = AtomicU32::new(0);
    let new_order = async |db: &mut Db| {
        let key = format!("kit: {}", orders.fetch_add(1, Ordering::Relaxed));
        let order = create_order(db, &intent(&key)?, &purchase(account_id)).await?;
        anyhow::Ok(order.into_inner().id)
    };

    let report = Check::new_async(connect, ["accounts", "orders", "payments"])
        .ignoring(["payments.order_id"])
        .request_async(async |db| match new_order(db).await {
            Ok(order_id) => PayOrder { order_id },
            Err(error) => panic!("{error:#}"),
        })
        .other_request(|first| PayOrder {
            order_id: first.order_id + 1,
        })
        .run_async(async |db, intent, cmd| pay_order(db, intent, cmd, &FraudCheck::Passes).await)
        .await?;

    check("races held", report.has(Scenario::Race), true)?;
    check("drops held", report.has(Scenario::DroppedCalls), true)?;
    Ok("called in every way, it paid each order once".to_owned())
}

/// An order over 2500 cents, of a new account with `balance_cents`.
async fn pending_order(
    db: &mut Db,
    witness: &mut Witness,
    key: &str,
    balance_cents: i64,
) -> anyhow::Result<Order> {
    let account_id = witness.open_account(balance_cents).await?;
    let order = create_order(db, &intent(key)?, &purchase(account_id)).await?;
    Ok(order.into_inner())
}
