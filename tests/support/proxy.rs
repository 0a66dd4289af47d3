//! A network that fails when a test says so: a TCP proxy on 127.0.0.1 in front of a database.
//!
//! A connection through it has one of four fates. It is *open*, it loses its *answers*, it is *silent*, or it is *cut*. Fates only get
//! worse: bytes that were lost are never made up for, so a connection that lost some cannot be used again, and
//! [`Proxy::resume`] is for new ones.
//!
//! The proxy also counts round trips, which is how often a client waits for the network, whatever the machine's speed is, and it
//! repeats what was said to whoever knows the protocol.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::server_url::ServerUrl;

/// How long a test waits for an answer to be lost before it is told that there was none.
const PATIENCE: Duration = Duration::from_secs(30);

const BUFFER_BYTES: usize = 16 * 1024;

/// A proxy in front of one server. All its connections end with this value.
///
/// ```
/// use diesel::{Connection, PgConnection, RunQueryDsl, sql_query};
/// use support::proxy::Proxy;
///
/// let database = support::postgres::fresh_database();
/// let proxy = Proxy::in_front_of(database.url());
/// let mut conn = PgConnection::establish(proxy.url()).unwrap();
/// assert_eq!(sql_query("CREATE TABLE orders (id int)").execute(&mut conn), Ok(0));
///
/// proxy.cut();
/// assert!(sql_query("SELECT 1").execute(&mut conn).is_err());
/// assert!(PgConnection::establish(proxy.url()).is_ok());
/// ```
#[derive(Debug)]
pub struct Proxy {
    url: String,
    address: SocketAddr,
    network: Arc<Network>,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy in front of the server of a database's URL.
    ///
    /// # Panics
    ///
    /// Panics if the URL names no host, or if this machine has no free port.
    pub fn in_front_of(database_url: &str) -> Self {
        Self::start(database_url).unwrap_or_else(|error| panic!("no proxy: {error}"))
    }

    fn start(database_url: &str) -> Result<Self, String> {
        let server = ServerUrl::parse(database_url)?;
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let network = Arc::new(Network::default());
        let acceptor = {
            let network = Arc::clone(&network);
            let (host, port) = server.address();
            let server = (host.to_owned(), port);
            std::thread::spawn(move || accept(&listener, &server, &network))
        };
        Ok(Self {
            url: server.at(address),
            address,
            network,
            acceptor: Some(acceptor),
        })
    }

    /// The URL of the same database through this proxy.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Closes all connections, towards both sides. After this call nothing more arrives anywhere.
    pub fn cut(&self) {
        for link in &self.network.state().links {
            link.cut();
        }
    }

    /// Loses everything from now on, in both directions and also that a side hung up, and closes nothing: as when packets are
    /// dropped. After this call nothing more arrives anywhere.
    pub fn silence(&self) {
        self.network.worsen(Fate::Silent);
    }

    /// Loses what the server says from now on, and lets the client's side through: a COMMIT arrives, and its answer is lost.
    pub fn swallow_answers(&self) {
        self.network.worsen(Fate::Answerless);
    }

    /// Lets new connections through as before. Those that lost something stay as they are.
    pub fn resume(&self) {
        self.network.state().fate = Fate::Open;
    }

    /// Waits until the server has said something that was lost since the last [`swallow_answers`](Self::swallow_answers) or
    /// [`silence`](Self::silence).
    ///
    /// # Panics
    ///
    /// Panics if nothing is lost for 30 seconds.
    pub fn wait_until_an_answer_is_lost(&self) {
        let (state, waited) = self
            .network
            .lost
            .wait_timeout_while(self.network.state(), PATIENCE, |state| {
                state.lost_answers == 0
            })
            .unwrap_or_else(PoisonError::into_inner);
        drop(state);
        assert!(!waited.timed_out(), "no answer was lost in {PATIENCE:?}");
    }

    /// How often each connection's client has waited for an answer, in the order in which they connected, ended ones included.
    ///
    /// Everything that a client sends before the server's next answer is one round trip, in however many packets. Connecting takes
    /// some, so a test compares two moments.
    pub fn round_trips(&self) -> Vec<u64> {
        let links = self.network.state().links.clone();
        links.iter().map(|link| link.flow().round_trips).collect()
    }

    /// What the two sides of each connection have said since the last time, in the order in which it was passed on. A connection is
    /// listened to from the first time on.
    ///
    /// ```
    /// use diesel::{Connection, PgConnection, connection::SimpleConnection};
    /// use support::proxy::{Proxy, Side};
    ///
    /// let database = support::postgres::fresh_database();
    /// let proxy = Proxy::in_front_of(database.url());
    /// let mut conn = PgConnection::establish(proxy.url()).unwrap();
    /// assert_eq!(proxy.overhear(), [[]]);
    ///
    /// conn.batch_execute("SELECT 1").unwrap();
    /// let said = proxy.overhear();
    /// assert_eq!(said[0][0], (Side::Client, b"Q\0\0\0\x0dSELECT 1\0".to_vec()));
    /// assert_eq!(said[0][1].0, Side::Server);
    /// assert_eq!(proxy.overhear(), [[]]);
    /// ```
    pub fn overhear(&self) -> Vec<Vec<(Side, Vec<u8>)>> {
        let links = self.network.state().links.clone();
        let said = |link: &Arc<Link>| std::mem::take(link.flow().said.get_or_insert_default());
        links.iter().map(said).collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.network.state().is_over = true;
        // The acceptor looks up when somebody comes; after it nobody joins the connections that are cut.
        if TcpStream::connect(self.address).is_ok()
            && let Some(acceptor) = self.acceptor.take()
        {
            let _ = acceptor.join();
        }
        self.cut();
    }
}

