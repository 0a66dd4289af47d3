//! Natural idempotency: a write that is safe to repeat because of a unique business key.
//!
//! No idempotency key is needed when all of this holds:
//!
//! * the caller's own data has a key for what it means, such as an external order id or an invoice number of a customer, and the table has a unique constraint on it;
//! * the write of that row is the *only* effect: no event, no mail, no counter, no second table;
//! * the answer can be read from the row, as it is now: the caller does not need the first answer, word for word;
//! * and another content under the same key is either fine ([`upsert`](fn@upsert) replaces it) or never happens ([`get_or_insert`](fn@get_or_insert) keeps the first).
//!
//! If one of them does not hold, use [`#[idempotent]`](macro@crate::idempotent), or the [inbox](crate::inbox) for a message.

use diesel::QueryResult;
use diesel::result::{DatabaseErrorKind, Error as DieselError};
use idem_core::limits::DEFAULT_WAIT;
use idem_core::{ErrorKind, Nested};

use crate::connection::{Async, Blocking, IdempotentConnection, run_blocking};
use crate::driver::{Driver, Entry, Opening};
use crate::error::{Error, kind_of};
use crate::transaction::Transaction;

/// How often a row is looked for that is neither to be inserted nor to be found, or a conflict is tried again.
const MAX_ROUNDS: u32 = 8;

/// A unique constraint by its name, and by what SQLite calls it: its columns.
///
/// ```
/// use idem_diesel::UniqueKey;
///
/// const EXTERNAL_ID: UniqueKey = UniqueKey::new("orders_external_id_key", &["orders.external_id"]);
/// assert_eq!(EXTERNAL_ID.constraint(), "orders_external_id_key");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UniqueKey {
    constraint: &'static str,
    columns: &'static [&'static str],
}

impl UniqueKey {
    /// The constraint (or unique index) of this name, on these columns: each as `table.column`, in their order.
    pub const fn new(constraint: &'static str, columns: &'static [&'static str]) -> Self {
        Self {
            constraint,
            columns,
        }
    }

    /// Its name.
    pub const fn constraint(&self) -> &'static str {
        self.constraint
    }

    /// Whether it is what an insert has violated. Another constraint that was violated is an error of the application.
    fn is_violated(&self, error: &DieselError) -> bool {
        let DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, information) = error
        else {
            return false;
        };
        if let Some(name) = information.constraint_name() {
            return name == self.constraint;
        }
        // SQLite names the columns, or the index if it has an expression in it. It is never translated.
        let message = information.message();
        let columns = message.strip_prefix("UNIQUE constraint failed: ");
        columns.is_some_and(|columns| {
            columns.split(", ").eq(self.columns.iter().copied())
                || columns == format!("index '{}'", self.constraint)
        })
    }
}

/// What [`upsert`](fn@upsert) did.
///
/// ```
/// use idem_diesel::Upserted;
///
/// assert_eq!(Upserted::Updated(7).into_inner(), 7);
/// assert!(Upserted::Inserted(7).is_inserted());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upserted<T> {
    /// The row is new.
    Inserted(T),
    /// The row was there, and was changed.
    Updated(T),
}

impl<T> Upserted<T> {
    /// Whether the row is new.
    pub const fn is_inserted(&self) -> bool {
        matches!(self, Self::Inserted(_))
    }

    /// What the insert or the update gave.
    pub fn into_inner(self) -> T {
        match self {
            Self::Inserted(value) | Self::Updated(value) => value,
        }
    }
}

/// What [`get_or_insert`](fn@get_or_insert) did.
///
/// ```
/// use idem_diesel::GotOrInserted;
///
/// assert_eq!(GotOrInserted::Got(7).into_inner(), 7);
/// assert!(GotOrInserted::Inserted(7).is_inserted());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GotOrInserted<T> {
    /// The row is new.
    Inserted(T),
    /// The row was there, and is as it was.
    Got(T),
}

impl<T> GotOrInserted<T> {
    /// Whether the row is new.
    pub const fn is_inserted(&self) -> bool {
        matches!(self, Self::Inserted(_))
    }

    /// The row.
    pub fn into_inner(self) -> T {
        match self {
            Self::Inserted(value) | Self::Got(value) => value,
        }
    }
}

