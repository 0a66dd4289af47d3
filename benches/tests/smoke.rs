//! The harness works: every group runs with a few calls, looks at the effects of both sides, and writes nothing.

use std::process::Command;

#[test]
fn every_group_runs_with_a_few_calls() {
    let output = Command::new(env!("CARGO_BIN_EXE_idem-benches"))
        .arg("smoke")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
}
