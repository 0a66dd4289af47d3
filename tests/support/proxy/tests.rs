//! What arrives through a proxy, and what does not.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::dsl::sql;
use diesel::sql_types::BigInt;
use diesel::{Connection, PgConnection, RunQueryDsl, select};

use super::Proxy;

/// How long it is listened for something that must not come.
const A_WHILE: Duration = Duration::from_millis(100);

/// A server that the test itself plays.
struct Played {
    listener: TcpListener,
    proxy: Proxy,
}

impl Played {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy::in_front_of(&format!("test://{}", listener.local_addr().unwrap()));
        Self { listener, proxy }
    }

    /// Both ends of a new connection: the client's and the server's.
    fn connect(&self) -> (TcpStream, TcpStream) {
        let before = self.proxy.round_trips().len();
        let client = TcpStream::connect(self.proxy.address).unwrap();
        let (server, _) = self.listener.accept().unwrap();
        // The proxy may not know yet that both are there; a database's client knows it from the first answer.
        while self.proxy.round_trips().len() == before {
            std::thread::yield_now();
        }
        (client, server)
    }
}

/// One side says a letter, and the other side hears it.
#[track_caller]
fn says(from: &mut TcpStream, to: &mut TcpStream) {
    from.write_all(b"x").unwrap();
    let mut heard = [0];
    to.read_exact(&mut heard).unwrap();
    assert_eq!(heard, *b"x");
}

/// Nothing comes, and nobody hangs up.
#[track_caller]
fn hears_nothing(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(A_WHILE)).unwrap();
    let heard = stream.read(&mut [0]).map_err(|error| error.kind());
    assert!(
        matches!(heard, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)),
        "{heard:?}"
    );
}

/// The other side hung up.
#[track_caller]
fn hears_the_end(stream: &mut TcpStream) {
    assert_eq!(stream.read(&mut [0]).ok(), Some(0));
}

#[test]
fn a_round_trip_is_whatever_a_client_says_until_it_is_answered() {
    let played = Played::new();
    let (mut client, mut server) = played.connect();
    assert_eq!(played.proxy.round_trips(), [0]);
    for round in 1..=3 {
        // Two packets, one answer in two packets.
        says(&mut client, &mut server);
        says(&mut client, &mut server);
        assert_eq!(played.proxy.round_trips(), [round]);
        says(&mut server, &mut client);
        says(&mut server, &mut client);
        assert_eq!(played.proxy.round_trips(), [round]);
    }
    let (mut other, mut others_server) = played.connect();
    says(&mut other, &mut others_server);
    assert_eq!(played.proxy.round_trips(), [3, 1]);
}

#[test]
fn a_side_that_hangs_up_is_heard_by_the_other() {
    let played = Played::new();
    let (client, mut server) = played.connect();
    drop(client);
    hears_the_end(&mut server);
    let (mut client, server) = played.connect();
    drop(server);
    hears_the_end(&mut client);
}

#[test]
fn cut_ends_both_sides_of_all_connections_and_no_new_one() {
    let played = Played::new();
    let mut pairs = [played.connect(), played.connect()];
    for (client, server) in &mut pairs {
        says(client, server);
    }
    played.proxy.cut();
    for (client, server) in &mut pairs {
        hears_the_end(client);
        hears_the_end(server);
    }
    let (mut client, mut server) = played.connect();
    says(&mut client, &mut server);
}

#[test]
fn in_silence_nobody_hears_anything_and_nobody_is_told() {
    let played = Played::new();
    let (mut client, mut server) = played.connect();
    says(&mut client, &mut server);
    played.proxy.silence();
    let (mut later_client, mut later_server) = played.connect();
    for stream in [&mut client, &mut server, &mut later_client] {
        stream.write_all(b"x").unwrap();
    }
    played.proxy.wait_until_an_answer_is_lost();
    for stream in [&mut client, &mut server, &mut later_server] {
        hears_nothing(stream);
    }
    // Also not that the client hangs up.
    drop(client);
    hears_nothing(&mut server);

    // The one that lost something stays as it is until it is cut.
    played.proxy.resume();
    let (mut client, mut new_server) = played.connect();
    says(&mut client, &mut new_server);
    hears_nothing(&mut server);
    played.proxy.cut();
    hears_the_end(&mut server);
}

#[test]
fn an_answerless_client_is_heard() {
    let played = Played::new();
    let (mut client, mut server) = played.connect();
    played.proxy.swallow_answers();
    says(&mut client, &mut server);
    server.write_all(b"x").unwrap();
    played.proxy.wait_until_an_answer_is_lost();
    says(&mut client, &mut server);
    hears_nothing(&mut client);
    drop(server);
    hears_nothing(&mut client);
}

#[test]
fn a_server_that_is_not_there_is_a_connection_that_ends() {
    let played = Played::new();
    let Played { listener, proxy } = played;
    drop(listener);
    let mut client = TcpStream::connect(proxy.address).unwrap();
    hears_the_end(&mut client);
}

#[test]
fn with_the_proxy_everything_ends() {
    let played = Played::new();
    let (mut client, mut server) = played.connect();
    let address = played.proxy.address;
    drop(played.proxy);
    hears_the_end(&mut client);
    hears_the_end(&mut server);
    assert!(TcpStream::connect(address).is_err());
}

fn number(conn: &mut PgConnection, text: &str) -> i64 {
    select(sql::<BigInt>(text)).get_result(conn).unwrap()
}

#[test]
fn a_commit_arrives_although_its_answer_is_lost() {
    let database = crate::postgres::fresh_database();
    let proxy = Proxy::in_front_of(database.url());
    let mut witness = PgConnection::establish(database.url()).unwrap();
    witness.batch_execute("CREATE TABLE effects ()").unwrap();
    let mut conn = PgConnection::establish(proxy.url()).unwrap();
    conn.batch_execute("BEGIN; INSERT INTO effects DEFAULT VALUES")
        .unwrap();
    let [before] = proxy.round_trips()[..] else {
        panic!("one connection");
    };
    conn.batch_execute("SELECT 1").unwrap();
    assert_eq!(proxy.round_trips(), [before + 1]);

    proxy.swallow_answers();
    let commit = std::thread::spawn(move || conn.batch_execute("COMMIT"));
    proxy.wait_until_an_answer_is_lost();
    assert_eq!(number(&mut witness, "(SELECT count(*) FROM effects)"), 1);
    proxy.cut();
    assert!(commit.join().unwrap().is_err());
}
