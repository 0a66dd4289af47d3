//! What holds for both brokers, also when they do not start.

use super::*;
use crate::nats::Nats;
use crate::rabbitmq::RabbitMq;

#[test]
fn no_port_is_given_twice_nor_one_of_clients() {
    let mut ports: Vec<u16> = (0..64).map(|_| free_port().unwrap()).collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 64);
    assert!(ports.iter().all(|port| (16_384..32_768).contains(port)));
}

#[test]
fn an_error_has_the_end_of_the_log() {
    let lines: Vec<String> = (1..=300).map(|line| format!("line {line}")).collect();
    let tail = tail(&lines.join("\n"));
    assert!(tail.starts_with("line 201\n"), "{tail}");
    assert!(tail.ends_with("\nline 300"), "{tail}");
}

#[test]
fn a_server_that_ends_at_once_is_an_error_with_its_log() {
    let error = Nats::try_start(&["max_payload: many"]).unwrap_err();
    assert!(error.contains("ended at once"), "{error}");
    assert!(error.contains("options.conf:1:"), "{error}");

    let error = RabbitMq::try_start(&["no.such.key = 1"]).unwrap_err();
    assert!(error.contains("ended at once"), "{error}");
    assert!(error.contains("no.such.key"), "{error}");
}

#[test]
fn a_dropped_broker_leaves_neither_process_nor_folder() {
    leaves_nothing(Nats::start());
    leaves_nothing(RabbitMq::start());
}

#[test]
fn neither_does_one_that_is_down_or_held_still() {
    let mut nats = Nats::start();
    nats.pause();
    leaves_nothing(nats);

    let mut nats = Nats::start();
    nats.stop();
    let folder = nats.folder.clone();
    drop(nats);
    assert!(!folder.exists());
}

fn leaves_nothing<S: Server>(broker: Broker<S>) {
    let (folder, port) = (broker.folder.clone(), broker.client_port);
    let pid = std::fs::read_to_string(folder.join("pid")).unwrap();
    assert!(process_exists(&pid));
    drop(broker);
    assert!(!process_exists(&pid));
    assert!(!folder.exists());
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
}

/// Signal 0 only asks.
fn process_exists(pid: &str) -> bool {
    Command::new("kill")
        .args(["-0", pid.trim()])
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .success()
}
