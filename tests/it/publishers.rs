//! The publishers against their brokers: what arrives, and what each failure is called.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::jetstream;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use diesel_async::AsyncConnection;
use hmac::{Hmac, KeyInit, Mac};
use idem_diesel::Event;
use idem_diesel::outbox::{self, Dead, Lease, OutboxEvent};
use idem_relay::publisher::{HttpPublisher, JetStreamPublisher, RabbitMqPublisher, WebhookSecret};
use idem_relay::{PublishError, Publisher};
use lapin::options::{
    BasicGetOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Connection, ConnectionProperties, ExchangeKind};
use serde::Serialize;
use sha2::Sha256;
use support::nats::Nats;
use support::rabbitmq::RabbitMq;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::backend::{Backend, SqliteAsync, run};

/// A wait that is longer than this is a failure.
const AT_MOST: Duration = Duration::from_secs(60);

/// How often a broker that comes back is asked whether it is there.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    let Ok(value) = tokio::time::timeout(AT_MOST, future).await else {
        panic!("it took more than {AT_MOST:?}");
    };
    value
}

/// A name that no other test has: they share their brokers.
pub fn fresh_name(what: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{what}-{}-{number}", std::process::id())
}

#[derive(Serialize)]
struct OrderPaid {
    note: String,
}

impl Event for OrderPaid {
    fn event_type(&self) -> &'static str {
        "order.paid"
    }

    fn aggregate_type(&self) -> &'static str {
        "order"
    }

    fn aggregate_id(&self) -> String {
        "7".to_owned()
    }
}

/// An event with a note of so many bytes, as a relay leases it. Only the outbox makes one.
async fn event(bytes: usize) -> OutboxEvent {
    let place = SqliteAsync::place();
    let mut db = SqliteAsync::connect(&place).await;
    let note = "n".repeat(bytes);
    db.transaction(async |db| outbox::publish(db, &OrderPaid { note }).await)
        .await
        .unwrap();
    let terms = Lease {
        owner: "test".to_owned(),
        duration: Duration::from_secs(60),
        at_most: 1,
        dead: Dead::Block,
    };
    let leased = outbox::lease(&mut db, &terms).await.unwrap().pop();
    let mut event = leased.unwrap().event.unwrap();
    "acme/alice".clone_into(&mut event.tenant);
    event.operation = Some("orders.pay".to_owned());
    event.idempotency_key = Some("order-17".to_owned());
    event.traceparent = Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned());
    event
}

