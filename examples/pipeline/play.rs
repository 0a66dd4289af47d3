//! What happens, and what must be so in the end.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use diesel_async::RunQueryDsl;
use idem_diesel::{IdempotencyKey, Intent, Tenant};
use idem_relay::ConsumeLoop;
use idem_relay::consume::handler;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::handlers::{deliver_twice, place_order};
use super::{Database, Db};
use crate::Setting;
use crate::broker::{self, Broker};
use crate::shop::{OrderPlaced, PlaceOrder, WAREHOUSE, name_at_broker, stock};

const ORDERS: i64 = 12;

/// What is in stock at first.
const STOCK: i64 = 1000;

/// After so many published events the first relay is killed.
const KILLED_AFTER: i64 = 4;

/// A wait that is longer than this is a failure.
const AT_MOST: Duration = Duration::from_secs(60);

pub(crate) async fn play(database: &Database, setting: &Setting) -> anyhow::Result<()> {
    let mut db = database.connect().await?;
    diesel::insert_into(stock::table)
        .values((stock::id.eq(1), stock::quantity.eq(STOCK)))
        .execute(&mut db)
        .await?;
    place_orders(&mut db).await?;
    let name = name_at_broker(database.place());
    match &setting.broker {
        Broker::InProcess => carry(database, setting, &mut db).await?,
        Broker::Nats(url) => {
            let context = broker::jetstream(url).await?;
            let consumer = broker::make_stream(&context, &name).await?;
            let done = Notify::new();
            let consume = warehouse(database);
            let consuming = consume.run_jetstream(consumer, done.notified());
            let carrying = async {
                let carried = carry(database, setting, &mut db).await;
                done.notify_one();
                carried
            };
            let (ended, carried) = tokio::join!(consuming, carrying);
            let removed = context.delete_stream(&name).await;
            carried?;
            ended?;
            removed?;
        }
        Broker::Amqp(url) => {
            let queue = broker::make_queue(url, &name).await?;
            let done = Notify::new();
            let consume = warehouse(database);
            let consuming = consume.run_rabbitmq(&queue, done.notified());
            let carrying = async {
                let carried = carry(database, setting, &mut db).await;
                done.notify_one();
                carried
            };
            let ((), carried) = tokio::join!(consuming, carrying);
            let removed = broker::remove_queue(url, &name).await;
            carried?;
            removed?;
        }
    }
    check(&mut db).await
}

/// Every order is placed twice: a customer whose answer got lost asks again.
async fn place_orders(db: &mut Db) -> anyhow::Result<()> {
    for number in 0..ORDERS {
        let key = IdempotencyKey::from_parts(["basket", &number.to_string()])?;
        let intent = Intent::new(Tenant::of("acme", "alice")?, key);
        let order = PlaceOrder {
            quantity: number + 1,
        };
        let first = place_order(db, &intent, &order).await?;
        let again = place_order(db, &intent, &order).await?;
        ensure!(again.is_replayed() && again.get() == first.get());
    }
    println!("{ORDERS} orders were placed, each twice");
    Ok(())
}

/// The consumer behind a broker.
fn warehouse(
    database: &Database,
) -> ConsumeLoop<
    impl idem_relay::Connect<Connection = Db> + use<>,
    impl idem_relay::consume::Handler<Db> + use<>,
> {
    let database = Arc::new(database.again());
    let connect = move || {
        let database = Arc::clone(&database);
        async move { database.connect().await }
    };
    let handler = handler(|db: &mut Db, message| {
        Box::pin(async move {
            let event: OrderPlaced = message.json()?;
            Ok(deliver_twice(db, message.id(), &event).await?)
        })
    });
    ConsumeLoop::new(&WAREHOUSE, connect, handler)
}

