//! The parts of a database URL that stand between a client and its server.

use std::net::SocketAddr;

use percent_encoding::percent_decode_str;

const DEFAULT_PORT: u16 = 5432;

/// A URL whose server is reached through TCP: `scheme://user:password@host:port/rest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerUrl<'u> {
    scheme: &'u str,
    /// Before the `@`, as it is written.
    account: Option<&'u str>,
    host: &'u str,
    port: u16,
    /// From the `/` or the `?` on.
    rest: &'u str,
}

impl<'u> ServerUrl<'u> {
    /// Takes a URL apart.
    pub(crate) fn parse(url: &'u str) -> Result<Self, String> {
        Self::try_parse(url).ok_or_else(|| {
            "a proxy needs a URL with a host, such as postgres://user:password@host:5432/database"
                .to_owned()
        })
    }

    fn try_parse(url: &'u str) -> Option<Self> {
        let (scheme, address) = url.split_once("://")?;
        let end = address.find(['/', '?']).unwrap_or(address.len());
        let (authority, rest) = address.split_at(end);
        let (account, server) = match authority.rsplit_once('@') {
            Some((account, server)) => (Some(account), server),
            None => (None, authority),
        };
        let (host, port) = match server.rsplit_once(':') {
            // Inside brackets it is a part of an address.
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (server, DEFAULT_PORT),
        };
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        (!host.is_empty()).then_some(Self {
            scheme,
            account,
            host,
            port,
            rest,
        })
    }

    /// Whom to connect to.
    pub(crate) fn address(&self) -> (&'u str, u16) {
        (self.host, self.port)
    }

    /// The user and the password, decoded.
    pub(crate) fn account(&self) -> Option<(String, String)> {
        let (user, password) = self.account?.split_once(':')?;
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        Some((decoded(user), decoded(password)))
    }

    /// The same account and database behind another address.
    pub(crate) fn at(&self, address: SocketAddr) -> String {
        let Self { scheme, rest, .. } = self;
        let account = self
            .account
            .map_or_else(String::new, |account| format!("{account}@"));
        format!("{scheme}://{account}{address}{rest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, address: (&str, u16), elsewhere: &str) {
        let parsed = ServerUrl::parse(url).unwrap();
        assert_eq!(parsed.address(), address);
        assert_eq!(parsed.at(([127, 0, 0, 1], 7).into()), elsewhere);
    }

    #[test]
    fn only_the_address_changes() {
        check(
            "postgres://u:p@h:1/a?sslmode=disable",
            ("h", 1),
            "postgres://u:p@127.0.0.1:7/a?sslmode=disable",
        );
        check("postgres://h", ("h", 5432), "postgres://127.0.0.1:7");
        check(
            "postgres://u@[::1]/a",
            ("::1", 5432),
            "postgres://u@127.0.0.1:7/a",
        );
        check(
            "postgres://[::1]:2?user=u",
            ("::1", 2),
            "postgres://127.0.0.1:7?user=u",
        );
    }

    #[test]
    fn the_account_is_decoded() {
        let account = ServerUrl::parse("postgres://u:a%40b@h/d")
            .unwrap()
            .account();
        assert_eq!(account, Some(("u".to_owned(), "a@b".to_owned())));
        assert_eq!(
            ServerUrl::parse("postgres://u@h/d").unwrap().account(),
            None
        );
    }

    #[test]
    fn a_socket_in_the_file_system_is_refused() {
        for url in [
            "postgres:///a?host=/run/pg",
            "host=h",
            "postgres://h:port/a",
        ] {
            assert!(ServerUrl::parse(url).is_err(), "{url}");
        }
    }
}