/// What goes with every event.
fn expected_headers() -> [(&'static str, &'static str); 7] {
    [
        ("idem-event-type", "order.paid"),
        ("idem-aggregate-type", "order"),
        ("idem-aggregate-id", "7"),
        ("idem-tenant", "acme/alice"),
        ("idem-operation", "orders.pay"),
        ("idem-idempotency-key", "order-17"),
        (
            "traceparent",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    Unavailable,
    Failed,
    Rejected,
}

#[track_caller]
fn check(result: Result<(), PublishError>, expected: Is, text: &str) {
    let error = result.unwrap_err();
    let is = match (error.is_unavailable(), error.is_rejected()) {
        (true, _) => Is::Unavailable,
        (_, true) => Is::Rejected,
        _ => Is::Failed,
    };
    assert_eq!(is, expected, "{error}");
    assert!(error.to_string().contains(text), "{error}");
}

/// Publishes until the broker is back.
async fn publish_soon(publisher: &impl Publisher, event: &OutboxEvent) {
    soon(async {
        while let Err(error) = publisher.publish(event).await {
            assert!(error.is_unavailable(), "{error}");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    })
    .await;
}

// --- JetStream ------------------------------------------------------------------------------------------------------------------

async fn stream(
    url: &str,
    config: jetstream::stream::Config,
) -> (jetstream::Context, jetstream::stream::Stream) {
    let client = soon(async_nats::connect(url)).await.unwrap();
    let context = jetstream::new(client);
    let stream = soon(context.create_stream(config)).await.unwrap();
    (context, stream)
}

fn config(prefix: &str) -> jetstream::stream::Config {
    jetstream::stream::Config {
        name: prefix.to_owned(),
        subjects: vec![format!("{prefix}.>")],
        ..Default::default()
    }
}

#[test]
fn jetstream_has_an_event_once_with_its_id_and_headers() {
    run(async {
        let prefix = fresh_name("events");
        let (context, stream) = stream(support::nats::shared().url(), config(&prefix)).await;
        let publisher = JetStreamPublisher::new(context, prefix.as_str()).unwrap();
        let event = event(10).await;
        soon(publisher.publish(&event)).await.unwrap();
        // A relay that crashed before it settled does it again.
        soon(publisher.publish(&event)).await.unwrap();

        assert_eq!(soon(stream.get_info()).await.unwrap().state.messages, 1);
        let message = soon(stream.get_raw_message(1)).await.unwrap();
        assert_eq!(message.subject.as_str(), format!("{prefix}.order.paid"));
        assert_eq!(message.payload, event.payload.as_bytes());
        let header = |name: &str| message.headers.get(name).map(ToString::to_string);
        assert_eq!(header("Nats-Msg-Id"), Some(event.id.to_string()));
        for (name, value) in expected_headers() {
            assert_eq!(header(name).as_deref(), Some(value), "{name}");
        }
    });
}

#[test]
fn jetstream_rejects_what_is_too_large_and_takes_the_next() {
    run(async {
        let nats = Nats::start_with(&["max_payload: 2048"]);
        let narrow = jetstream::stream::Config {
            name: "narrow".to_owned(),
            subjects: vec!["narrow.>".to_owned()],
            max_message_size: 1024,
            ..Default::default()
        };
        let (context, _stream) = stream(nats.url(), config("wide")).await;
        soon(context.create_stream(narrow)).await.unwrap();
        let wide = JetStreamPublisher::new(context.clone(), "wide").unwrap();
        let narrow = JetStreamPublisher::new(context, "narrow").unwrap();

        check(
            soon(wide.publish(&event(3000).await)).await,
            Is::Rejected,
            "limit of 2048",
        );
        check(
            soon(narrow.publish(&event(1500).await)).await,
            Is::Rejected,
            "message size exceeds maximum allowed",
        );
        soon(wide.publish(&event(1000).await)).await.unwrap();
        soon(narrow.publish(&event(10).await)).await.unwrap();
    });
}

#[test]
fn jetstream_fails_where_no_stream_has_the_subject_or_none_acknowledges() {
    run(async {
        let prefix = fresh_name("silent");
        let silent = jetstream::stream::Config {
            no_ack: true,
            ..config(&prefix)
        };
        let (context, _stream) = stream(support::nats::shared().url(), silent).await;
        let nobody = fresh_name("nobody");
        let publisher = JetStreamPublisher::new(context.clone(), nobody.as_str()).unwrap();
        let nowhere = format!("no stream has the subject {nobody}.order.paid");
        check(
            soon(publisher.publish(&event(1).await)).await,
            Is::Failed,
            &nowhere,
        );

        let publisher = JetStreamPublisher::new(context.clone(), prefix.as_str())
            .unwrap()
            .acknowledged_within(Duration::from_millis(100));
        check(
            soon(publisher.publish(&event(1).await)).await,
            Is::Failed,
            "timed out",
        );

        let mut event = event(1).await;
        event.event_type = "order paid".to_owned();
        check(
            soon(publisher.publish(&event)).await,
            Is::Rejected,
            "order paid",
        );
        assert!(JetStreamPublisher::new(context, "a.*").is_err());
    });
}

#[test]
fn jetstream_is_unavailable_while_it_is_down_and_takes_events_again() {
    run(async {
        let mut nats = Nats::start();
        let (context, stream) = stream(nats.url(), config("events")).await;
        let publisher = JetStreamPublisher::new(context, "events")
            .unwrap()
            .acknowledged_within(Duration::from_millis(200));
        let [first, second, third] = [event(1).await, event(1).await, event(1).await];
        soon(publisher.publish(&first)).await.unwrap();

        tokio::task::block_in_place(|| nats.pause());
        check(
            soon(publisher.publish(&second)).await,
            Is::Unavailable,
            "timed out",
        );
        tokio::task::block_in_place(|| nats.resume());
        publish_soon(&publisher, &second).await;

        tokio::task::block_in_place(|| nats.stop());
        check(soon(publisher.publish(&third)).await, Is::Unavailable, "");
        tokio::task::block_in_place(|| nats.restart());
        publish_soon(&publisher, &third).await;
        assert_eq!(soon(stream.get_info()).await.unwrap().state.messages, 3);
    });
}

// --- RabbitMQ -------------------------------------------------------------------------------------------------------------------

/// An exchange that routes `order.#` to a queue.
struct Route {
    name: String,
    channel: Channel,
    _connection: Connection,
}

impl Route {
    async fn new(url: &str) -> Self {
        Self::with(url, FieldTable::default()).await
    }

    async fn with(url: &str, arguments: FieldTable) -> Self {
        let name = fresh_name("events");
        let connecting = Connection::connect(url, ConnectionProperties::default());
        let connection = soon(connecting).await.unwrap();
        let channel = soon(connection.create_channel()).await.unwrap();
        let (exchange, queue) = (name.as_str().into(), QueueDeclareOptions::durable());
        let durable = ExchangeDeclareOptions {
            durable: true,
            ..Default::default()
        };
        channel
            .exchange_declare(
                exchange,
                ExchangeKind::Topic,
                durable,
                FieldTable::default(),
            )
            .await
            .unwrap();
        channel
            .queue_declare(name.as_str().into(), queue, arguments)
            .await
            .unwrap();
        channel
            .queue_bind(
                name.as_str().into(),
                name.as_str().into(),
                "order.#".into(),
                QueueBindOptions::default(),
                FieldTable::default(),
            )
            .await
            .unwrap();
        Self {
            name,
            channel,
            _connection: connection,
        }
    }

    async fn get(&self) -> Option<lapin::message::BasicGetMessage> {
        let get = BasicGetOptions { no_ack: true };
        soon(self.channel.basic_get(self.name.as_str().into(), get))
            .await
            .unwrap()
    }

    async fn len(&self) -> u32 {
        let passive = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::durable()
        };
        let name = self.name.as_str().into();
        let declared = self
            .channel
            .queue_declare(name, passive, FieldTable::default());
        soon(declared).await.unwrap().message_count()
    }
}

#[test]
fn rabbitmq_has_an_event_with_its_id_and_headers() {
    run(async {
        let url = support::rabbitmq::shared().url();
        let route = Route::new(url).await;
        let publisher = RabbitMqPublisher::new(url, &route.name).unwrap();
        let event = event(10).await;
        soon(publisher.publish(&event)).await.unwrap();

        let message = route.get().await.unwrap();
        assert_eq!(message.data, event.payload.as_bytes());
        assert_eq!(message.routing_key.as_str(), "order.paid");
        let properties = &message.properties;
        let text = |text: &Option<lapin::types::ShortString>| text.as_ref().unwrap().to_string();
        assert_eq!(text(properties.message_id()), event.id.to_string());
        assert_eq!(text(properties.kind()), "order.paid");
        assert_eq!(text(properties.content_type()), "application/json");
        assert_eq!(properties.delivery_mode(), &Some(2));
        let headers = properties.headers().as_ref().unwrap().inner();
        for (name, value) in expected_headers() {
            assert_eq!(
                headers.get(name),
                Some(&AMQPValue::LongString(value.into())),
                "{name}"
            );
        }
    });
}

#[test]
fn rabbitmq_names_the_event_that_no_queue_takes_and_no_other() {
    run(async {
        let url = support::rabbitmq::shared().url();
        let route = Route::new(url).await;
        let publisher = RabbitMqPublisher::new(url, &route.name).unwrap();
        let mut events = Vec::new();
        for number in 0..40 {
            let mut event = event(1).await;
            if number % 2 == 1 {
                event.event_type = "invoice.sent".to_owned();
            }
            events.push(event);
        }
        let publishing = events.iter().map(|event| publisher.publish(event));
        let results = soon(futures_util::future::join_all(publishing)).await;
        for (event, published) in events.iter().zip(results) {
            if event.event_type == "order.paid" {
                published.unwrap();
            } else {
                check(
                    published,
                    Is::Failed,
                    r#"takes the routing key "invoice.sent" (312 NO_ROUTE)"#,
                );
            }
        }
        assert_eq!(route.len().await, 20);
    });
}

#[test]
fn rabbitmq_rejects_what_is_too_large_and_takes_the_others() {
    run(async {
        let rabbitmq = RabbitMq::start_with(&["max_message_size = 1024"]);
        let route = Route::new(rabbitmq.url()).await;
        let publisher = RabbitMqPublisher::new(rabbitmq.url(), &route.name).unwrap();
        let (large, small) = (event(2000).await, event(10).await);
        let publishing = (0..10).map(|_| async {
            (
                publisher.publish(&large).await,
                publisher.publish(&small).await,
            )
        });
        for (large, small) in soon(futures_util::future::join_all(publishing)).await {
            check(
                large,
                Is::Rejected,
                "is larger than configured max size 1024",
            );
            small.unwrap();
        }
        assert_eq!(route.len().await, 10);
    });
}

#[test]
fn rabbitmq_fails_where_the_exchange_is_absent_or_the_queue_is_full() {
    run(async {
        let url = support::rabbitmq::shared().url();
        let publisher = RabbitMqPublisher::new(url, &fresh_name("absent")).unwrap();
        check(
            soon(publisher.publish(&event(1).await)).await,
            Is::Failed,
            "NOT_FOUND",
        );

        let mut full = FieldTable::default();
        full.insert("x-max-length".into(), AMQPValue::LongInt(1));
        full.insert(
            "x-overflow".into(),
            AMQPValue::LongString("reject-publish".into()),
        );
        let route = Route::with(url, full).await;
        let publisher = RabbitMqPublisher::new(url, &route.name).unwrap();
        soon(publisher.publish(&event(1).await)).await.unwrap();
        check(
            soon(publisher.publish(&event(1).await)).await,
            Is::Failed,
            "a queue refused",
        );
        route.get().await.unwrap();
        soon(publisher.publish(&event(1).await)).await.unwrap();
    });
}

#[test]
fn rabbitmq_is_unavailable_while_it_is_down_and_takes_events_again() {
    run(async {
        let mut rabbitmq = RabbitMq::start();
        let route = Route::new(rabbitmq.url()).await;
        let publisher = RabbitMqPublisher::new(rabbitmq.url(), &route.name)
            .unwrap()
            .acknowledged_within(Duration::from_secs(1));
        let event = event(1).await;
        publish_soon(&publisher, &event).await;

        tokio::task::block_in_place(|| rabbitmq.pause());
        check(
            soon(publisher.publish(&event)).await,
            Is::Unavailable,
            "no confirmation within 1s",
        );
        tokio::task::block_in_place(|| rabbitmq.resume());
        publish_soon(&publisher, &event).await;

        tokio::task::block_in_place(|| rabbitmq.stop());
        check(soon(publisher.publish(&event)).await, Is::Unavailable, "");
        check(soon(publisher.publish(&event)).await, Is::Unavailable, "");
        tokio::task::block_in_place(|| rabbitmq.restart());
        publish_soon(&publisher, &event).await;
    });
}

// --- HTTP -----------------------------------------------------------------------------------------------------------------------

/// An endpoint that notes what it gets, and answers the same to everything.
struct Endpoint {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

struct Request {
    head: String,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let (_, value) = lines.find(|(other, _)| other.eq_ignore_ascii_case(name))?;
        Some(value)
    }
}

impl Endpoint {
    async fn answering(answer: impl Into<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (answer, requests) = (answer.into(), Arc::<Mutex<Vec<Request>>>::default());
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (answer, seen) = (answer.clone(), Arc::clone(&seen));
                tokio::spawn(async move {
                    let request = read(&mut stream).await;
                    seen.lock().unwrap().push(request);
                    stream.write_all(answer.as_bytes()).await.unwrap();
                });
            }
        });
        Self {
            url: format!("http://{address}/events"),
            requests,
        }
    }

    fn requests(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

async fn read(stream: &mut TcpStream) -> Request {
    let mut bytes = Vec::new();
    let mut request = loop {
        assert!(
            stream.read_buf(&mut bytes).await.unwrap() > 0,
            "half a request"
        );
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            continue;
        };
        let body = bytes.split_off(end + 4);
        let head = String::from_utf8(bytes).unwrap();
        break Request { head, body };
    };
    let length: usize = request.header("content-length").unwrap().parse().unwrap();
    while request.body.len() < length {
        assert!(
            stream.read_buf(&mut request.body).await.unwrap() > 0,
            "half a body"
        );
    }
    request
}

