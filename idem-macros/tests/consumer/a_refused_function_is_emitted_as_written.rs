::core::compile_error! {
    "`retention` is missing: it is how long a processed message is remembered; write `retention = \"7d\"` or `retention = PATH_TO_A_CONST_RETENTION`"
}
::core::compile_error! {
    "no message id: take a parameter `id: &MessageId` (if the type has another name here, say `message_id = name`)"
}
pub fn bill(db: &mut SqliteConnection, at: Time, note: &str) -> QueryResult<()> {
    #![allow(unused)]
    let _ = &db;
    let _ = &at;
    let _ = &note;
    note_down(db, at, note)
}
