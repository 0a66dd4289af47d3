//! What a client and a PostgreSQL server say to each other, as far as it shows when the client waits.
//!
//! The server ends its answer to each request with `ReadyForQuery`. A client has waited whenever all that it sent is answered: that does not depend on
//! how the network cuts what is said into packets. Source: <https://www.postgresql.org/docs/current/protocol-message-formats.html>

use std::collections::HashMap;

use support::proxy::Side;

/// What a client sends until everything is answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// In their order; what is only prepared is not among them.
    pub executed: Vec<String>,
    pub prepared: Vec<String>,
    /// Whether a transaction was open at the end of each answer.
    pub is_open: Vec<bool>,
}

/// A conversation that is listened to from a moment on at which nothing is unanswered.
#[derive(Debug, Default)]
pub struct Conversation {
    client: Messages,
    server: Messages,
    /// The texts of prepared statements, by name.
    texts: HashMap<String, String>,
    /// The statement that is executed next.
    bound: String,
    turn: Turn,
    unanswered: usize,
}

impl Conversation {
    /// Listens on, and gives the turns that have ended since the last time.
    pub fn hear(&mut self, said: &[(Side, Vec<u8>)]) -> Vec<Turn> {
        let mut ended = Vec::new();
        for (side, bytes) in said {
            match side {
                Side::Client => {
                    for message in self.client.hear(bytes) {
                        self.request(&message);
                    }
                }
                Side::Server => {
                    for message in self.server.hear(bytes) {
                        ended.extend(self.answer(&message));
                    }
                }
            }
        }
        ended
    }

    /// What was sent and is not answered yet.
    pub fn unanswered(&self) -> &Turn {
        &self.turn
    }

    fn request(&mut self, message: &Message) {
        match message.tag {
            b'Q' => {
                self.turn.executed.push(message.text(0));
                self.unanswered += 1;
            }
            b'P' => {
                let text = message.text(1);
                self.turn.prepared.push(text.clone());
                self.texts.insert(message.text(0), text);
            }
            b'B' => self.bound = message.text(1),
            b'E' => {
                let text = self.texts.get(&self.bound).unwrap_or(&self.bound);
                self.turn.executed.push(text.clone());
            }
            b'S' => self.unanswered += 1,
            // Describe, Close.
            _ => {}
        }
    }

    fn answer(&mut self, message: &Message) -> Option<Turn> {
        if message.tag != b'Z' {
            return None;
        }
        self.turn.is_open.push(message.content != b"I");
        self.unanswered -= 1;
        (self.unanswered == 0).then(|| std::mem::take(&mut self.turn))
    }
}

/// The messages of one side, cut out of its bytes.
#[derive(Debug, Default)]
struct Messages {
    begun: Vec<u8>,
}

#[derive(Debug)]
struct Message {
    tag: u8,
    content: Vec<u8>,
}

impl Messages {
    fn hear(&mut self, bytes: &[u8]) -> Vec<Message> {
        self.begun.extend(bytes);
        let mut messages = Vec::new();
        // A type, the length of what follows it, itself included, and that.
        while let Some((&tag, rest)) = self.begun.split_first()
            && let Some(length) = rest.first_chunk().copied().map(u32::from_be_bytes)
            && let Some(content) = rest.get(4..length as usize)
        {
            let content = content.to_vec();
            self.begun.drain(..=length as usize);
            messages.push(Message { tag, content });
        }
        messages
    }
}

impl Message {
    /// One of the texts that the message begins with; each ends with a zero.
    fn text(&self, index: usize) -> String {
        let text = self.content.split(|byte| *byte == 0).nth(index).unwrap();
        String::from_utf8(text.to_vec()).unwrap()
    }
}

/// A message of this type.
fn message(tag: u8, content: &str) -> Vec<u8> {
    let length = u32::try_from(content.len() + 4).unwrap();
    [&[tag], &length.to_be_bytes()[..], content.as_bytes()].concat()
}

#[test]
fn packets_do_not_matter() {
    use Side::{Client, Server};
    let (parse, bind) = (message(b'P', "s1\0SELECT 1\0\0\0"), message(b'B', "\0s1\0"));
    let (execute, sync) = (message(b'E', "\0\0\0\0\0"), message(b'S', ""));
    let prepare = [parse, sync.clone()].concat();
    let two = [message(b'Q', "BEGIN\0"), bind, execute, sync].concat();
    let said = [
        (Client, prepare),
        (Server, message(b'Z', "I")),
        (Client, two),
        (
            Server,
            [message(b'C', "BEGIN\0"), message(b'Z', "T")].concat(),
        ),
        (Server, [message(b'D', "1"), message(b'Z', "T")].concat()),
    ];
    let turns = [
        Turn {
            executed: vec![],
            prepared: vec!["SELECT 1".to_owned()],
            is_open: vec![false],
        },
        Turn {
            executed: vec!["BEGIN".to_owned(), "SELECT 1".to_owned()],
            prepared: vec![],
            is_open: vec![true, true],
        },
    ];
    assert_eq!(Conversation::default().hear(&said), turns);

    // In packets of one byte.
    let mut conversation = Conversation::default();
    let mut heard = Vec::new();
    for (side, bytes) in said {
        for byte in bytes {
            heard.extend(conversation.hear(&[(side, vec![byte])]));
        }
    }
    assert_eq!(heard, turns);
}
