//! What becomes of a delivered message: the one place where it is decided, without a broker.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use idem_diesel::inbox::{self, Attempt, DeliveryCount, Fate};
use idem_diesel::{Consumed, Error, ErrorKind, MessageId};
use tokio::time::Instant;
use tracing::Instrument;

use super::{ANSWERED_WITHIN, ConsumeLoop, HELD_AT_MOST, Handler, HandlerError, Received, Stop};
use crate::connect::CONNECTED_WITHIN;
use crate::connect::Connect;
use crate::relay::{OUTAGE_PAUSES, message, rests, shown};

/// What a broker delivers.
#[derive(Debug)]
pub(super) struct Delivered {
    pub id: Option<String>,
    pub payload: Vec<u8>,
    pub headers: Vec<(String, String)>,
    pub count: DeliveryCount,
}

/// What a broker is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settlement {
    /// It is consumed.
    Acknowledge,
    /// It is to come again.
    Again { pause: Duration, reason: Reason },
    /// It is not to come again.
    End,
}

/// Why a message is to come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// An attempt failed.
    Failed,
    /// There was none.
    Untried,
}

/// A loop at work: it has a connection, or needs one.
pub(super) struct Worker<'l, S: Connect, H> {
    consume: &'l ConsumeLoop<S, H>,
    db: Option<S::Connection>,
    stop: Stop,
}

/// How far a message has come.
enum Step {
    Count,
    Handle { number: u32, is_repeated: bool },
    Note { number: u32, failure: Failure },
}

struct Failure {
    text: String,
    is_permanent: bool,
}

impl From<HandlerError> for Failure {
    fn from(error: HandlerError) -> Self {
        Self {
            text: error.shown(),
            is_permanent: error.is_permanent(),
        }
    }
}

impl Step {
    /// It could not be done now.
    fn held(self) -> Next {
        let after = Duration::ZERO;
        Next::Hold { step: self, after }
    }
}

/// What a step came to.
enum Next {
    Step(Step),
    Settled(Settlement),
    /// The same step again, after a while and not before `after`.
    Hold {
        step: Step,
        after: Duration,
    },
}

impl<'l, S: Connect, H: Handler<S::Connection>> Worker<'l, S, H> {
    pub(super) fn new(consume: &'l ConsumeLoop<S, H>, stop: Stop) -> Self {
        let db = None;
        Self { consume, db, stop }
    }

    /// Waits until there is a connection, so that no message is taken that nothing can be done about. Whether the loop goes on.
    pub(super) async fn ready(&mut self) -> bool {
        let mut pauses = rests(OUTAGE_PAUSES);
        let mut stop = self.stop.clone();
        while !stop.is_stopped() {
            if stop.or(self.connect()).await == Some(true) {
                return true;
            }
            stop.rest(pauses.next().unwrap_or(OUTAGE_PAUSES.1)).await;
        }
        false
    }

    async fn connect(&mut self) -> bool {
        if self.db.is_some() {
            return true;
        }
        let connecting = tokio::time::timeout(CONNECTED_WITHIN, self.consume.source.connect());
        match connecting.await {
            Ok(Ok(db)) => self.db = Some(db),
            Ok(Err(error)) => {
                tracing::warn!(error = shown(&*error), "no connection to the database");
            }
            Err(_) => tracing::warn!("no connection to the database within {CONNECTED_WITHIN:?}"),
        }
        self.db.is_some()
    }

    /// Handles a message, and says what the broker is told.
    pub(super) async fn settle(&mut self, delivered: Delivered) -> Settlement {
        let subscriber = self.consume.subscription.subscriber();
        let id = match MessageId::required(delivered.id.as_deref()) {
            Ok(id) => id,
            Err(invalid) => {
                tracing::error!(subscriber, error = %invalid, "a message was refused: nothing could tell its deliveries apart");
                self.count("idem_inbox_refused");
                return Settlement::End;
            }
        };
        let subscription = &self.consume.subscription;
        let mut received = Received::new(subscription, id, delivered.payload, delivered.count);
        for (name, value) in delivered.headers {
            received = received.with_header(name, value);
        }
        let span = tracing::info_span!(
            "consume",
            subscriber,
            message_id = received.id().as_str(),
            delivery = ?received.delivery_count(),
            traceparent = received.traceparent(),
        );
        self.steps(&received).instrument(span).await
    }

