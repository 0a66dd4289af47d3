//! The statements on `processed_messages`.

mod dead;
mod failed;
mod mark;
mod mark_all;
mod retake;
mod seen;
mod still_in;

pub(crate) use dead::{Dead, ForgetDead, Revive};
pub(crate) use failed::{Failed, FailedState};
pub(crate) use mark::Mark;
pub(crate) use mark_all::{MarkAll, NoMark, SeenAll};
pub(crate) use retake::Retake;
pub(crate) use seen::{Seen, SeenState};
pub(crate) use still_in::StillIn;

use std::sync::Arc;

use diesel::QueryResult;
use diesel::query_builder::AstPass;
use idem_core::MessageId;

use crate::dialect::Dialect;

/// The primary key of a message's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageKey {
    subscriber_id: Arc<str>,
    message_id: Arc<str>,
}

impl MessageKey {
    pub(crate) fn new(subscriber: &str, id: &MessageId) -> Self {
        Self {
            subscriber_id: subscriber.into(),
            message_id: id.as_str().into(),
        }
    }

    /// `subscriber, id`, as a list of values.
    fn push_values<'b, DB: Dialect>(&'b self, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()> {
        DB::push_text(out, &self.subscriber_id)?;
        out.push_sql(", ");
        DB::push_text(out, &self.message_id)
    }

    /// The condition that selects the row.
    fn push_is_row<'b, DB: Dialect>(&'b self, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("subscriber_id = ");
        DB::push_text(out, &self.subscriber_id)?;
        out.push_sql(" AND message_id = ");
        DB::push_text(out, &self.message_id)
    }
}
