-- Times are UTC text with milliseconds; text compares byte by byte (BINARY).
-- The inbox: one row for each message that a subscriber has processed, or failed to.
CREATE TABLE processed_messages (
    subscriber_id TEXT NOT NULL,
    message_id    TEXT NOT NULL,
    -- Hexadecimal: the scheme byte, then SHA-256. Absent when the message never got so far.
    request_hash  TEXT,
    -- `processed`: its effects are committed. `failed`: it may come again. `dead`: it was given up.
    state         TEXT NOT NULL DEFAULT 'processed'
        CONSTRAINT processed_messages_state CHECK (state IN ('processed', 'failed', 'dead')),
    -- How often it failed, why the last time, and, once it is dead, what it was.
    attempts      INTEGER NOT NULL DEFAULT 0,
    last_error    TEXT,
    payload       BLOB,
    processed_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    -- From here on a processed message may be forgotten.
    forget_at     TEXT NOT NULL,
    PRIMARY KEY (subscriber_id, message_id)
) WITHOUT ROWID;

-- The outbox: what happened, as Debezium's outbox event router reads it. Rows are inserted, and removed when nobody needs them; never changed.
CREATE TABLE outbox_events (
    -- Empty when the event was published outside of a call.
    tenant_id       TEXT NOT NULL,
    id              TEXT NOT NULL,
    aggregatetype   TEXT NOT NULL,
    aggregateid     TEXT NOT NULL,
    type            TEXT NOT NULL,
    -- JSON as it was written, never jsonb: what is published is what was committed.
    payload         TEXT,
    -- The call that caused it.
    operation       TEXT,
    idempotency_key TEXT,
    -- W3C Trace Context.
    traceparent     TEXT,
    created_at      TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    PRIMARY KEY (tenant_id, id)
);

-- How far each event has got on its way to the broker.
CREATE TABLE outbox_deliveries (
    tenant_id     TEXT NOT NULL,
    event_id      TEXT NOT NULL,
    -- Events of one aggregate are published in this order, which is that of their commits.
    position      INTEGER PRIMARY KEY AUTOINCREMENT,
    aggregatetype TEXT NOT NULL,
    aggregateid   TEXT NOT NULL,
    type          TEXT NOT NULL,
    -- At most one undelivered event of its type has it.
    unique_key    TEXT,
    state         TEXT NOT NULL DEFAULT 'pending'
        CONSTRAINT outbox_deliveries_state CHECK (state IN ('pending', 'delivered', 'dead')),
    attempts      INTEGER NOT NULL DEFAULT 0,
    -- The relay that publishes it now, and the number of its lease: an older one settles nothing.
    owner         TEXT,
    fence         INTEGER NOT NULL DEFAULT 0,
    -- How many leases in a row were over before anybody settled them.
    unsettled     INTEGER NOT NULL DEFAULT 0,
    -- When it may be leased: after a pause, or when its lease is over.
    due_at        TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    last_error    TEXT,
    created_at    TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    -- When it was delivered, or given up.
    settled_at    TEXT,
    UNIQUE (tenant_id, event_id)
);

CREATE INDEX outbox_deliveries_pending ON outbox_deliveries (position) WHERE state = 'pending';
CREATE INDEX outbox_deliveries_order ON outbox_deliveries (tenant_id, aggregatetype, aggregateid, position) WHERE state <> 'delivered';
CREATE UNIQUE INDEX outbox_deliveries_unique ON outbox_deliveries (tenant_id, type, unique_key)
 WHERE state <> 'delivered' AND unique_key IS NOT NULL;
CREATE INDEX outbox_deliveries_delivered ON outbox_deliveries (settled_at) WHERE state = 'delivered';
