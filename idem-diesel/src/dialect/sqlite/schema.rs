//! What the tables must be made of on SQLite.

/// A query of the names of those of the tables that are there.
pub(super) const PRESENT: &str = "\
    SELECT name FROM pragma_table_list \
     WHERE name IN ('api_idempotency', 'processed_messages', 'outbox_events', 'outbox_deliveries')";

/// A query of what they are made of, one fact in a row, behind the name of its table.
///
/// A primary key that is not the number of the row has an index (`pk`), and so has a uniqueness that stands in the table (`u`).
pub(super) const FACTS: &str = "\
    WITH tables(name) AS (VALUES ('api_idempotency'), ('processed_messages'), ('outbox_events'), ('outbox_deliveries')) \
    SELECT t.name || ' ' || c.name || ' ' || lower(c.type) || CASE WHEN c.\"notnull\" THEN ' not null' ELSE '' END \
      FROM tables AS t, pragma_table_info(t.name) AS c \
    UNION ALL \
    SELECT t.name || CASE i.origin WHEN 'pk' THEN ' primary key ' WHEN 'u' THEN ' unique ' ELSE ' unique index ' || i.name || ' on ' END \
           || (SELECT group_concat(name || ' ' || coll, ', ') \
                 FROM (SELECT x.name, x.coll FROM pragma_index_xinfo(i.name) AS x WHERE x.key = 1 ORDER BY x.seqno)) \
           || CASE WHEN i.partial THEN ' of some' ELSE '' END \
      FROM tables AS t, pragma_index_list(t.name) AS i WHERE i.\"unique\" = 1 \
    UNION ALL \
    SELECT t.name || ' rowid ' || c.name FROM tables AS t, pragma_table_info(t.name) AS c \
     WHERE c.pk = 1 AND lower(c.type) = 'integer' \
       AND NOT EXISTS (SELECT 1 FROM pragma_index_list(t.name) AS i WHERE i.origin = 'pk') \
    UNION ALL \
    SELECT t.name || ' check ' || t.name || '_state' FROM tables AS t JOIN sqlite_master AS m ON m.name = t.name \
     WHERE m.type = 'table' AND m.sql LIKE '%CONSTRAINT ' || t.name || '_state CHECK%'";

/// The facts that must be among them, for each table.
pub(super) const EXPECTED: &[(&str, &[&str])] = &[
    (
        "api_idempotency",
        &[
            "tenant_id text not null",
            "operation text not null",
            "idempotency_key text not null",
            "request_hash text not null",
            "state text not null",
            "status_code integer",
            "response_headers text",
            "response_body blob",
            "codec text",
            "resource_type text",
            "resource_id text",
            "attempt integer not null",
            "owner text",
            "lease_expires_at text",
            "created_at text not null",
            "completed_at text",
            "expires_at text not null",
            "forget_at text not null",
            "primary key tenant_id BINARY, operation BINARY, idempotency_key BINARY",
            "check api_idempotency_state",
        ],
    ),
    (
        "processed_messages",
        &[
            "subscriber_id text not null",
            "message_id text not null",
            "request_hash text",
            "state text not null",
            "attempts integer not null",
            "last_error text",
            "payload blob",
            "processed_at text not null",
            "forget_at text not null",
            "primary key subscriber_id BINARY, message_id BINARY",
            "check processed_messages_state",
        ],
    ),
    (
        "outbox_events",
        &[
            "tenant_id text not null",
            "id text not null",
            "aggregatetype text not null",
            "aggregateid text not null",
            "type text not null",
            "payload text",
            "operation text",
            "idempotency_key text",
            "traceparent text",
            "created_at text not null",
            "primary key tenant_id BINARY, id BINARY",
        ],
    ),
    (
        "outbox_deliveries",
        &[
            "tenant_id text not null",
            "event_id text not null",
            "position integer",
            "aggregatetype text not null",
            "aggregateid text not null",
            "type text not null",
            "unique_key text",
            "state text not null",
            "attempts integer not null",
            "unsettled integer not null",
            "owner text",
            "fence integer not null",
            "due_at text not null",
            "last_error text",
            "created_at text not null",
            "settled_at text",
            "rowid position",
            "unique tenant_id BINARY, event_id BINARY",
            "unique index outbox_deliveries_unique on tenant_id BINARY, type BINARY, unique_key BINARY of some",
            "check outbox_deliveries_state",
        ],
    ),
];
