//! Judges a history: sees calls, when they began and ended, what they were answered, and the rows that are there at the end.
//!
//! It knows nothing of records, transactions or waiting, and uses nothing of the library.

use std::collections::BTreeMap;

/// What one key of one operation stands for.
pub type Key = (&'static str, u32);

/// What a call asks for. Two calls with different ones are different requests.
pub type Payload = u8;

/// The number that the database gave to the effect of a call; 0 where effects have none.
pub type Id = i64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The call says that it did the work.
    Executed(Id),
    /// The call says that the work was done before.
    Replayed(Id),
    /// The key stands for another request.
    OtherRequest,
    /// Somebody else is at it.
    ComeBack,
    /// The work was begun and failed, by an error or a panic, so that nothing is to be left.
    WorkFailed,
    /// Nobody heard the answer.
    Unheard,
    /// The connection could not be used, so that nothing was begun.
    NotCalled,
}

/// One call. Times are places in one order of all beginnings and ends.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub key: Key,
    pub payload: Payload,
    pub began: u64,
    pub ended: u64,
    pub answer: Answer,
}

/// One effect that is there at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub key: Key,
    pub payload: Payload,
    pub id: Id,
}

/// What is wrong with a history, one sentence each.
pub fn judge(calls: &[Call], rows: &[Row]) -> Vec<String> {
    let mut by_key: BTreeMap<Key, (Vec<Call>, Vec<Row>)> = BTreeMap::new();
    for call in calls {
        by_key.entry(call.key).or_default().0.push(*call);
    }
    for row in rows {
        by_key.entry(row.key).or_default().1.push(*row);
    }
    let mut wrong = Vec::new();
    for ((operation, number), (calls, rows)) in by_key {
        for sentence in judge_key(&calls, &rows) {
            wrong.push(format!("{operation} {number}: {sentence}"));
        }
    }
    wrong
}

fn judge_key(calls: &[Call], rows: &[Row]) -> Vec<String> {
    let mut wrong = Vec::new();
    let executed: Vec<_> = calls
        .iter()
        .filter(|call| matches!(call.answer, Answer::Executed(_)))
        .collect();
    if executed.len() > 1 {
        wrong.push(format!("{} calls executed", executed.len()));
    }
    let row = match rows {
        [] => None,
        [row] => Some(row),
        rows => {
            wrong.push(format!("{} effects", rows.len()));
            return wrong;
        }
    };
    if let Some(row) = row {
        let may_have_made = |call: &&Call| {
            call.payload == row.payload
                && matches!(call.answer, Answer::Executed(_) | Answer::Unheard)
        };
        if !calls.iter().any(|call| may_have_made(&call)) {
            wrong.push("an effect that no call can have made".to_owned());
        }
    }
    for call in calls {
        wrong.extend(judge_answer(call, row, calls));
    }
    wrong
}

