//! The shop's outbox: filled at once as handlers and relays leave it, and counted.

use anyhow::Result;
use diesel::connection::SimpleConnection;

use super::Work;
use super::database::ShopDatabase;

/// Events as the library writes them, with ids in the order of time. `{columns}` and `{values}` are those of their deliveries.
fn filling(events: u32, aggregates: u32, columns: &str, values: &str) -> Result<String> {
    let Work { intent, .. } = Work::new(0, 0)?;
    let tenant = intent.tenant().as_str();
    Ok(format!(
        "WITH drawn AS MATERIALIZED (
             SELECT number, CAST(1 + number % {aggregates} AS text) AS account,
                    CAST(lpad(to_hex(CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)), 12, '0') || '7'
                         || substr(replace(CAST(gen_random_uuid() AS text), '-', ''), 14) AS uuid) AS id
               FROM generate_series(1, {events}) AS number
         ), events AS (
             INSERT INTO outbox_events (tenant_id, id, aggregatetype, aggregateid, type, payload, operation, idempotency_key)
             SELECT '{tenant}', id, 'account', account, 'order.placed',
                    '{{\"account_id\":' || account || ',\"order_id\":' || number || ',\"amount_cents\":5}}',
                    'orders.place_and_publish', CAST(id AS text)
               FROM drawn
         )
         INSERT INTO outbox_deliveries (tenant_id, event_id, aggregatetype, aggregateid, type{columns})
         SELECT '{tenant}', id, 'account', account, 'order.placed'{values} FROM drawn ORDER BY number"
    ))
}

impl ShopDatabase {
    /// Autovacuum, which is off for rounds that are short.
    pub(crate) fn allow_autovacuum_of_outbox(&mut self) -> Result<()> {
        self.admin.batch_execute(
            "ALTER TABLE outbox_events RESET (autovacuum_enabled);
             ALTER TABLE outbox_deliveries RESET (autovacuum_enabled)",
        )?;
        Ok(())
    }

    /// No event, and none that was.
    pub(crate) fn reset_outbox(&mut self) -> Result<()> {
        self.admin
            .batch_execute("TRUNCATE outbox_events, outbox_deliveries")?;
        Ok(())
    }

    /// Puts undelivered events into the outbox, each of another aggregate than the one before.
    pub(crate) fn enqueue(&mut self, events: u32, aggregates: u32) -> Result<()> {
        let sql = filling(events, aggregates, "", "")?;
        self.admin.batch_execute(&sql)?;
        Ok(())
    }

    /// Puts events that were delivered at the first attempt.
    pub(crate) fn store_delivered(&mut self, events: u32, aggregates: u32) -> Result<()> {
        let sql = filling(
            events,
            aggregates,
            ", state, attempts, fence, settled_at",
            ", 'delivered', 1, 1, clock_timestamp()",
        )?;
        self.admin.batch_execute(&sql)?;
        Ok(())
    }

    /// The outbox as autovacuum leaves it, and nothing left to write.
    pub(crate) fn settle_outbox(&mut self) -> Result<()> {
        self.admin
            .batch_execute("VACUUM ANALYZE outbox_events, outbox_deliveries")?;
        self.checkpoint()
    }

    /// The outbox as it was just filled, and nothing left to write. Whoever reads a row first notes that it is committed: that is done here.
    pub(crate) fn read_outbox(&mut self) -> Result<()> {
        self.admin.batch_execute(
            "SELECT count(*) FROM outbox_events; SELECT count(*) FROM outbox_deliveries",
        )?;
        self.checkpoint()
    }

    /// How many events were delivered.
    pub(crate) fn delivered(&mut self) -> Result<i64> {
        self.number("SELECT count(*) AS number FROM outbox_deliveries WHERE state = 'delivered'")
    }
}
