//! The pipeline on PostgreSQL.

use anyhow::Context;
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};

use crate::shop::TABLES;

// These three are compiled for each database. An application has one, and needs no `path`.
#[path = "handlers.rs"]
mod handlers;
#[path = "play.rs"]
pub(crate) mod play;
#[path = "relay.rs"]
pub(crate) mod relay;

pub(crate) type Db = AsyncPgConnection;

/// A schema of its own in the database that was named, so that nothing else there is touched.
#[derive(Debug)]
pub(crate) struct Database {
    url: String,
    schema: String,
}

impl Database {
    pub(crate) async fn create(url: &str) -> anyhow::Result<Self> {
        let database = Self::at(url, &format!("idem_pipeline_{}", std::process::id()));
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

    pub(crate) fn at(url: &str, schema: &str) -> Self {
        Self {
            url: url.to_owned(),
            schema: schema.to_owned(),
        }
    }

    /// The same schema, for somebody who may outlive this.
    pub(crate) fn again(&self) -> Self {
        Self::at(&self.url, &self.schema)
    }

    pub(crate) fn place(&self) -> &str {
        &self.schema
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
