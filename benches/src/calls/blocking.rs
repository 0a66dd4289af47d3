//! On `PgConnection`.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use diesel::prelude::*;
use idem_diesel::{Error, Intent, Outcome, idempotent};

use crate::shop::database::Effects;
use crate::shop::{PlaceOrder, Placed, Work, accounts, orders};

/// What a client does for one piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// The two statements in a transaction.
    Bare,
    /// The handler, under a new key.
    First,
}

impl Call {
    fn run(self, db: &mut PgConnection, work: &Work) -> Result<()> {
        match self {
            Self::Bare => {
                db.transaction(|db| place(db, &work.cmd))?;
            }
            Self::First => {
                let outcome = place_once(db, &work.intent, &work.cmd)?;
                ensure!(!outcome.is_replayed(), "a first call was a replay");
            }
        }
        Ok(())
    }

    /// What so many calls leave in empty tables.
    pub(crate) fn effects(self, calls: u32) -> Effects {
        let records = match self {
            Self::Bare => 0,
            Self::First => calls.into(),
        };
        Effects {
            records,
            ..Effects::of_orders(calls)
        }
    }
}

/// Each client works off its list, on a thread of its own. Gives the time until the last is done.
pub(crate) fn run(
    clients: &mut [PgConnection],
    call: Call,
    lists: &[std::sync::Arc<[Work]>],
) -> Result<Duration> {
    let started_at = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = clients
            .iter_mut()
            .zip(lists)
            .map(|(db, list)| scope.spawn(|| list.iter().try_for_each(|work| call.run(db, work))))
            .collect();
        for thread in threads {
            thread.join().map_err(|_| anyhow!("a client panicked"))??;
        }
        Ok(started_at.elapsed())
    })
}

fn place(db: &mut PgConnection, cmd: &PlaceOrder) -> QueryResult<Placed> {
    let balance_cents = diesel::update(accounts::table.find(cmd.account_id))
        .set(accounts::balance_cents.eq(accounts::balance_cents - cmd.amount_cents))
        .returning(accounts::balance_cents)
        .get_result(db)?;
    let order_id = diesel::insert_into(orders::table)
        .values((
            orders::account_id.eq(cmd.account_id),
            orders::amount_cents.eq(cmd.amount_cents),
            orders::currency.eq(&cmd.currency),
        ))
        .returning(orders::id)
        .get_result(db)?;
    Ok(Placed {
        order_id,
        balance_cents,
    })
}

#[idempotent(scope = "orders.place", ttl = "48h")]
fn place_once(
    db: &mut PgConnection,
    intent: &Intent,
    cmd: &PlaceOrder,
) -> Result<Outcome<Placed>, Error> {
    Ok(place(db, cmd)?.into())
}
