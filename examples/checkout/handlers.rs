//! The shop's handlers. Each runs in one transaction with the record of its key: both are committed, or neither.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use idem_diesel::{Intent, Outcome, Verdict, idempotent};

use super::Db;
use crate::shop::{
    CreateOrder, Decline, FraudCheck, Order, OrderStatus, PayOrder, Payment, RefundOrder,
    ShipOrder, ShopError, accounts, orders, payments,
};

#[idempotent(scope = "orders.create", ttl = "48h")]
pub(crate) async fn create_order(
    db: &mut Db,
    intent: &Intent,
    cmd: &CreateOrder,
) -> Result<Outcome<Order>, ShopError> {
    let order = diesel::insert_into(orders::table)
        .values((
            orders::account_id.eq(cmd.account_id),
            orders::amount_cents.eq(cmd.amount_cents),
            orders::status.eq(OrderStatus::Pending),
        ))
        .returning(Order::as_returning())
        .get_result(db)
        .await?;
    Ok(order.into())
}

// The order is `Paid` when the body begins. A `Failed` and an `Err` both take that back, with all that the body wrote. But a
// `Failed` is stored and answers every retry, whereas an `Err` frees the key, so that a retry runs the body again.
// The fraud check is a service and no part of the request, so it is skipped where requests are compared.
#[idempotent(
    scope = "orders.pay",
    ttl = "48h",
    transition(OrderStatus::Pending => OrderStatus::Paid, id = cmd.order_id)
)]
pub(crate) async fn pay_order(
    db: &mut Db,
    intent: &Intent,
    cmd: &PayOrder,
    #[idempotent(skip)] fraud_check: &FraudCheck,
) -> Result<Outcome<Verdict<Payment, Decline>>, ShopError> {
    let order = find_order(db, cmd.order_id).await?;
    let balance_cents = move_money(db, &order, -order.amount_cents).await?;
    fraud_check.ask(&order).await?;
    if balance_cents < 0 {
        let missing_cents = -balance_cents;
        return Ok(Verdict::Failed(Decline::InsufficientFunds { missing_cents }).into());
    }
    let payment = Payment {
        order_id: order.id,
        amount_cents: order.amount_cents,
        balance_cents,
    };
    Ok(Verdict::Completed(payment).into())
}

#[idempotent(
    scope = "orders.ship",
    ttl = "48h",
    transition(OrderStatus::Paid => OrderStatus::Shipped, id = cmd.order_id)
)]
pub(crate) async fn ship_order(
    db: &mut Db,
    intent: &Intent,
    cmd: &ShipOrder,
) -> Result<Outcome<Order>, ShopError> {
    Ok(find_order(db, cmd.order_id).await?.into())
}

#[idempotent(
    scope = "orders.refund",
    ttl = "48h",
    transition(OrderStatus::Paid | OrderStatus::Shipped => OrderStatus::Refunded, id = cmd.order_id)
)]
pub(crate) async fn refund_order(
    db: &mut Db,
    intent: &Intent,
    cmd: &RefundOrder,
) -> Result<Outcome<Order>, ShopError> {
    let order = find_order(db, cmd.order_id).await?;
    move_money(db, &order, order.amount_cents).await?;
    Ok(order.into())
}

async fn find_order(db: &mut Db, order_id: i64) -> QueryResult<Order> {
    orders::table
        .find(order_id)
        .select(Order::as_select())
        .get_result(db)
        .await
}

/// Moves money to (or, if negative, from) the account of an order, notes the payment, and gives the new balance.
async fn move_money(db: &mut Db, order: &Order, cents: i64) -> QueryResult<i64> {
    diesel::insert_into(payments::table)
        .values((
            payments::order_id.eq(order.id),
            payments::amount_cents.eq(-cents),
        ))
        .execute(db)
        .await?;
    diesel::update(accounts::table.find(order.account_id))
        .set(accounts::balance_cents.eq(accounts::balance_cents + cents))
        .returning(accounts::balance_cents)
        .get_result(db)
        .await
}
