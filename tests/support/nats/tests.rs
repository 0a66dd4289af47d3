//! What JetStream keeps, and what is gone with it.

use std::io::{ErrorKind, Write};
use std::time::Duration;

use super::*;

/// How long a server that is held still is given to answer all the same.
const STILL: Duration = Duration::from_millis(200);

/// Enough of a client for streams.
struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(nats: &Nats) -> Self {
        let mut client = Self(BufReader::new(connection(nats)));
        assert!(client.line().starts_with("INFO "));
        client.say("CONNECT {\"verbose\":false,\"pedantic\":false}");
        client
    }

    fn say(&mut self, lines: &str) {
        write!(self.0.get_mut(), "{lines}\r\n").unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn request(&mut self, subject: &str, payload: &str) -> String {
        let bytes = payload.len();
        self.say("SUB answers 1\r\nUNSUB 1 1");
        self.say(&format!("PUB {subject} answers {bytes}\r\n{payload}"));
        let head = self.line();
        assert!(head.starts_with("MSG answers 1 "), "{head}");
        self.line()
    }

    fn create_orders(&mut self) {
        let stream = r#"{"name":"orders","subjects":["orders.*"]}"#;
        let answer = self.request("$JS.API.STREAM.CREATE.orders", stream);
        assert!(!answer.contains("error"), "{answer}");
    }

    fn publish_order(&mut self, number: u64) {
        let answer = self.request("orders.placed", "{}");
        assert_eq!(answer, format!(r#"{{"stream":"orders", "seq":{number}}}"#));
    }
}

fn connection(nats: &Nats) -> TcpStream {
    TcpStream::connect(nats.url().strip_prefix("nats://").unwrap()).unwrap()
}

#[test]
fn what_was_confirmed_is_there_after_a_stop_and_after_a_crash() {
    let mut nats = Nats::start();
    let url = nats.url().to_owned();
    let mut client = Client::connect(&nats);
    client.create_orders();
    client.publish_order(1);

    nats.kill();
    nats.restart();
    assert_eq!(nats.url(), url);
    let mut client = Client::connect(&nats);
    client.publish_order(2);

    nats.restart();
    Client::connect(&nats).publish_order(3);
}

#[test]
fn a_server_that_is_held_still_answers_later() {
    let mut nats = Nats::start();
    let mut client = Client::connect(&nats);
    client.say("PING");
    assert_eq!(client.line(), "PONG");

    nats.pause();
    client.say("PING");
    client.0.get_ref().set_read_timeout(Some(STILL)).unwrap();
    let silence = client.0.read_line(&mut String::new()).unwrap_err();
    assert!(matches!(
        silence.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut
    ));

    nats.resume();
    client.0.get_ref().set_read_timeout(None).unwrap();
    assert_eq!(client.line(), "PONG");

    nats.pause();
    nats.stop();
}

#[test]
fn an_option_holds_after_a_restart() {
    let mut nats = Nats::start_with(&["max_payload: 1024"]);
    nats.restart();
    let greeting = BufReader::new(connection(&nats)).lines().next();
    let greeting = greeting.unwrap().unwrap();
    assert!(greeting.contains(r#""max_payload":1024,"#), "{greeting}");
}

#[test]
fn two_servers_have_nothing_in_common() {
    let other = Nats::start();
    Client::connect(shared()).create_orders();
    Client::connect(&other).create_orders();
    assert_ne!(shared().url(), other.url());
}

#[test]
fn somebody_elses_server_is_not_mistaken_for_ours() {
    let nats = Nats::start();
    let server = NatsServer {
        program: PathBuf::new(),
        configuration: String::new(),
    };
    assert!(!server.greets(connection(&nats), "idem_another").unwrap());
}
