//! The shop on PostgreSQL.

use anyhow::Context;
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};

use crate::shop::TABLES;

// These three are compiled for each database. An application has one, and needs no `path`.
#[path = "handlers.rs"]
mod handlers;
#[path = "scenes.rs"]
pub(crate) mod scenes;
#[path = "witness.rs"]
mod witness;

pub(crate) type Db = AsyncPgConnection;

/// A schema of its own in the database that was named, so that nothing else there is touched.
pub(crate) struct Database {
    url: String,
    schema: String,
}

impl Database {
    pub(crate) async fn create(url: String) -> anyhow::Result<Self> {
        let schema = format!("idem_checkout_{}", std::process::id());
        let database = Self { url, schema };
        let mut db = database.connect().await?;
        let schema = &database.schema;
        db.batch_execute(&format!(
            "DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}"
        ))
        .await?;
        db.batch_execute(&TABLES.replace("{id}", "BIGSERIAL PRIMARY KEY"))
            .await?;
        idem_diesel::ensure_schema(&mut db).await?;
        Ok(database)
    }

    pub(crate) async fn connect(&self) -> anyhow::Result<Db> {
        let connected = Db::establish(&self.url).await;
        let mut db = connected.context("the database of --database-url")?;
        db.batch_execute(&format!("SET search_path TO {}", self.schema))
            .await?;
        Ok(db)
    }

    pub(crate) async fn remove(self) -> anyhow::Result<()> {
        let mut db = self.connect().await?;
        db.batch_execute(&format!("DROP SCHEMA {} CASCADE", self.schema))
            .await?;
        Ok(())
    }
}
