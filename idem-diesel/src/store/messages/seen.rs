//! The look at a message whose row is there already.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment};
use diesel::sql_types::{Nullable, Text};

use super::MessageKey;
use crate::dialect::Dialect;
use crate::store::static_statement;

/// Reads what a message's row says: its state, then its hash.
///
/// # SQL
///
/// ```sql
/// SELECT state || ' ' || coalesce(request_hash, '') FROM processed_messages WHERE …
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// The row.
    pub key: MessageKey,
}

static_statement!(Seen);

impl Query for Seen {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for Seen {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql(
            "SELECT state || ' ' || coalesce(request_hash, '') FROM processed_messages WHERE ",
        );
        self.key.push_is_row(&mut out)
    }
}

/// What is known of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SeenState {
    /// It was processed.
    Processed,
    /// It was processed, and had another content then.
    Mismatch,
    /// It was processed, and its hash was made under another scheme.
    OtherScheme(u8),
    /// It failed, and may be tried again.
    Failed,
    /// It was given up.
    Dead,
}

impl SeenState {
    /// From the text that [`Seen`] gives, for a message with this hash.
    pub(crate) fn from_text(text: &str, request_hash: &str) -> Option<Self> {
        match text.split_once(' ')? {
            ("processed", seen) if seen == request_hash => Some(Self::Processed),
            ("processed", seen) => {
                let scheme = |hash: &str| u8::from_str_radix(hash.get(..2)?, 16).ok();
                Some(match scheme(seen) {
                    Some(stored) if Some(stored) != scheme(request_hash) => {
                        Self::OtherScheme(stored)
                    }
                    _ => Self::Mismatch,
                })
            }
            ("failed", _) => Some(Self::Failed),
            ("dead", _) => Some(Self::Dead),
            _ => None,
        }
    }
}
