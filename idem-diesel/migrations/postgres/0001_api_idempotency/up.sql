-- One row for each idempotency key: who claimed it, for which request, and what was answered.
CREATE TABLE api_idempotency (
    tenant_id        text COLLATE "C" NOT NULL,
    operation        text COLLATE "C" NOT NULL,
    idempotency_key  text COLLATE "C" NOT NULL,
    -- Hexadecimal: the scheme byte, then SHA-256.
    request_hash     text COLLATE "C" NOT NULL,
    state            text COLLATE "C" NOT NULL
        CONSTRAINT api_idempotency_state CHECK (state IN ('pending', 'completed', 'failed')),
    status_code      integer,
    response_headers text,
    -- The bytes as they were sent, never jsonb: a replay gives the same bytes.
    response_body    bytea,
    codec            text,
    resource_type    text,
    resource_id      text,
    attempt          integer NOT NULL DEFAULT 1,
    owner            text,
    lease_expires_at timestamptz,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    completed_at     timestamptz,
    -- From here on the answer may be blanked ...
    expires_at       timestamptz NOT NULL,
    -- ... and only from here on the row may go.
    forget_at        timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, operation, idempotency_key)
);

-- What a person reads in psql: the body as text.
CREATE VIEW api_idempotency_readable AS
SELECT tenant_id, operation, idempotency_key, state, attempt, created_at, completed_at, expires_at, forget_at,
       request_hash, codec,
       CASE WHEN codec = 'json' THEN convert_from(response_body, 'UTF8') END AS response_text
  FROM api_idempotency;
