//! The two handlers: one of a command, one of a message.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use idem_diesel::{Consumed, Intent, MessageId, Outcome, consumer, idempotent, outbox};

use super::Db;
use crate::shop::{
    OrderPlaced, PlaceOrder, ShopError, WAREHOUSE, deliveries, orders, shipments, stock,
};

/// Places an order, and tells of it: both, or neither.
#[idempotent(scope = "orders.place", ttl = "48h")]
pub(crate) async fn place_order(
    db: &mut Db,
    intent: &Intent,
    cmd: &PlaceOrder,
) -> Result<Outcome<i64>, ShopError> {
    let order_id: i64 = diesel::insert_into(orders::table)
        .values(orders::quantity.eq(cmd.quantity))
        .returning(orders::id)
        .get_result(db)
        .await?;
    let event = OrderPlaced {
        order_id,
        quantity: cmd.quantity,
    };
    outbox::publish(db, &event).await?;
    Ok(order_id.into())
}

/// Takes the goods from the stock and ships them.
#[consumer(subscription = WAREHOUSE)]
pub(crate) async fn on_order_placed(
    db: &mut Db,
    id: &MessageId,
    event: &OrderPlaced,
) -> Result<Consumed, ShopError> {
    diesel::update(stock::table.find(1))
        .set(stock::quantity.eq(stock::quantity - event.quantity))
        .execute(db)
        .await?;
    diesel::insert_into(shipments::table)
        .values(shipments::order_id.eq(event.order_id))
        .execute(db)
        .await?;
    Ok(Consumed::Processed(()))
}

/// Hands a message to the consumer twice, on purpose, and notes each time outside of its transaction.
pub(crate) async fn deliver_twice(
    db: &mut Db,
    id: &MessageId,
    event: &OrderPlaced,
) -> Result<Consumed, ShopError> {
    let mut first = None;
    for _ in 0..2 {
        diesel::insert_into(deliveries::table)
            .values(deliveries::message_id.eq(id.as_str()))
            .execute(db)
            .await?;
        let consumed = on_order_placed(db, id, event).await?;
        first.get_or_insert(consumed);
    }
    Ok(first.unwrap_or(Consumed::Duplicate))
}