/// Inserts a row, or updates the one that has its business key, and says which; on an async connection.
///
/// `insert` must fail with a violation of `key` if the row is there, so it has no `on_conflict`. `update` changes the row and gives what the caller wants; it fails with
/// [`NotFound`](DieselError::NotFound) if there is none. Both are one transaction, or a savepoint of the caller's; somebody who is inserting the same row is waited for.
///
/// ```
/// use diesel::prelude::*;
/// use idem_diesel::{UniqueKey, Upserted, upsert_sync};
///
/// diesel::table! { orders { id -> BigInt, external_id -> Text, amount -> BigInt, } }
///
/// const EXTERNAL_ID: UniqueKey = UniqueKey::new("orders_external_id_key", &["orders.external_id"]);
///
/// // The sync form; the async one is `upsert(db, &EXTERNAL_ID, async |db| …, async |db| …).await`.
/// fn place(db: &mut SqliteConnection, external_id: &str, amount: i64) -> Result<Upserted<i64>, idem_diesel::Error> {
///     upsert_sync(
///         db,
///         &EXTERNAL_ID,
///         |db| diesel::insert_into(orders::table)
///             .values((orders::external_id.eq(external_id), orders::amount.eq(amount)))
///             .returning(orders::id)
///             .get_result(db),
///         |db| diesel::update(orders::table.filter(orders::external_id.eq(external_id)))
///             .set(orders::amount.eq(amount))
///             .returning(orders::id)
///             .get_result(db),
///     )
/// }
///
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # diesel::sql_query("CREATE TABLE orders (id INTEGER PRIMARY KEY, external_id TEXT NOT NULL UNIQUE, amount BIGINT NOT NULL)").execute(&mut db)?;
/// assert_eq!(place(&mut db, "web-1017", 500)?, Upserted::Inserted(1));
/// assert_eq!(place(&mut db, "web-1017", 700)?, Upserted::Updated(1));
/// assert_eq!(orders::table.select((orders::id, orders::amount)).load::<(i64, i64)>(&mut db)?, [(1, 700)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// What the closures say, the violation of another constraint included; [`Conflict`](ErrorKind::Conflict) when the row comes and goes, or is hidden by an older snapshot of the
/// caller's transaction. Nothing was changed then.
///
/// # Cancellation
///
/// A dropped future rolls back, as that of [`begin`](crate::begin) does.
///
/// # SQL
///
/// ```sql
/// BEGIN; SAVEPOINT idem_body; INSERT …; ROLLBACK TO SAVEPOINT idem_body; UPDATE …; COMMIT
/// ```
pub async fn upsert<C, T>(
    db: &mut C,
    key: &UniqueKey,
    insert: impl AsyncFn(&mut C) -> QueryResult<T>,
    update: impl AsyncFn(&mut C) -> QueryResult<T>,
) -> Result<Upserted<T>, Error>
where
    C: IdempotentConnection<Flavor = Async>,
{
    Ok(match write(db, key, insert, update).await? {
        Found::New(value) => Upserted::Inserted(value),
        Found::There(value) => Upserted::Updated(value),
    })
}

/// [`upsert`](fn@upsert) for a sync connection.
///
/// # Errors
///
/// As for [`upsert`](fn@upsert).
pub fn upsert_sync<C, T>(
    db: &mut C,
    key: &UniqueKey,
    insert: impl Fn(&mut C) -> QueryResult<T>,
    update: impl Fn(&mut C) -> QueryResult<T>,
) -> Result<Upserted<T>, Error>
where
    C: IdempotentConnection<Flavor = Blocking>,
{
    let (insert, update) = (async |db: &mut C| insert(db), async |db: &mut C| update(db));
    Ok(match run_blocking(write(db, key, insert, update))? {
        Found::New(value) => Upserted::Inserted(value),
        Found::There(value) => Upserted::Updated(value),
    })
}

/// Inserts a row, or gives the one that has its business key, as it is; on an async connection.
///
/// `insert` must fail with a violation of `key` if the row is there. `get` reads the row; it fails with [`NotFound`](DieselError::NotFound) if there is none.
///
/// ```
/// # use diesel::prelude::*;
/// use idem_diesel::{GotOrInserted, UniqueKey, get_or_insert_sync};
///
/// diesel::table! { customers { id -> BigInt, email -> Text, } }
///
/// const EMAIL: UniqueKey = UniqueKey::new("customers_email_key", &["customers.email"]);
///
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # diesel::sql_query("CREATE TABLE customers (id INTEGER PRIMARY KEY, email TEXT NOT NULL UNIQUE)").execute(&mut db)?;
/// // The sync form; the async one is `get_or_insert(db, &EMAIL, async |db| …, async |db| …).await`.
/// let mut customer = |email: &str| get_or_insert_sync(
///     &mut db,
///     &EMAIL,
///     |db| diesel::insert_into(customers::table).values(customers::email.eq(email)).returning(customers::id).get_result::<i64>(db),
///     |db| customers::table.filter(customers::email.eq(email)).select(customers::id).first(db),
/// );
/// assert_eq!(customer("ann@example.com")?, GotOrInserted::Inserted(1));
/// assert_eq!(customer("ann@example.com")?, GotOrInserted::Got(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As for [`upsert`](fn@upsert).
///
/// # Cancellation
///
/// As for [`upsert`](fn@upsert).
///
/// # SQL
///
/// ```sql
/// BEGIN; SAVEPOINT idem_body; INSERT …; ROLLBACK TO SAVEPOINT idem_body; SELECT …; COMMIT
/// ```
pub async fn get_or_insert<C, T>(
    db: &mut C,
    key: &UniqueKey,
    insert: impl AsyncFn(&mut C) -> QueryResult<T>,
    get: impl AsyncFn(&mut C) -> QueryResult<T>,
) -> Result<GotOrInserted<T>, Error>
where
    C: IdempotentConnection<Flavor = Async>,
{
    Ok(match write(db, key, insert, get).await? {
        Found::New(value) => GotOrInserted::Inserted(value),
        Found::There(value) => GotOrInserted::Got(value),
    })
}

