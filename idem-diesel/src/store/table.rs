//! The tables whose rows go by age, and which of their rows may.

use crate::dialect::Dialect;

/// The tables of this library, in the order in which they are made.
pub(crate) const TABLES: [&str; 4] = [TABLE, MESSAGES.table.name, "outbox_events", DELIVERIES.name];

/// The table of all records.
pub(crate) const TABLE: &str = "api_idempotency";

/// The outbox: how far each event is.
pub(crate) const DELIVERIES: &Table = &Table {
    name: "outbox_deliveries",
    key: &["tenant_id", "event_id"],
};

/// A table that a purge takes rows out of.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Columns that select one row, in the order in which the table is kept where it is kept in one: those of its primary key.
    pub key: &'static [&'static str],
}

/// A table whose rows say themselves when they may go.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Aged {
    /// Where they are.
    pub table: Table,
    /// The states of rows that may go, as a list in SQL. A row in any other state stays, however old it is.
    ended: &'static str,
    /// The columns of an answer, which expires before its row goes. In a table without answers there are none.
    pub answer: &'static [&'static str],
}

/// The records of calls.
pub(crate) const RECORDS: &Aged = &Aged {
    table: Table {
        name: TABLE,
        key: &["tenant_id", "operation", "idempotency_key"],
    },
    ended: "'completed', 'failed'",
    answer: &["status_code", "response_headers", "response_body", "codec"],
};

/// The messages that were consumed. One that has failed is waited for, and one that was given up is for a person.
pub(crate) const MESSAGES: &Aged = &Aged {
    table: Table {
        name: "processed_messages",
        key: &["subscriber_id", "message_id"],
    },
    ended: "'processed'",
    answer: &[],
};

impl Aged {
    /// The condition that a row may go.
    pub(super) fn may_go<DB: Dialect>(&self) -> String {
        self.is_behind::<DB>("forget_at")
    }

    /// The condition that a row has an answer that has expired. Every stored answer has a codec.
    pub(super) fn has_expired<DB: Dialect>(&self) -> String {
        format!(
            "{} AND codec IS NOT NULL",
            self.is_behind::<DB>("expires_at")
        )
    }

    /// The condition that there is something to do about a row.
    pub(super) fn is_due<DB: Dialect>(&self) -> String {
        let may_go = self.may_go::<DB>();
        if self.answer.is_empty() {
            return may_go;
        }
        format!("({may_go} OR {})", self.has_expired::<DB>())
    }

    /// A row that has not ended is never due. Time is read once for all rows.
    fn is_behind<DB: Dialect>(&self, horizon: &str) -> String {
        let (now, ended) = (DB::NOW, self.ended);
        format!("{horizon} <= (SELECT {now}) AND state IN ({ended})")
    }
}
