fn pay(_db: &mut SqliteConnection, intent: &Intent, _cmd: &PayOrder) -> QueryResult<()> {
    use ::idem_diesel as __idem;
    const __OPERATION: __idem::Operation = __idem::Operation::new(
        "orders.pay",
        __idem::Retention::literal("48h"),
    );
    let __claim = __idem::__private::blocking::begin::<
        QueryResult<()>,
        SqliteConnection,
    >(&mut *_db, ::core::option::Option::Some(intent), &__OPERATION, &_cmd);
    let mut execution = match __claim {
        ::core::result::Result::Ok(__idem::Claimed::Execute(execution)) => execution,
        ::core::result::Result::Ok(__idem::Claimed::Replay(stored)) => {
            return __idem::__private::replay::<QueryResult<()>>(stored);
        }
        ::core::result::Result::Err(error) => {
            return __idem::__private::fail::<QueryResult<()>>(error);
        }
    };
    let (_, _) = execution.__parts();
    let result: QueryResult<()> = (move || -> QueryResult<()> { Ok(()) })();
    __idem::__private::blocking::finish::<
        QueryResult<()>,
        SqliteConnection,
    >(execution, result)
}
