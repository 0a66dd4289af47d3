//! What RabbitMQ keeps, and what is gone with it.

use std::io::ErrorKind;
use std::time::Duration;

use super::*;

/// How long a server that is held still is given to answer all the same.
const STILL: Duration = Duration::from_millis(200);

const METHOD: u8 = 1;
const CONTENT_HEADER: u8 = 2;
const CONTENT_BODY: u8 = 3;
const FRAME_END: u8 = 0xce;

/// A class and a method of it.
type Method = (u16, u16);

const START: Method = (10, 10);
const START_OK: Method = (10, 11);
const TUNE: Method = (10, 30);
const TUNE_OK: Method = (10, 31);
const OPEN: Method = (10, 40);
const OPEN_OK: Method = (10, 41);
const CHANNEL_OPEN: Method = (20, 10);
const CHANNEL_OPEN_OK: Method = (20, 11);
const CHANNEL_CLOSE: Method = (20, 40);
const QUEUE_DECLARE: Method = (50, 10);
const QUEUE_DECLARE_OK: Method = (50, 11);
const BASIC_PUBLISH: Method = (60, 40);
const BASIC_ACK: Method = (60, 80);
const CONFIRM_SELECT: Method = (85, 10);
const CONFIRM_SELECT_OK: Method = (85, 11);

const DURABLE: u8 = 2;
const PASSIVE: u8 = 1;

/// Enough of a client to publish with confirmation.
struct Client(TcpStream);

impl Client {
    /// Connects as the URL says, and opens channel 1 with confirmations.
    fn connect(rabbitmq: &RabbitMq) -> Self {
        let address = rabbitmq
            .url()
            .strip_prefix("amqp://guest:guest@")
            .and_then(|rest| rest.strip_suffix("/%2f"))
            .unwrap();
        let mut client = Self(TcpStream::connect(address).unwrap());
        client.0.write_all(&PROTOCOL_HEADER).unwrap();
        client.expect(START);
        let no_properties = [0; 4];
        let account = b"\0guest\0guest";
        client.method(
            0,
            START_OK,
            &[
                &no_properties,
                &short("PLAIN")[..],
                &[0, 0, 0, 12],
                account,
                &short("en_US"),
            ],
        );
        let limits = client.expect(TUNE);
        let no_heartbeat = [0; 2];
        client.method(0, TUNE_OK, &[&limits[..6], &no_heartbeat]);
        client.method(0, OPEN, &[&short("/"), &short(""), &[0]]);
        client.expect(OPEN_OK);
        client.method(1, CHANNEL_OPEN, &[&short("")]);
        client.expect(CHANNEL_OPEN_OK);
        client.method(1, CONFIRM_SELECT, &[&[0]]);
        client.expect(CONFIRM_SELECT_OK);
        client
    }

    /// How many messages the queue has.
    fn declare(&mut self, queue: &str, flags: u8) -> u32 {
        let no_arguments = [0; 4];
        self.method(
            1,
            QUEUE_DECLARE,
            &[&[0; 2], &short(queue), &[flags], &no_arguments],
        );
        let answer = self.expect(QUEUE_DECLARE_OK);
        let count = &answer[1 + queue.len()..][..4];
        u32::from_be_bytes(count.try_into().unwrap())
    }

    /// Sends a persistent message to a queue. The answer is still to come.
    fn publish(&mut self, queue: &str, body: &[u8]) {
        self.method(
            1,
            BASIC_PUBLISH,
            &[&[0; 2], &short(""), &short(queue), &[0]],
        );
        let size = (body.len() as u64).to_be_bytes();
        let only_the_delivery_mode = [0x10, 0];
        let persistent = [2];
        self.frame(
            CONTENT_HEADER,
            1,
            &[
                &[0, 60, 0, 0],
                &size[..],
                &only_the_delivery_mode,
                &persistent,
            ]
            .concat(),
        );
        self.frame(CONTENT_BODY, 1, body);
    }

