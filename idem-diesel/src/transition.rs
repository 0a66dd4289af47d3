//! The guarded change of an entity's state: the UPDATE decides, never a value that was read earlier.

use std::marker::PhantomData;

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Nullable, Text};
use idem_core::{ErrorKind, StateMachine, Transition};

use crate::connection::{Flavor, IdempotentConnection, Run};
use crate::dialect::{Dialect, TableName};
use crate::driver::Driver;
use crate::error::Error;

/// How often an entity is looked at whose state changed between the update and the read.
const MAX_ROUNDS: u32 = 4;

/// A state machine whose state is a column of a table; `#[derive(StateMachine)]` with `table` and `column` makes it one.
///
/// ```
/// use idem_diesel::{StateColumn, StateMachine};
///
/// diesel::table! { parcels { id -> BigInt, status -> Text, } }
///
/// #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
/// #[state_machine(table = parcels, column = status)]
/// enum Parcel {
///     #[state(initial, to(Sent))] Packed,
///     #[state(terminal)] Sent,
/// }
///
/// assert_eq!((Parcel::COLUMN, Parcel::KEY), ("status", ["id"].as_slice()));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no state machine with a table",
    label = "its state is not known to be a column",
    note = "derive `StateMachine` for it, with `#[state_machine(table = orders, column = status)]`"
)]
pub trait StateColumn: StateMachine {
    /// The table's type.
    #[doc(hidden)]
    type Table: TableName;
    /// The table.
    #[doc(hidden)]
    const TABLE: &'static Self::Table;
    /// The column that holds the state.
    const COLUMN: &'static str;
    /// The columns that select one entity.
    const KEY: &'static [&'static str];
}

/// A value that selects an entity: an integer, a text, a UUID, or a tuple of these for a composite key.
///
/// ```
/// use idem_diesel::EntityKey;
///
/// assert_eq!(("acme", 17_i64).into_values().len(), 2);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot select an entity",
    label = "not an id",
    note = "an id is an i16, i32, i64, String, &str or (feature `uuid`) Uuid, or a tuple of these for a composite key"
)]
pub trait EntityKey {
    /// The values, in the order of the key's columns.
    ///
    /// ```
    /// use idem_diesel::EntityKey;
    ///
    /// assert_eq!(17_i64.into_values(), 17_i32.into_values());
    /// ```
    fn into_values(self) -> Vec<KeyValue>;
}

/// One value of an entity's key.
///
/// ```
/// use idem_diesel::transition::KeyPart;
///
/// assert_ne!("17".into_value(), 17_i64.into_value());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyValue(Value);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Integer(i64),
    Text(String),
    #[cfg(feature = "uuid")]
    Uuid(String),
}

/// A type that is one column of a key.
///
/// ```
/// use idem_diesel::transition::KeyPart;
///
/// assert_eq!("acme".into_value(), String::from("acme").into_value());
/// ```
pub trait KeyPart {
    /// The value.
    ///
    /// ```
    /// use idem_diesel::transition::KeyPart;
    ///
    /// assert_eq!((&17_i32).into_value(), 17_i64.into_value());
    /// ```
    fn into_value(self) -> KeyValue;
}

macro_rules! integer_keys {
    ($($integer:ty),+) => {$(
        impl KeyPart for $integer {
            fn into_value(self) -> KeyValue {
                KeyValue(Value::Integer(i64::from(self)))
            }
        }
    )+};
}

integer_keys!(i16, i32, i64, u8, u16, u32);

impl KeyPart for &str {
    fn into_value(self) -> KeyValue {
        KeyValue(Value::Text(self.to_owned()))
    }
}

impl KeyPart for String {
    fn into_value(self) -> KeyValue {
        KeyValue(Value::Text(self))
    }
}

#[cfg(feature = "uuid")]
impl KeyPart for uuid::Uuid {
    fn into_value(self) -> KeyValue {
        KeyValue(Value::Uuid(self.to_string()))
    }
}

