DROP VIEW api_idempotency_readable;
DROP TABLE api_idempotency;