/// Whether an answer fits the row, and what was answered before this call began.
fn judge_answer(call: &Call, row: Option<&Row>, calls: &[Call]) -> Option<String> {
    let answer = call.answer;
    let is_of_row = row.is_some_and(|row| row.payload == call.payload);
    match answer {
        Answer::Executed(id) | Answer::Replayed(id) => {
            let Some(row) = row else {
                return Some(format!("{answer:?} without an effect"));
            };
            if (row.payload, row.id) != (call.payload, id) {
                return Some(format!(
                    "{answer:?} of payload {}, but the effect is {row:?}",
                    call.payload
                ));
            }
        }
        Answer::OtherRequest if row.is_none() => {
            return Some("another request is said to be there, but there is no effect".to_owned());
        }
        Answer::OtherRequest if is_of_row => {
            return Some("refused as another request, but it is the one of the effect".to_owned());
        }
        _ => {}
    }
    // Somebody must have begun the work of this key before its answer can be known.
    let needs_maker = matches!(answer, Answer::Replayed(_) | Answer::OtherRequest);
    let has_maker = calls.iter().any(|other| {
        other.began < call.ended
            && row.is_some_and(|row| row.payload == other.payload)
            && matches!(other.answer, Answer::Executed(_) | Answer::Unheard)
    });
    if needs_maker && !has_maker {
        return Some(format!(
            "{answer:?} before any call can have made the effect"
        ));
    }
    // Once somebody was told an answer, the work is never begun again.
    let was_known = calls.iter().any(|other| {
        other.ended < call.began
            && matches!(
                other.answer,
                Answer::Executed(_) | Answer::Replayed(_) | Answer::OtherRequest
            )
    });
    if was_known && matches!(answer, Answer::Executed(_) | Answer::WorkFailed) {
        return Some(format!("{answer:?} after an answer was known"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = ("pay", 1);

    fn call(payload: Payload, began: u64, ended: u64, answer: Answer) -> Call {
        Call {
            key: KEY,
            payload,
            began,
            ended,
            answer,
        }
    }

    fn row(payload: Payload, id: Id) -> Row {
        Row {
            key: KEY,
            payload,
            id,
        }
    }

    #[track_caller]
    fn check(calls: &[Call], rows: &[Row], expected: &[&str]) {
        assert_eq!(judge(calls, rows), expected);
    }

    #[test]
    fn what_may_happen_is_not_wrong() {
        use Answer::{ComeBack, Executed, NotCalled, OtherRequest, Replayed, Unheard, WorkFailed};
        check(&[], &[], &[]);
        check(
            &[
                call(1, 0, 1, WorkFailed),
                call(1, 2, 3, Unheard),
                call(1, 4, 5, NotCalled),
            ],
            &[],
            &[],
        );
        check(&[call(1, 0, 1, Unheard)], &[row(1, 7)], &[]);
        // A racing call can know the answer before the one that executed has returned.
        check(
            &[
                call(1, 0, 9, Executed(7)),
                call(1, 1, 2, Replayed(7)),
                call(2, 3, 4, OtherRequest),
                call(1, 5, 6, ComeBack),
            ],
            &[row(1, 7)],
            &[],
        );
        check(
            &[call(1, 0, 1, Unheard), call(1, 2, 3, Replayed(7))],
            &[row(1, 7)],
            &[],
        );
        check(
            &[call(2, 0, 5, WorkFailed), call(1, 1, 4, Executed(7))],
            &[row(1, 7)],
            &[],
        );
    }

    #[test]
    fn two_effects_are_wrong() {
        use Answer::{Executed, Unheard};
        check(
            &[call(1, 0, 1, Executed(7)), call(1, 0, 1, Unheard)],
            &[row(1, 7), row(1, 8)],
            &["pay 1: 2 effects"],
        );
        check(
            &[call(1, 0, 5, Executed(7)), call(1, 1, 4, Executed(7))],
            &[row(1, 7)],
            &["pay 1: 2 calls executed"],
        );
    }

    #[test]
    fn an_answer_without_its_effect_is_wrong() {
        use Answer::{Executed, OtherRequest, Replayed};
        check(
            &[call(1, 0, 1, Executed(7))],
            &[],
            &["pay 1: Executed(7) without an effect"],
        );
        check(
            &[call(1, 0, 1, OtherRequest)],
            &[],
            &["pay 1: another request is said to be there, but there is no effect"],
        );
        check(
            &[call(1, 0, 1, Executed(7)), call(1, 2, 3, Replayed(8))],
            &[row(1, 7)],
            &[
                "pay 1: Replayed(8) of payload 1, but the effect is Row { key: (\"pay\", 1), payload: 1, id: 7 }",
            ],
        );
        check(
            &[call(1, 0, 1, Executed(7)), call(2, 2, 3, Replayed(7))],
            &[row(1, 7)],
            &[
                "pay 1: Replayed(7) of payload 2, but the effect is Row { key: (\"pay\", 1), payload: 1, id: 7 }",
            ],
        );
        check(
            &[call(1, 0, 1, Executed(7)), call(1, 2, 3, OtherRequest)],
            &[row(1, 7)],
            &["pay 1: refused as another request, but it is the one of the effect"],
        );
    }

    #[test]
    fn an_effect_of_nobody_is_wrong() {
        use Answer::{NotCalled, Unheard, WorkFailed};
        for answer in [WorkFailed, NotCalled] {
            check(
                &[call(1, 0, 1, answer)],
                &[row(1, 7)],
                &["pay 1: an effect that no call can have made"],
            );
        }
        check(
            &[call(2, 0, 1, Unheard)],
            &[row(1, 7)],
            &["pay 1: an effect that no call can have made"],
        );
    }

    #[test]
    fn work_that_is_begun_again_is_wrong() {
        use Answer::{Executed, Replayed, Unheard, WorkFailed};
        check(
            &[call(1, 0, 1, Executed(7)), call(1, 2, 3, WorkFailed)],
            &[row(1, 7)],
            &["pay 1: WorkFailed after an answer was known"],
        );
        check(
            &[
                call(1, 0, 1, Unheard),
                call(1, 2, 3, Replayed(7)),
                call(1, 4, 5, Executed(7)),
            ],
            &[row(1, 7)],
            &["pay 1: Executed(7) after an answer was known"],
        );
    }

    #[test]
    fn an_answer_before_its_work_is_wrong() {
        use Answer::{Executed, Replayed};
        check(
            &[call(1, 0, 1, Replayed(7)), call(1, 2, 3, Executed(7))],
            &[row(1, 7)],
            &[
                "pay 1: Replayed(7) before any call can have made the effect",
                "pay 1: Executed(7) after an answer was known",
            ],
        );
    }
}