    async fn steps(&mut self, message: &Received) -> Settlement {
        let held_until = Instant::now() + HELD_AT_MOST;
        let mut pauses = rests(OUTAGE_PAUSES);
        let mut step = Step::Count;
        loop {
            let next = if self.connect().await {
                self.step(step, message).await
            } else {
                step.held()
            };
            step = match next {
                Next::Settled(settlement) => return settlement,
                Next::Step(step) => step,
                Next::Hold { step, after } => {
                    let pause = pauses.next().unwrap_or(OUTAGE_PAUSES.1).max(after);
                    let is_over = Instant::now() + pause >= held_until;
                    if is_over || !self.stop.rest(pause).await {
                        tracing::warn!("a message is given back: it could not be tried");
                        return self.untried();
                    }
                    step
                }
            };
        }
    }

    async fn step(&mut self, step: Step, received: &Received) -> Next {
        match step {
            Step::Count => self.count_attempt(received).await,
            Step::Handle {
                number,
                is_repeated,
            } => self.handle(number, is_repeated, received).await,
            Step::Note { number, failure } => self.note(number, failure, received).await,
        }
    }

    async fn count_attempt(&mut self, received: &Received) -> Next {
        let Some(db) = &mut self.db else {
            return Step::Count.held();
        };
        let count = match received.delivery_count() {
            DeliveryCount::First | DeliveryCount::Exact(0 | 1) => DeliveryCount::First,
            // How many of them reached the handler, only the inbox knows.
            DeliveryCount::Again | DeliveryCount::Exact(_) => DeliveryCount::Again,
        };
        let subscription = &self.consume.subscription;
        let attempt = inbox::attempt(db, subscription, received.id(), count, received.payload());
        match answered(attempt).await {
            Ok(Attempt::Go { number }) => Next::Step(Step::Handle {
                number,
                is_repeated: false,
            }),
            Ok(Attempt::GivenUp) => {
                tracing::error!("a message is parked: no attempt lived to say why it failed");
                self.count("idem_inbox_dead");
                Next::Settled(Settlement::End)
            }
            Err(error) => self.trouble(&error, Step::Count),
        }
    }

    async fn handle(&mut self, number: u32, is_repeated: bool, received: &Received) -> Next {
        let Some(db) = &mut self.db else {
            let step = Step::Handle {
                number,
                is_repeated,
            };
            return step.held();
        };
        // The call itself may panic, too, before there is a future.
        let handling = async { self.consume.handler.handle(db, received).await };
        let handled = AssertUnwindSafe(handling).catch_unwind().await;
        let error = match handled {
            Ok(Ok(consumed)) => return Next::Settled(self.consumed(consumed)),
            Ok(Err(error)) => error,
            Err(panic) => {
                self.db = None;
                let text = format!("the handler panicked: {}", message(&*panic));
                let failure = Failure {
                    text,
                    is_permanent: false,
                };
                return Next::Step(Step::Note { number, failure });
            }
        };
        // Whatever state the error left it in.
        self.db = None;
        match error.kind() {
            _ if error.is_permanent() => {}
            Some(kind @ (ErrorKind::Mismatch | ErrorKind::Parked)) => {
                return Next::Settled(self.refused(kind, &error));
            }
            Some(ErrorKind::InFlight { retry_after } | ErrorKind::Busy { retry_after }) => {
                tracing::info!(error = error.shown(), "a message is held");
                let step = Step::Handle {
                    number,
                    is_repeated,
                };
                let after = *retry_after;
                return Next::Hold { step, after };
            }
            Some(ErrorKind::ConnectionLost) if !is_repeated => {
                tracing::warn!(error = error.shown(), "the handler runs once more");
                return Next::Step(Step::Handle {
                    number,
                    is_repeated: true,
                });
            }
            _ => {}
        }
        let failure = error.into();
        Next::Step(Step::Note { number, failure })
    }