const OK: &str = "HTTP/1.1 204 No Content\r\n\r\n";
const KEYS: [&str; 2] = [
    "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
];

fn secrets() -> [WebhookSecret; 2] {
    KEYS.map(|key| WebhookSecret::new(&format!("whsec_{key}")).unwrap())
}

#[test]
fn an_endpoint_can_verify_an_event_with_either_secret() {
    run(async {
        let endpoint = Endpoint::answering(OK).await;
        let publisher = HttpPublisher::new(&endpoint.url, secrets()).unwrap();
        let event = event(10).await;
        soon(publisher.publish(&event)).await.unwrap();
        soon(publisher.publish(&event)).await.unwrap();

        let requests = endpoint.requests.lock().unwrap();
        assert_eq!(requests.len(), 2);
        for request in &*requests {
            assert!(request.head.starts_with("POST /events HTTP/1.1"));
            assert_eq!(request.body, event.payload.as_bytes());
            assert_eq!(request.header("content-type"), Some("application/json"));
            assert_eq!(
                request.header("webhook-id"),
                Some(event.id.to_string().as_str())
            );
            assert_eq!(request.header("idem-event-type"), Some("order.paid"));
            for name in [
                "idem-tenant",
                "idem-operation",
                "idem-idempotency-key",
                "idempotency-key",
            ] {
                assert_eq!(request.header(name), None, "{name}");
            }
            // As the receiver of the specification does it.
            let timestamp = request.header("webhook-timestamp").unwrap();
            let signed = format!("{}.{timestamp}.{}", event.id, event.payload);
            let signatures = request.header("webhook-signature").unwrap();
            let given: Vec<_> = signatures.split(' ').collect();
            for (key, signature) in KEYS.iter().zip(&given) {
                let mut mac =
                    Hmac::<Sha256>::new_from_slice(&STANDARD.decode(key).unwrap()).unwrap();
                mac.update(signed.as_bytes());
                let signature = signature.strip_prefix("v1,").unwrap();
                mac.verify_slice(&STANDARD.decode(signature).unwrap())
                    .unwrap();
            }
            assert_eq!(given.len(), KEYS.len());
        }
    });
}

