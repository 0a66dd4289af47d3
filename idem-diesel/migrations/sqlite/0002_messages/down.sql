DROP TABLE outbox_deliveries;
DROP TABLE outbox_events;
DROP TABLE processed_messages;
