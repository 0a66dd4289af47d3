//! Clients on a runtime as applications have it: a task for each, with a connection of its own over TCP.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use diesel_async::{AsyncConnection, AsyncPgConnection};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::asynchronous::Call;
use crate::shop::Work;

/// Clients, each connected.
pub(crate) struct Clients {
    pub(crate) runtime: Runtime,
    connections: Vec<AsyncPgConnection>,
}

impl Clients {
    pub(crate) fn connect(url: &str, clients: u32) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        let connections = runtime.block_on(async {
            let mut connections = Vec::new();
            for _ in 0..clients {
                connections.push(AsyncPgConnection::establish(url).await?);
            }
            diesel::ConnectionResult::Ok(connections)
        })?;
        Ok(Self {
            runtime,
            connections,
        })
    }

    /// Each client works off its list. Gives the time until the last is done.
    pub(crate) fn run(&mut self, call: Call, lists: &[Arc<[Work]>]) -> Result<Duration> {
        let connections = std::mem::take(&mut self.connections);
        self.runtime.block_on(async {
            let started_at = Instant::now();
            let clients: Vec<JoinHandle<Result<AsyncPgConnection>>> = connections
                .into_iter()
                .zip(lists.iter().cloned())
                .map(|(mut db, list)| {
                    tokio::spawn(async move {
                        for work in &*list {
                            call.run(&mut db, work).await?;
                        }
                        Ok(db)
                    })
                })
                .collect();
            for client in clients {
                self.connections.push(client.await??);
            }
            Ok(started_at.elapsed())
        })
    }

    /// Each client calls until the time is over. Gives how many were made, and the time until the last was done.
    pub(crate) fn run_for(&mut self, call: Call, time: Duration) -> Result<(u32, Duration)> {
        let connections = std::mem::take(&mut self.connections);
        self.runtime.block_on(async {
            let started_at = Instant::now();
            let clients: Vec<JoinHandle<Result<(AsyncPgConnection, u32)>>> = connections
                .into_iter()
                .zip(0..)
                .map(|(mut db, client)| {
                    tokio::spawn(async move {
                        let mut calls = 0;
                        while started_at.elapsed() < time {
                            let work = Work::new(client, calls)?;
                            call.run(&mut db, &work).await?;
                            calls += 1;
                        }
                        Ok((db, calls))
                    })
                })
                .collect();
            let mut sum = 0;
            for client in clients {
                let (db, calls) = client.await??;
                self.connections.push(db);
                sum += calls;
            }
            Ok((sum, started_at.elapsed()))
        })
    }
}