#[test]
fn an_answer_of_an_endpoint_has_a_name() {
    run(async {
        let elsewhere = Endpoint::answering(OK).await;
        let redirect = format!("307 Temporary Redirect\r\nlocation: {}", elsewhere.url);
        let cases = [
            (
                redirect.as_str(),
                Is::Rejected,
                "redirects are not followed",
            ),
            ("410 Gone", Is::Rejected, "410 Gone"),
            (
                "413 Payload Too Large",
                Is::Rejected,
                "413 Payload Too Large",
            ),
            (
                "429 Too Many Requests\r\nretry-after: 7",
                Is::Failed,
                "429 Too Many Requests",
            ),
            (
                "503 Service Unavailable",
                Is::Failed,
                "503 Service Unavailable",
            ),
            (
                "500 Internal Server Error",
                Is::Failed,
                "500 Internal Server Error",
            ),
        ];
        for (answer, expected, text) in cases {
            let answer = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n");
            let endpoint = Endpoint::answering(answer).await;
            let publisher = HttpPublisher::new(&endpoint.url, secrets()).unwrap();
            check(
                soon(publisher.publish(&event(1).await)).await,
                expected,
                text,
            );
            assert_eq!(endpoint.requests(), 1);
        }
        assert_eq!(elsewhere.requests(), 0, "the event would be a stranger's");
    });
}

#[test]
fn an_endpoint_that_is_away_is_unavailable_and_one_that_is_slow_has_failed() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let publisher = HttpPublisher::new(&url, secrets())
            .unwrap()
            .request_timeout(Duration::from_millis(200));
        let event = event(1).await;
        check(
            soon(publisher.publish(&event)).await,
            Is::Failed,
            "operation timed out",
        );
        drop(listener);
        let error = soon(publisher.publish(&event)).await.unwrap_err();
        assert!(
            !error.to_string().contains("127.0.0.1:"),
            "a URL may have a token in it: {error}"
        );
        check(Err(error), Is::Unavailable, "Connection refused");
    });
}

/// One that never ends would cost the relay its memory, and another one its time.
#[test]
fn an_answer_is_not_read_to_its_end() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let gone = Arc::new(Notify::new());
        let is_gone = Arc::clone(&gone);
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            read(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            while stream.write_all(&[b'x'; 1024]).await.is_ok() {}
            is_gone.notify_one();
        });
        let publisher = HttpPublisher::new(&url, secrets())
            .unwrap()
            .request_timeout(AT_MOST * 2);
        soon(publisher.publish(&event(1).await)).await.unwrap();
        soon(gone.notified()).await;
    });
}