impl<K: KeyPart + Clone> KeyPart for &K {
    fn into_value(self) -> KeyValue {
        self.clone().into_value()
    }
}

#[diagnostic::do_not_recommend]
impl<K: KeyPart> EntityKey for K {
    fn into_values(self) -> Vec<KeyValue> {
        vec![self.into_value()]
    }
}

macro_rules! composite_keys {
    ($(($($part:ident),+)),+) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($part: KeyPart),+> EntityKey for ($($part,)+) {
            fn into_values(self) -> Vec<KeyValue> {
                #[expect(non_snake_case, reason = "the variables are named after their types")]
                let ($($part,)+) = self;
                vec![$($part.into_value()),+]
            }
        }
    )+};
}

composite_keys!((A, B), (A, B, C), (A, B, C, D));

impl KeyValue {
    fn push<'b, DB: Dialect>(&'b self, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()> {
        match &self.0 {
            Value::Integer(integer) => DB::push_integer(out, integer),
            Value::Text(text) => DB::push_text(out, text),
            #[cfg(feature = "uuid")]
            Value::Uuid(text) => DB::push_uuid(out, text),
        }
    }
}

/// `"a" = … AND "b" = …`
fn push_is_entity<'b, S: StateColumn, DB: Dialect>(
    key: &'b [KeyValue],
    out: &mut AstPass<'_, 'b, DB>,
) -> QueryResult<()> {
    for (position, (column, value)) in S::KEY.iter().zip(key).enumerate() {
        if position > 0 {
            out.push_sql(" AND ");
        }
        out.push_identifier(column)?;
        out.push_sql(" = ");
        value.push(out)?;
    }
    Ok(())
}

/// `UPDATE orders SET status = 'paid' WHERE id = … AND status IN ('pending')`
struct Advance<S> {
    to: &'static str,
    from: Vec<&'static str>,
    key: Vec<KeyValue>,
    machine: PhantomData<fn() -> S>,
}

impl<S> QueryId for Advance<S> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<S: StateColumn, DB: Dialect> QueryFragment<DB> for Advance<S> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("UPDATE ");
        DB::push_table(out.reborrow(), S::TABLE)?;
        out.push_sql(" SET ");
        out.push_identifier(S::COLUMN)?;
        out.push_sql(" = ");
        DB::push_label(&mut out, self.to)?;
        out.push_sql(" WHERE ");
        push_is_entity::<S, DB>(&self.key, &mut out)?;
        out.push_sql(" AND ");
        out.push_identifier(S::COLUMN)?;
        out.push_sql(" IN (");
        for (position, from) in self.from.iter().enumerate() {
            if position > 0 {
                out.push_sql(", ");
            }
            DB::push_label(&mut out, from)?;
        }
        out.push_sql(")");
        Ok(())
    }
}

/// `SELECT status FROM orders WHERE id = …`
struct Current<S> {
    key: Vec<KeyValue>,
    machine: PhantomData<fn() -> S>,
}

impl<S> QueryId for Current<S> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<S> Query for Current<S> {
    type SqlType = Nullable<Text>;
}

impl<S: StateColumn, DB: Dialect> QueryFragment<DB> for Current<S> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("SELECT CAST(");
        out.push_identifier(S::COLUMN)?;
        out.push_sql(" AS text) FROM ");
        DB::push_table(out.reborrow(), S::TABLE)?;
        out.push_sql(" WHERE ");
        push_is_entity::<S, DB>(&self.key, &mut out)
    }
}

