//! What the tables must be made of on PostgreSQL.

/// A query of the names of those of the tables that are there.
pub(super) const PRESENT: &str = "\
    SELECT name FROM unnest(ARRAY['api_idempotency', 'processed_messages', 'outbox_events', 'outbox_deliveries']) AS name \
     WHERE to_regclass(name) IS NOT NULL";

/// A query of what they are made of, one fact in a row, behind the name of its table.
pub(super) const FACTS: &str = "\
    WITH tables AS (\
        SELECT name, to_regclass(name) AS id \
          FROM unnest(ARRAY['api_idempotency', 'processed_messages', 'outbox_events', 'outbox_deliveries']) AS name), \
    indexes AS (\
        SELECT t.name, i.indexrelid, i.indrelid, i.indisprimary, i.indisunique, i.indpred, \
               string_agg(a.attname, ', ' ORDER BY k.position) AS columns \
          FROM tables AS t JOIN pg_index AS i ON i.indrelid = t.id \
          CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, position) \
          JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum \
         WHERE i.indisvalid GROUP BY t.name, i.indexrelid) \
    SELECT t.name || ' ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) \
           || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END \
           || CASE WHEN c.collname <> 'default' THEN ' collate ' || c.collname ELSE '' END \
           || CASE WHEN a.attidentity <> '' THEN ' identity' ELSE '' END \
      FROM tables AS t JOIN pg_attribute AS a ON a.attrelid = t.id \
      LEFT JOIN pg_collation AS c ON c.oid = a.attcollation \
     WHERE a.attnum > 0 AND NOT a.attisdropped \
    UNION ALL \
    SELECT name || ' primary key ' || columns FROM indexes WHERE indisprimary \
    UNION ALL \
    SELECT i.name || ' unique index ' || c.relname || ' on ' || i.columns || ' where ' || pg_get_expr(i.indpred, i.indrelid) \
      FROM indexes AS i JOIN pg_class AS c ON c.oid = i.indexrelid WHERE i.indisunique AND i.indpred IS NOT NULL \
    UNION ALL \
    SELECT t.name || ' check ' || c.conname FROM tables AS t JOIN pg_constraint AS c ON c.conrelid = t.id \
     WHERE c.contype = 'c' AND c.convalidated \
    UNION ALL \
    SELECT name || ' privilege ' || privilege \
      FROM tables CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege \
     WHERE has_table_privilege(id, privilege)";

/// The facts that must be among them, for each table.
pub(super) const EXPECTED: &[(&str, &[&str])] = &[
    (
        "api_idempotency",
        &[
            "tenant_id text not null collate C",
            "operation text not null collate C",
            "idempotency_key text not null collate C",
            "request_hash text not null collate C",
            "state text not null collate C",
            "status_code integer",
            "response_headers text",
            "response_body bytea",
            "codec text",
            "resource_type text",
            "resource_id text",
            "attempt integer not null",
            "owner text",
            "lease_expires_at timestamp with time zone",
            "created_at timestamp with time zone not null",
            "completed_at timestamp with time zone",
            "expires_at timestamp with time zone not null",
            "forget_at timestamp with time zone not null",
            "primary key tenant_id, operation, idempotency_key",
            "check api_idempotency_state",
            "privilege SELECT",
            "privilege INSERT",
            "privilege UPDATE",
            "privilege DELETE",
        ],
    ),
    (
        "processed_messages",
        &[
            "subscriber_id text not null collate C",
            "message_id text not null collate C",
            "request_hash text collate C",
            "state text not null collate C",
            "attempts integer not null",
            "last_error text",
            "payload bytea",
            "processed_at timestamp with time zone not null",
            "forget_at timestamp with time zone not null",
            "primary key subscriber_id, message_id",
            "check processed_messages_state",
            "privilege SELECT",
            "privilege INSERT",
            "privilege UPDATE",
            "privilege DELETE",
        ],
    ),
    (
        "outbox_events",
        &[
            "tenant_id text not null collate C",
            "id uuid not null",
            "aggregatetype character varying(255) not null collate C",
            "aggregateid character varying(255) not null collate C",
            "type character varying(255) not null collate C",
            "payload text",
            "operation text collate C",
            "idempotency_key text collate C",
            "traceparent text",
            "created_at timestamp with time zone not null",
            "primary key tenant_id, id",
            "privilege SELECT",
            "privilege INSERT",
            "privilege DELETE",
        ],
    ),
    (
        "outbox_deliveries",
        &[
            "tenant_id text not null collate C",
            "event_id uuid not null",
            "position bigint not null identity",
            "aggregatetype character varying(255) not null collate C",
            "aggregateid character varying(255) not null collate C",
            "type character varying(255) not null collate C",
            "unique_key text collate C",
            "state text not null collate C",
            "attempts integer not null",
            "unsettled integer not null",
            "owner text collate C",
            "fence bigint not null",
            "due_at timestamp with time zone not null",
            "last_error text",
            "created_at timestamp with time zone not null",
            "settled_at timestamp with time zone",
            "primary key tenant_id, event_id",
            "unique index outbox_deliveries_unique on tenant_id, type, unique_key \
             where ((state <> 'delivered'::text) AND (unique_key IS NOT NULL))",
            "check outbox_deliveries_state",
            "privilege SELECT",
            "privilege INSERT",
            "privilege UPDATE",
            "privilege DELETE",
        ],
    ),
];
