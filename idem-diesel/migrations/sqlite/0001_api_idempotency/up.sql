-- One row for each idempotency key: who claimed it, for which request, and what was answered.
-- Times are UTC text with milliseconds; text compares byte by byte (BINARY).
CREATE TABLE api_idempotency (
    tenant_id        TEXT NOT NULL,
    operation        TEXT NOT NULL,
    idempotency_key  TEXT NOT NULL,
    -- Hexadecimal: the scheme byte, then SHA-256.
    request_hash     TEXT NOT NULL,
    state            TEXT NOT NULL
        CONSTRAINT api_idempotency_state CHECK (state IN ('pending', 'completed', 'failed')),
    status_code      INTEGER,
    response_headers TEXT,
    -- The bytes as they were sent: a replay gives the same bytes.
    response_body    BLOB,
    codec            TEXT,
    resource_type    TEXT,
    resource_id      TEXT,
    attempt          INTEGER NOT NULL DEFAULT 1,
    owner            TEXT,
    lease_expires_at TEXT,
    created_at       TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    completed_at     TEXT,
    -- From here on the answer may be blanked ...
    expires_at       TEXT NOT NULL,
    -- ... and only from here on the row may go.
    forget_at        TEXT NOT NULL,
    PRIMARY KEY (tenant_id, operation, idempotency_key)
) WITHOUT ROWID;

-- What a person reads in sqlite3: the body as text.
CREATE VIEW api_idempotency_readable AS
SELECT tenant_id, operation, idempotency_key, state, attempt, created_at, completed_at, expires_at, forget_at,
       request_hash, codec,
       CASE WHEN codec = 'json' THEN CAST(response_body AS TEXT) END AS response_text
  FROM api_idempotency;
