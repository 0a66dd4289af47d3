//! Every state of the protocol keeps the promises, and every mutant breaks one.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::io::Write as _;

use idem_model::call::BodyEnd;
use idem_model::report::Report;
use idem_model::{Action, Mutant, Protocol, State, Told, Who};
use stateright::Path;

/// Fewer states would mean that something does not happen any more.
const AT_LEAST: usize = 100_000;

/// Past the capture of a test's output, so that every run shows the numbers.
fn print(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "model: {line}").unwrap();
}

#[track_caller]
fn every_state_keeps_the_promises(name: &str, protocol: Protocol) {
    let report = Report::of(protocol);
    print(&format!("{name}: {report}"));
    assert!(report.broken.is_empty(), "{:#?}", report.broken);
    assert!(report.unseen.is_empty(), "{:#?}", report.unseen);
    assert!(report.states >= AT_LEAST, "{} states", report.states);
}

#[test]
fn every_state_of_the_protocol_keeps_the_promises() {
    every_state_keeps_the_promises("as built", Protocol::as_built());
}

#[test]
fn the_unique_key_alone_keeps_the_promises() {
    every_state_keeps_the_promises("without the lock", Protocol::without_lock());
}

#[test]
fn every_mutant_breaks_a_promise() {
    for mutant in Mutant::ALL {
        let report = Report::of_mutant(mutant);
        print(&format!("{mutant:?}: {report}"));
        assert!(!report.broken.is_empty(), "{mutant:?} was not caught");
    }
}

/// Where the model can go when these things happen one after the other, and a call moves as long as it can after each.
#[track_caller]
fn after(actions: &[Action]) -> State {
    let protocol = Protocol::as_built();
    Path::from_actions(&protocol, State::default(), actions)
        .unwrap()
        .last_state()
        .clone()
}

#[test]
fn two_clients_die_and_a_later_call_replays() {
    let (patient, retrying) = (
        Action::Advance(Who::Patient),
        Action::Advance(Who::Retrying),
    );
    let state = after(&[
        // The first dies in its body, and the server notices.
        Action::Start(Who::Patient),
        patient,
        patient,
        patient,
        patient,
        patient,
        Action::Crash(Who::Patient),
        Action::RollBackVanished,
        // The second dies behind its COMMIT, which arrives after the first has called again and begun to wait.
        Action::Start(Who::Retrying),
        retrying,
        retrying,
        retrying,
        retrying,
        Action::EndBody(Who::Retrying, BodyEnd::Completes),
        retrying,
        Action::Crash(Who::Retrying),
        Action::Start(Who::Patient),
        patient,
        patient,
        patient,
        Action::CommitVanished,
        patient,
        patient,
        patient,
        patient,
    ]);
    assert_eq!(state.database.published.len(), 1);
    assert!(matches!(
        state.told,
        Some((Who::Patient, Told::Replayed { .. }))
    ));
}