/// [`get_or_insert`](fn@get_or_insert) for a sync connection.
///
/// # Errors
///
/// As for [`upsert`](fn@upsert).
pub fn get_or_insert_sync<C, T>(
    db: &mut C,
    key: &UniqueKey,
    insert: impl Fn(&mut C) -> QueryResult<T>,
    get: impl Fn(&mut C) -> QueryResult<T>,
) -> Result<GotOrInserted<T>, Error>
where
    C: IdempotentConnection<Flavor = Blocking>,
{
    let (insert, get) = (async |db: &mut C| insert(db), async |db: &mut C| get(db));
    Ok(match run_blocking(write(db, key, insert, get))? {
        Found::New(value) => GotOrInserted::Inserted(value),
        Found::There(value) => GotOrInserted::Got(value),
    })
}

enum Found<T> {
    New(T),
    There(T),
}

/// Inserts, or does the other thing to the row that is there.
async fn write<C: IdempotentConnection, T>(
    db: &mut C,
    key: &UniqueKey,
    insert: impl AsyncFn(&mut C) -> QueryResult<T>,
    otherwise: impl AsyncFn(&mut C) -> QueryResult<T>,
) -> Result<Found<T>, Error> {
    let mut transaction = Transaction::new(db, Nested::Join)?;
    for _ in 0..MAX_ROUNDS {
        match in_transaction(&mut transaction, key, &insert, &otherwise).await {
            Ok(Some(found)) => return Ok(found),
            // It went away between the two statements.
            Ok(None) => {}
            // A transaction of the caller's keeps its snapshot, and the conflict with it.
            Err(error)
                if transaction.entry() == Entry::Own && kind_of(&error) == ErrorKind::Conflict => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(ErrorKind::Conflict.into())
}

/// One round, in a transaction or savepoint of its own, which is closed whatever comes of it. `None`: there was no row to be found, and none to be inserted.
async fn in_transaction<C: IdempotentConnection, T>(
    transaction: &mut Transaction<'_, C>,
    key: &UniqueKey,
    insert: &impl AsyncFn(&mut C) -> QueryResult<T>,
    otherwise: &impl AsyncFn(&mut C) -> QueryResult<T>,
) -> QueryResult<Option<Found<T>>> {
    transaction.set_patience(DEFAULT_WAIT).await?;
    let opened = transaction.open(&Opening::PLAIN, None).await;
    transaction.restore_patience().await?;
    opened?;
    let written = match transaction.inner().open_body().await {
        Ok(()) => written(transaction, key, insert, otherwise).await,
        Err(error) => Err(error),
    };
    match written {
        Ok(Some(found)) => transaction.commit(DEFAULT_WAIT).await.map(|()| Some(found)),
        other => {
            transaction.rollback().await;
            other
        }
    }
}

async fn written<C: IdempotentConnection, T>(
    transaction: &mut Transaction<'_, C>,
    key: &UniqueKey,
    insert: &impl AsyncFn(&mut C) -> QueryResult<T>,
    otherwise: &impl AsyncFn(&mut C) -> QueryResult<T>,
) -> QueryResult<Option<Found<T>>> {
    use idem_core::answer::End;
    match insert(transaction.connection()).await {
        Ok(value) => {
            transaction.inner().close_body(End::Completed).await?;
            Ok(Some(Found::New(value)))
        }
        Err(error) if key.is_violated(&error) => {
            transaction.inner().close_body(End::Failed).await?;
            match otherwise(transaction.connection()).await {
                Ok(value) => Ok(Some(Found::There(value))),
                Err(DieselError::NotFound) => Ok(None),
                Err(error) => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}
