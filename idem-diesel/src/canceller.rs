//! Ends on the server what a dropped call left running there.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use diesel::connection::{Instrumentation, InstrumentationEvent, get_default_instrumentation};
use diesel_async::{AsyncConnection, AsyncPgConnection};
use tokio::runtime::Handle;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{CancelToken, Socket};

type Cancelling = Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>;

/// Cancels the statement of a call that is dropped while the server still runs it, so that the key is free at once.
///
/// A dropped call has ROLLBACK on the wire when the drop returns, but the server comes to it only when it is done with the statement
/// before it. On a connection that a canceller [watches](Self::watch) such a call marks the connection broken, so that no pool
/// hands it out again, and then asks the server to cancel the statement. A call that is dropped between two statements, as
/// most are, is not concerned: its connection stays usable. Nor are two others: a call whose answer and COMMIT are on the wire, because what is
/// committed may still wait for a replica, and one that [joined](crate::Nested::Join) its caller's transaction, which is the caller's to end.
///
/// The request goes over a connection of its own, as PostgreSQL has it
/// ([Canceling Requests in Progress](https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-CANCELING-REQUESTS)),
/// which is why it needs the TLS that the watched connections use: `tokio_postgres::NoTls`, or what was given to
/// `tokio_postgres::connect`.
///
/// ```no_run
/// use diesel_async::{AsyncConnection, AsyncPgConnection};
/// use idem_diesel::Canceller;
///
/// # async fn connect(url: &str) -> Result<(), Box<dyn std::error::Error>> {
/// let canceller = Canceller::new(tokio_postgres::NoTls);
/// // Once for each connection: in a pool, where it is made (`ManagerConfig::custom_setup`).
/// let mut db = AsyncPgConnection::establish(url).await?;
/// canceller.watch(&mut db);
/// assert!(Canceller::is_watching(&mut db));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Canceller {
    cancel: Arc<dyn Fn(CancelToken) -> Cancelling + Send + Sync>,
}

impl Canceller {
    /// A canceller that reaches the server through `tls`.
    ///
    /// ```
    /// let _canceller = idem_diesel::Canceller::new(tokio_postgres::NoTls);
    /// ```
    pub fn new<T>(tls: T) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        Self {
            cancel: Arc::new(move |token| {
                let tls = tls.clone();
                Box::pin(async move { token.cancel_query(tls).await })
            }),
        }
    }

    /// Watches a connection from now on.
    ///
    /// Diesel's instrumentation is what tells that a statement runs, so this sets the connection's. The default of
    /// `diesel::connection::set_default_instrumentation` goes on seeing every event; another one is handed over with [`watch_with`](Self::watch_with).
    pub fn watch(&self, db: &mut AsyncPgConnection) {
        self.install(db, get_default_instrumentation());
    }

    /// Watches a connection, and hands every event on to `instrumentation`.
    pub fn watch_with(&self, db: &mut AsyncPgConnection, instrumentation: impl Instrumentation) {
        self.install(db, Some(Box::new(instrumentation)));
    }

    fn install(&self, db: &mut AsyncPgConnection, next: Option<Box<dyn Instrumentation>>) {
        let token = db.cancel_token();
        db.set_instrumentation(Watch {
            canceller: self.clone(),
            token,
            running: 0,
            next,
        });
    }

    /// Whether the connection is watched. It is not any more after its instrumentation was replaced.
    pub fn is_watching(db: &mut AsyncPgConnection) -> bool {
        watch(db).is_some()
    }
}

impl std::fmt::Debug for Canceller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Canceller").finish_non_exhaustive()
    }
}

/// The instrumentation of a watched connection.
struct Watch {
    canceller: Canceller,
    token: CancelToken,
    /// How many statements were started and did not finish; one whose future was dropped never does.
    running: u32,
    next: Option<Box<dyn Instrumentation>>,
}

impl Instrumentation for Watch {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        match &event {
            InstrumentationEvent::StartQuery { .. } => {
                self.running = self.running.saturating_add(1);
            }
            InstrumentationEvent::FinishQuery { .. } => {
                self.running = self.running.saturating_sub(1);
            }
            _ => {}
        }
        if let Some(next) = &mut self.next {
            next.on_connection_event(event);
        }
    }
}

fn watch(db: &mut AsyncPgConnection) -> Option<&mut Watch> {
    db.instrumentation().downcast_mut()
}

/// Nothing runs on the connection now: the server has answered a message that was sent behind all others.
pub(crate) fn nothing_runs(db: &mut AsyncPgConnection) {
    if let Some(watch) = watch(db) {
        watch.running = 0;
    }
}

/// A statement was started whose end nobody will see, and which takes no time.
pub(crate) fn one_is_not_waited_for(db: &mut AsyncPgConnection) {
    if let Some(watch) = watch(db) {
        watch.running = watch.running.saturating_sub(1);
    }
}

/// What cancels the statement that the server runs for this connection, if one runs and somebody watches.
pub(crate) fn running_statement(db: &mut AsyncPgConnection) -> Option<RunningStatement> {
    let runtime = Handle::try_current().ok()?;
    let watch = watch(db).filter(|watch| watch.running > 0)?;
    Some(RunningStatement {
        runtime,
        cancelling: (watch.canceller.cancel)(watch.token.clone()),
    })
}

pub(crate) struct RunningStatement {
    runtime: Handle,
    cancelling: Cancelling,
}

impl RunningStatement {
    /// Asks the server to cancel it, without waiting for that. The connection must be marked broken: the request may come late, and
    /// hit whatever the session does then.
    pub(crate) fn cancel(self) {
        self.runtime.spawn(async move {
            if let Err(error) = self.cancelling.await {
                tracing::warn!(%error, "the statement of a dropped call could not be cancelled");
            }
        });
    }
}