    fn method(&mut self, channel: u16, (class, method): Method, arguments: &[&[u8]]) {
        let mut payload = [class.to_be_bytes(), method.to_be_bytes()].concat();
        payload.extend(arguments.concat());
        self.frame(METHOD, channel, &payload);
    }

    fn frame(&mut self, kind: u8, channel: u16, payload: &[u8]) {
        let mut frame = vec![kind];
        frame.extend(channel.to_be_bytes());
        frame.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
        frame.extend(payload);
        frame.push(FRAME_END);
        self.0.write_all(&frame).unwrap();
    }

    /// The arguments of the next method, which must be this one.
    #[track_caller]
    fn expect(&mut self, (class, method): Method) -> Vec<u8> {
        let mut head = [0; FRAME_HEAD_BYTES];
        self.0.read_exact(&mut head).unwrap();
        let size = u32::from_be_bytes(head[3..].try_into().unwrap());
        let mut payload = vec![0; size as usize + 1];
        self.0.read_exact(&mut payload).unwrap();
        assert_eq!(payload.pop(), Some(FRAME_END));
        let expected = [class.to_be_bytes(), method.to_be_bytes()].concat();
        assert_eq!(payload[..4], expected, "{payload:?}");
        payload.split_off(4)
    }
}

/// A text of at most 255 bytes, as the protocol has it.
fn short(text: &str) -> Vec<u8> {
    let mut bytes = vec![u8::try_from(text.len()).unwrap()];
    bytes.extend(text.as_bytes());
    bytes
}

#[test]
fn what_was_confirmed_is_there_after_a_stop_and_after_a_crash() {
    let mut rabbitmq = RabbitMq::start_with(&["max_message_size = 1024"]);
    let url = rabbitmq.url().to_owned();
    let mut client = Client::connect(&rabbitmq);
    assert_eq!(client.declare("orders", DURABLE), 0);
    client.publish("orders", b"{}");
    client.expect(BASIC_ACK);

    rabbitmq.stop();
    assert!(std::panic::catch_unwind(|| Client::connect(&rabbitmq)).is_err());
    rabbitmq.restart();
    assert_eq!(rabbitmq.url(), url);
    let mut client = Client::connect(&rabbitmq);
    assert_eq!(client.declare("orders", PASSIVE), 1);
    client.publish("orders", b"{}");
    client.expect(BASIC_ACK);

    rabbitmq.kill();
    rabbitmq.restart();
    let mut client = Client::connect(&rabbitmq);
    assert_eq!(client.declare("orders", PASSIVE), 2);

    // The option is in the folder too.
    client.publish("orders", &[b' '; 1025]);
    let why = client.expect(CHANNEL_CLOSE);
    assert_eq!(why[..2], 406_u16.to_be_bytes());
}

#[test]
fn a_server_that_is_held_still_answers_later() {
    let mut rabbitmq = RabbitMq::start();
    let mut client = Client::connect(&rabbitmq);
    rabbitmq.pause();
    client.method(1, CONFIRM_SELECT, &[&[0]]);
    client.0.set_read_timeout(Some(STILL)).unwrap();
    let silence = client.0.read(&mut [0]).unwrap_err();
    assert!(matches!(
        silence.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut
    ));
    rabbitmq.resume();
    client.0.set_read_timeout(None).unwrap();
    client.expect(CONFIRM_SELECT_OK);
}

#[test]
fn two_servers_have_nothing_in_common() {
    let other = RabbitMq::start();
    Client::connect(shared()).declare("orders", DURABLE);
    let mut elsewhere = Client::connect(&other);
    elsewhere.method(
        1,
        QUEUE_DECLARE,
        &[&[0; 2], &short("orders"), &[PASSIVE], &[0; 4]],
    );
    let why = elsewhere.expect(CHANNEL_CLOSE);
    assert_eq!(why[..2], 404_u16.to_be_bytes());
}