    /// The attempt failed, and whatever it did is rolled back.
    async fn note(&mut self, number: u32, failure: Failure, received: &Received) -> Next {
        let Some(db) = &mut self.db else {
            return Step::Note { number, failure }.held();
        };
        let (subscription, id) = (&self.consume.subscription, received.id());
        let (text, payload) = (failure.text.as_str(), received.payload());
        let noted = if failure.is_permanent {
            let given_up = inbox::give_up(db, subscription, id, number, text, payload);
            answered(given_up).await.map(|()| Fate::Dead)
        } else {
            answered(inbox::failed(db, subscription, id, number, text, payload)).await
        };
        match noted {
            Ok(Fate::Again) => {
                let pause = self.pause_after(number);
                tracing::warn!(attempt = number, error = text, ?pause, "an attempt failed");
                self.count("idem_inbox_failed");
                let reason = Reason::Failed;
                Next::Settled(Settlement::Again { pause, reason })
            }
            Ok(Fate::Dead) => {
                tracing::error!(attempt = number, error = text, "a message is parked");
                self.count("idem_inbox_failed");
                self.count("idem_inbox_dead");
                Next::Settled(Settlement::End)
            }
            Err(error) => self.trouble(&error, Step::Note { number, failure }),
        }
    }

    /// A statement of the inbox failed. If it is only this message's, such as a lock that another copy of it holds, those behind it go on.
    fn trouble(&mut self, error: &Error, step: Step) -> Next {
        tracing::warn!(error = shown(error), "the inbox could not be written");
        self.db = None;
        match error.kind() {
            ErrorKind::ConnectionLost | ErrorKind::OutcomeUnknown | ErrorKind::Busy { .. } => {
                step.held()
            }
            _ => Next::Settled(self.untried()),
        }
    }

    fn consumed(&self, consumed: Consumed) -> Settlement {
        self.count(match consumed {
            Consumed::Processed(()) => "idem_inbox_processed",
            Consumed::Duplicate | Consumed::AlreadyApplied => "idem_inbox_duplicates",
        });
        Settlement::Acknowledge
    }

    fn refused(&self, kind: &ErrorKind, error: &HandlerError) -> Settlement {
        let error = error.shown();
        if kind == &ErrorKind::Parked {
            tracing::warn!(error, "a message was refused: it is parked");
        } else {
            tracing::error!(
                error,
                "a message was refused: another one was processed under its id"
            );
        }
        self.count("idem_inbox_refused");
        Settlement::End
    }

    fn untried(&self) -> Settlement {
        Settlement::Again {
            pause: self.pause_after(1),
            reason: Reason::Untried,
        }
    }

    fn pause_after(&self, attempt: u32) -> Duration {
        let before = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        let mut pauses = rests(self.consume.pauses);
        // Doubled so often, every pause is the longest.
        pauses
            .nth(before.min(MAX_DOUBLINGS))
            .unwrap_or(self.consume.pauses.1)
    }

    fn count(&self, counter: &'static str) {
        let subscriber = self.consume.subscription.subscriber();
        metrics::counter!(counter, "subscriber" => subscriber).increment(1);
    }
}

/// A database that says nothing is as good as gone: its connection is given up.
async fn answered<T>(statement: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    match tokio::time::timeout(ANSWERED_WITHIN, statement).await {
        Ok(answer) => answer,
        Err(_) => Err(ErrorKind::ConnectionLost.into()),
    }
}

/// After so many doublings a pause of a nanosecond would be longer than any longest one.
const MAX_DOUBLINGS: usize = 64;

#[cfg(test)]
mod tests;