/// Two relays, one after the other: the first is killed when it has published some events and settled none of them.
async fn carry(database: &Database, setting: &Setting, db: &mut Db) -> anyhow::Result<()> {
    let mut killed = start_relay(database, setting, Some(KILLED_AFTER))?;
    let line = first_line(&mut killed);
    let line = timeout(AT_MOST, line).await.context("the first relay")??;
    ensure!(line == "published", "the first relay said: {line}");
    // SIGKILL: it cannot tidy up.
    killed.kill().await?;
    let unsettled = count(
        db,
        "SELECT count(*) FROM outbox_deliveries WHERE state = 'pending'",
    )
    .await?;
    ensure!(
        unsettled == ORDERS,
        "it has settled {} events",
        ORDERS - unsettled
    );
    println!(
        "the relay was killed after at least {KILLED_AFTER} events were published and none was settled"
    );

    let mut second = start_relay(database, setting, None)?;
    let settled = async {
        loop {
            let pending = "SELECT count(*) FROM outbox_deliveries WHERE state = 'pending'";
            let shipped = "SELECT count(*) FROM shipments";
            if count(db, pending).await? == 0 && count(db, shipped).await? >= ORDERS {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(AT_MOST, settled)
        .await
        .context("not every event arrived")??;
    // The end of its input is the order to stop.
    drop(second.stdin.take());
    let status = timeout(AT_MOST, second.wait())
        .await
        .context("the second relay")??;
    ensure!(status.success(), "the second relay ended with {status}");
    println!("a second relay went on");
    Ok(())
}

fn start_relay(
    database: &Database,
    setting: &Setting,
    stands_still_after: Option<i64>,
) -> anyhow::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--relay", database.place()]);
    if let Some(url) = &setting.database_url {
        command.args(["--database-url", url]);
    }
    command.args(setting.broker.arguments());
    if let Some(events) = stands_still_after {
        command.args(["--stands-still-after", &events.to_string()]);
    }
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    Ok(command.spawn()?)
}

async fn first_line(relay: &mut Child) -> anyhow::Result<String> {
    let Some(output) = relay.stdout.take() else {
        bail!("the relay has no output");
    };
    let line = BufReader::new(output).lines().next_line().await?;
    line.context("the relay ended without a word")
}

async fn count(db: &mut Db, query: &str) -> anyhow::Result<i64> {
    Ok(diesel::select(sql::<BigInt>(&format!("({query})")))
        .get_result(db)
        .await?)
}

/// Everything was delivered more than once, and had its effect once.
async fn check(db: &mut Db) -> anyhow::Result<()> {
    let sum = ORDERS * (ORDERS + 1) / 2;
    let claims = [
        ("orders", "SELECT count(*) FROM orders", ORDERS),
        ("events", "SELECT count(*) FROM outbox_events", ORDERS),
        (
            "events that are delivered",
            "SELECT count(*) FROM outbox_deliveries WHERE state = 'delivered'",
            ORDERS,
        ),
        (
            "events that came at least twice",
            "SELECT count(*) FROM (SELECT message_id FROM deliveries GROUP BY message_id HAVING count(*) >= 2) AS twice",
            ORDERS,
        ),
        (
            "events that two relays published",
            "SELECT count(*) FROM (SELECT 1 FROM outbox_deliveries WHERE attempts >= 2 LIMIT 1) AS again",
            1,
        ),
        (
            "processed messages",
            "SELECT count(*) FROM processed_messages",
            ORDERS,
        ),
        ("shipments", "SELECT count(*) FROM shipments", ORDERS),
        (
            "orders that were shipped",
            "SELECT count(DISTINCT order_id) FROM shipments",
            ORDERS,
        ),
        (
            "what is left in stock",
            "SELECT quantity FROM stock",
            STOCK - sum,
        ),
    ];
    for (what, query, expected) in claims {
        let found = count(db, query).await?;
        ensure!(
            found == expected,
            "{what}: expected {expected}, found {found}"
        );
    }
    let deliveries = count(db, "SELECT count(*) FROM deliveries").await?;
    println!("{deliveries} deliveries of {ORDERS} events, {ORDERS} shipments");
    Ok(())
}