/// Runs the update, and says why it changed nothing.
pub(crate) async fn advance<D: Driver, S: StateColumn>(
    db: &mut D,
    transition: &Transition<S>,
    key: Vec<KeyValue>,
) -> Result<(), Error> {
    let to = transition.to().name();
    if let Some(from) = transition.undeclared() {
        let from = from.name();
        return Err(ErrorKind::UndeclaredTransition { from, to }.into());
    }
    if key.len() != S::KEY.len() {
        let (expected, given) = (S::KEY.len(), key.len());
        return Err(ErrorKind::SchemaWrong {
            problem: format!(
                "{} has a key of {expected} columns, and an id of {given} values was given",
                S::NAME
            ),
        }
        .into());
    }
    for _ in 0..MAX_ROUNDS {
        let update = Advance::<S> {
            to,
            from: transition.from().iter().map(|from| from.name()).collect(),
            key: key.clone(),
            machine: PhantomData,
        };
        match db.execute(update).await? {
            0 => {}
            1 => return Ok(()),
            _ => {
                return Err(ErrorKind::SchemaWrong {
                    problem: format!("the key of {} selects more than one row", S::NAME),
                }
                .into());
            }
        }
        let current = Current::<S> {
            key: key.clone(),
            machine: PhantomData,
        };
        let Some(state) = db.texts(current).await?.into_iter().next() else {
            return Err(ErrorKind::EntityNotFound { entity: S::NAME }.into());
        };
        let current = state.unwrap_or_default();
        if current == to {
            return Err(ErrorKind::AlreadyApplied { state: current }.into());
        }
        if !transition.from().iter().any(|from| from.name() == current) {
            return Err(ErrorKind::IllegalTransition { current, to }.into());
        }
        // It came back to a state that the transition starts from, after the update had looked.
    }
    Err(ErrorKind::Conflict.into())
}

/// Carries a transition out where its target is known only in the body.
///
/// ```
/// # use diesel::prelude::*;
/// use idem_diesel::{ApplyTransition, StateMachine};
///
/// diesel::table! { parcels { id -> BigInt, status -> Text, } }
///
/// #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
/// #[state_machine(table = parcels, column = status)]
/// enum Parcel {
///     #[state(initial, to(Sent))] Packed,
///     #[state(terminal)] Sent,
/// }
///
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # diesel::sql_query("CREATE TABLE parcels (id BIGINT PRIMARY KEY, status TEXT NOT NULL)").execute(&mut db)?;
/// # diesel::sql_query("INSERT INTO parcels VALUES (1, 'packed')").execute(&mut db)?;
/// Parcel::Sent.from(Parcel::Packed).apply(&mut db, 1_i64)?;
/// let again = Parcel::Sent.from(Parcel::Packed).apply(&mut db, 1_i64).unwrap_err();
/// assert!(again.is_already_applied());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ApplyTransition {
    /// Changes the state of the entity `id`, if it is in a state that the transition starts from.
    ///
    /// # Errors
    ///
    /// [`AlreadyApplied`](ErrorKind::AlreadyApplied), [`IllegalTransition`](ErrorKind::IllegalTransition),
    /// [`EntityNotFound`](ErrorKind::EntityNotFound), [`UndeclaredTransition`](ErrorKind::UndeclaredTransition), or what the
    /// database says.
    ///
    /// # Cancellation
    ///
    /// One statement: a dropped future has changed the state or has not, and the transaction around it decides.
    fn apply<C: IdempotentConnection>(
        self,
        db: &mut C,
        id: impl EntityKey,
    ) -> Run<'_, C, Result<(), Error>>;
}

impl<S: StateColumn> ApplyTransition for Transition<S> {
    fn apply<C: IdempotentConnection>(
        self,
        db: &mut C,
        id: impl EntityKey,
    ) -> Run<'_, C, Result<(), Error>> {
        let key = id.into_values();
        C::Flavor::run(async move { advance(db.inner(), &self, key).await })
    }
}

/// A column of type `Self` that can hold a state stored as `Stored`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the column is of type `{Self}`, but the states are stored as `{Stored}`",
    label = "this column cannot hold the state",
    note = "name the column that holds the state, or say how it is stored: `sql_type = path::to::SqlType`"
)]
pub trait HoldsState<Stored> {}

impl<T> HoldsState<T> for T {}

impl<T: diesel::sql_types::SqlType> HoldsState<T> for Nullable<T> {}

/// Compiles when the column can hold the state.
#[doc(hidden)]
pub const fn column_holds_state<Column: HoldsState<Stored>, Stored>() {}
