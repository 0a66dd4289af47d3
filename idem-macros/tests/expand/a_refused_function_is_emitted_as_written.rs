::core::compile_error! {
    "`ttl` is missing: it is how long a retry is answered from the record; write `ttl = \"48h\"` or `ttl = PATH_TO_A_CONST_RETENTION`"
}
::core::compile_error! {
    "no intent: take a parameter `intent: &Intent`, or `intent: Option<&Intent>` if a caller may have none (if the type has another name here, say `intent = name`)"
}
pub fn pay(db: &mut SqliteConnection, at: Time, note: &str) -> QueryResult<()> {
    #![allow(unused)]
    let _ = &db;
    let _ = &at;
    let _ = &note;
    note_down(db, at, note)
}
