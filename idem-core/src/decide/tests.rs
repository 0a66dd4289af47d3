//! Every record x call x time, compared with the table written out as a list of rows.

use std::time::{Duration, SystemTime};

use super::*;
use crate::answer::{End, StoredAnswer};
use crate::record::Lease;

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn at(seconds: i64) -> SystemTime {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 {
        NOW - distance
    } else {
        NOW + distance
    }
}

/// A digest of scheme `scheme` whose 32 bytes are `fill`.
fn digest(scheme: u8, fill: u8) -> RequestDigest {
    let hex = format!("{scheme:02x}{}", format!("{fill:02x}").repeat(32));
    RequestDigest::from_hex(&hex).unwrap()
}

fn answer(end: End) -> StoredAnswer {
    StoredAnswer::json(end, b"{}".to_vec())
}

fn states() -> Vec<RecordState> {
    let mut states = vec![
        RecordState::Retained(answer(End::Completed)),
        RecordState::Retained(answer(End::Failed)),
        RecordState::Tombstone,
    ];
    for writer in [Writer::ThisTransaction, Writer::Committed] {
        states.push(RecordState::Pending {
            writer,
            lease: None,
        });
        for lease_end in [-1, 0, 1] {
            states.push(RecordState::Pending {
                writer,
                lease: Some(Lease {
                    owner: "worker-1".to_owned(),
                    expires_at: at(lease_end),
                }),
            });
        }
    }
    states
}

/// The table of the design, row by row, written without sharing code with `decide`: the first row that fits decides.
fn expected<'r>(record: &'r Record, hashes: &[RequestDigest], call: &Call<'_>) -> Decision<'r> {
    let reject = Decision::Reject;
    let next = Decision::TakeOver {
        attempt: record.attempt + 1,
    };
    let schemes: Vec<u8> = hashes.iter().map(RequestDigest::scheme).collect();
    let is_same = hashes.contains(&record.request_hash);
    let is_known = schemes.contains(&record.request_hash.scheme());
    let is_expired = record.expires_at <= NOW;
    let no_answer = record.state == RecordState::Tombstone;
    match &record.state {
        RecordState::Pending {
            writer: Writer::ThisTransaction,
            lease: None,
        } => reject(Rejection::Reentrant),
        RecordState::Pending {
            writer: Writer::Committed,
            lease: None,
        } => reject(Rejection::Orphaned),
        RecordState::Pending {
            lease: Some(lease), ..
        } if lease.expires_at > NOW => Decision::Wait {
            lease_left: Duration::from_secs(1),
        },
        _ if !is_known => reject(Rejection::SchemeChanged {
            stored: record.request_hash.scheme(),
        }),
        _ if !is_same => reject(Rejection::Mismatch),
        RecordState::Pending { .. } if call.lapsed == Lapsed::TakeOver => next,
        RecordState::Pending { .. } => reject(Rejection::Parked),
        _ if (is_expired || no_answer) && call.late == Late::Reject => reject(Rejection::Expired),
        _ if is_expired || no_answer => next,
        RecordState::Retained(answer) => Decision::Replay(answer),
        RecordState::Tombstone => unreachable!("a tombstone has no answer"),
    }
}

#[test]
fn every_record_call_and_time_gives_the_row_of_the_table() {
    let known: [&[RequestDigest]; 2] = [
        &[digest(1, 7)],
        // A build after the scheme changed: it still hashes under the old one.
        &[digest(2, 9), digest(1, 7)],
    ];
    let mut combinations = 0;
    for state in states() {
        for stored in [
            digest(1, 7),
            digest(1, 8),
            digest(2, 9),
            digest(2, 7),
            digest(9, 7),
        ] {
            for expires in [-1, 0, 1] {
                for attempt in [1, 41] {
                    let record = Record {
                        request_hash: stored.clone(),
                        state: state.clone(),
                        attempt,
                        expires_at: at(expires),
                    };
                    for hashes in known {
                        for late in [Late::Reject, Late::Execute] {
                            for lapsed in [Lapsed::TakeOver, Lapsed::Park] {
                                let call = Call {
                                    request_hashes: hashes,
                                    late,
                                    lapsed,
                                };
                                assert_eq!(
                                    decide(Some(&record), &call, NOW),
                                    expected(&record, hashes, &call),
                                    "{record:?} {call:?}"
                                );
                                combinations += 1;
                            }
                        }
                    }
                }
            }
        }
    }
    assert_eq!(combinations, 11 * 5 * 3 * 2 * 2 * 2 * 2);
}

#[test]
fn a_new_key_executes_under_every_policy() {
    for late in [Late::Reject, Late::Execute] {
        for lapsed in [Lapsed::TakeOver, Lapsed::Park] {
            let call = Call {
                request_hashes: &[digest(1, 7)],
                late,
                lapsed,
            };
            assert_eq!(decide(None, &call, NOW), Decision::Execute);
        }
    }
}

#[test]
fn another_request_never_executes_whatever_the_record_holds() {
    for state in states() {
        for late in [Late::Reject, Late::Execute] {
            for lapsed in [Lapsed::TakeOver, Lapsed::Park] {
                let record = Record {
                    request_hash: digest(1, 8),
                    state: state.clone(),
                    attempt: 1,
                    expires_at: at(-1),
                };
                let call = Call {
                    request_hashes: &[digest(1, 7)],
                    late,
                    lapsed,
                };
                let decision = decide(Some(&record), &call, NOW);
                assert!(
                    matches!(decision, Decision::Reject(_) | Decision::Wait { .. }),
                    "{record:?} {decision:?}"
                );
            }
        }
    }
}

#[test]
fn exactly_at_the_end_is_over() {
    let record = |seconds| Record {
        request_hash: digest(1, 7),
        state: RecordState::Retained(answer(End::Completed)),
        attempt: 1,
        expires_at: at(seconds),
    };
    let call = Call {
        request_hashes: &[digest(1, 7)],
        late: Late::Reject,
        lapsed: Lapsed::Park,
    };
    assert!(matches!(
        decide(Some(&record(1)), &call, NOW),
        Decision::Replay(_)
    ));
    assert_eq!(
        decide(Some(&record(0)), &call, NOW),
        Decision::Reject(Rejection::Expired)
    );
}
