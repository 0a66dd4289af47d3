//! The walk through a table whose rows say themselves when they may go.
//!
//! It goes in the order in which the table lies on disk, stretch by stretch, so that no index on the horizons is needed.

use diesel::QueryResult;

use super::run::Changed;
use crate::dialect::Dialect;
use crate::driver::Driver;
use crate::store::{Aged, Batch, Blank, Extent, Forget, Look, Table};

/// How far a run has come in one table.
#[derive(Debug)]
pub(super) struct Walk {
    aged: &'static Aged,
    after: String,
    /// Where the stretch ends that was looked at last.
    upto: String,
    /// The table's end when the run began, so that a run ends although calls append rows. It is looked up in the first batch.
    until: Option<String>,
}

impl Walk {
    pub(super) fn new<D: Driver>(aged: &'static Aged) -> Self {
        let start = D::Dialect::table_start(&aged.table);
        Self {
            aged,
            upto: start.clone(),
            after: start,
            until: None,
        }
    }

    pub(super) fn table(&self) -> &'static Table {
        &self.aged.table
    }

    pub(super) fn is_over(&self) -> bool {
        self.until.as_ref() == Some(&self.after)
    }

    /// Goes on behind the stretch, where nothing that is due is left.
    pub(super) fn pass(&mut self) {
        self.after.clone_from(&self.upto);
    }

    /// Looks at the stretch that comes next: is a row on it due? That is decided again by the statements that change it.
    pub(super) async fn look<D: Driver>(&mut self, db: &mut D) -> QueryResult<bool> {
        let until = if let Some(until) = &self.until {
            until.clone()
        } else {
            let end = db.texts(Extent(self.table())).await?.pop().flatten();
            let end = end.unwrap_or_else(|| self.after.clone());
            self.until.insert(end).clone()
        };
        let ahead = Look {
            aged: self.aged,
            after: self.after.clone(),
            until: until.clone(),
        };
        let found = db.texts(ahead).await?.pop().flatten().unwrap_or(until);
        let due = found.strip_prefix("due ").map(str::to_owned);
        let is_due = due.is_some();
        self.upto = due.unwrap_or(found);
        Ok(is_due)
    }

    /// The statements that change rows. The deletions come first: a row that goes needs no blanking.
    pub(super) async fn change<D: Driver>(&self, db: &mut D, at_most: u32) -> QueryResult<Changed> {
        let forgotten = Changed::count(db.execute(Forget(self.batch(at_most))).await?);
        let left = at_most.saturating_sub(forgotten);
        let blanked = if left == 0 || self.aged.answer.is_empty() {
            0
        } else {
            Changed::count(db.execute(Blank(self.batch(left))).await?)
        };
        Ok(Changed { forgotten, blanked })
    }

    fn batch(&self, at_most: u32) -> Batch {
        Batch {
            aged: self.aged,
            after: self.after.clone(),
            upto: self.upto.clone(),
            at_most: at_most.into(),
        }
    }
}