/// How much of a connection still works. The order is that of getting worse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    #[default]
    Open,
    Answerless,
    Silent,
}

impl Fate {
    fn lets_through(self, from: Side) -> bool {
        match self {
            Self::Open => true,
            Self::Answerless => from == Side::Client,
            Self::Silent => false,
        }
    }
}

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Who connected to the proxy.
    Client,
    /// Whom the proxy connected to.
    Server,
}

/// All connections of a proxy, and what new ones get.
#[derive(Debug, Default)]
struct Network {
    state: Mutex<State>,
    lost: Condvar,
}

#[derive(Debug, Default)]
struct State {
    fate: Fate,
    links: Vec<Arc<Link>>,
    lost_answers: u64,
    is_over: bool,
}

impl Network {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn worsen(&self, fate: Fate) {
        let links = {
            let mut state = self.state();
            state.fate = fate;
            state.lost_answers = 0;
            state.links.clone()
        };
        // Not under the lock of the network: a link keeps its own for as long as a side takes to read.
        for link in links {
            let mut flow = link.flow();
            flow.fate = flow.fate.max(fate);
        }
    }

    fn an_answer_is_lost(&self) {
        self.state().lost_answers += 1;
        self.lost.notify_all();
    }
}

/// One connection, as it is remembered. Its sockets end with the two threads that move its bytes.
#[derive(Debug)]
struct Link {
    flow: Mutex<Flow>,
    sockets: Weak<Sockets>,
}

#[derive(Debug, Default)]
struct Flow {
    fate: Fate,
    /// Who was heard last by the other side.
    last: Option<Side>,
    round_trips: u64,
    /// What somebody wants to hear, and has not heard yet.
    said: Option<Vec<(Side, Vec<u8>)>>,
}

impl Link {
    fn flow(&self) -> MutexGuard<'_, Flow> {
        lock(&self.flow)
    }

    fn cut(&self) {
        if let Some(sockets) = self.sockets.upgrade() {
            // A side that is gone already cannot be shut down.
            let _ = sockets.client.shutdown(Shutdown::Both);
            let _ = sockets.server.shutdown(Shutdown::Both);
        }
    }
}

#[derive(Debug)]
struct Sockets {
    client: TcpStream,
    server: TcpStream,
}

impl Sockets {
    fn from(&self, side: Side) -> &TcpStream {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    fn to(&self, side: Side) -> &TcpStream {
        match side {
            Side::Client => &self.server,
            Side::Server => &self.client,
        }
    }
}

/// Connects everybody who comes, until the proxy is over.
fn accept(listener: &TcpListener, server: &(String, u16), network: &Arc<Network>) {
    for client in listener.incoming() {
        if network.state().is_over {
            return;
        }
        // A client whose server is not there is hung up on.
        if let Ok(client) = client
            && let Ok(server) = TcpStream::connect((server.0.as_str(), server.1))
        {
            link(Sockets { client, server }, network);
        }
    }
}

fn link(sockets: Sockets, network: &Arc<Network>) {
    for socket in [&sockets.client, &sockets.server] {
        // Packets leave as they came; without it the proxy is only slower.
        let _ = socket.set_nodelay(true);
    }
    let sockets = Arc::new(sockets);
    let link = {
        let mut state = network.state();
        let link = Arc::new(Link {
            flow: Mutex::new(Flow {
                fate: state.fate,
                ..Flow::default()
            }),
            sockets: Arc::downgrade(&sockets),
        });
        state.links.push(Arc::clone(&link));
        link
    };
    for side in [Side::Client, Side::Server] {
        let (sockets, link, network) =
            (Arc::clone(&sockets), Arc::clone(&link), Arc::clone(network));
        std::thread::spawn(move || carry(side, &sockets, &link, &network));
    }
}

/// Moves what one side says to the other side, until it hangs up.
fn carry(from: Side, sockets: &Sockets, link: &Link, network: &Network) {
    let mut buffer = [0; BUFFER_BYTES];
    loop {
        let length = sockets.from(from).read(&mut buffer).unwrap_or(0);
        let said = buffer.get(..length).unwrap_or_default();
        let mut flow = link.flow();
        if !flow.fate.lets_through(from) {
            drop(flow);
            if from == Side::Server {
                network.an_answer_is_lost();
            }
        } else if said.is_empty() {
            let _ = sockets.to(from).shutdown(Shutdown::Write);
        } else {
            if from == Side::Client && flow.last != Some(Side::Client) {
                flow.round_trips += 1;
            }
            flow.last = Some(from);
            if let Some(heard) = &mut flow.said {
                heard.push((from, said.to_vec()));
            }
            // Under the lock, so that nothing is on its way when `silence` returns. A side that is gone hears nothing, and its
            // own thread finds out.
            let _ = sockets.to(from).write_all(said);
        }
        if said.is_empty() {
            return;
        }
    }
}

/// A panic under one of these locks leaves nothing half-done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
