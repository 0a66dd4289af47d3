fn pay(db: &mut SqliteConnection, intent: Intent) -> QueryResult<()> {
    #![allow(unused_mut)]
    use ::idem_diesel as __idem;
    const __OPERATION: __idem::Operation = __idem::Operation::new(
        "orders.pay",
        __idem::Retention::literal("48h"),
    );
    let __claim = __idem::__private::blocking::begin::<
        QueryResult<()>,
        SqliteConnection,
    >(&mut *db, ::core::option::Option::Some(&intent), &__OPERATION, &());
    let mut execution = match __claim {
        ::core::result::Result::Ok(__idem::Claimed::Execute(execution)) => execution,
        ::core::result::Result::Ok(__idem::Claimed::Replay(stored)) => {
            return __idem::__private::replay::<QueryResult<()>>(stored);
        }
        ::core::result::Result::Err(error) => {
            return __idem::__private::fail::<QueryResult<()>>(error);
        }
    };
    ::core::mem::drop(intent);
    let (db, bound) = execution.__parts();
    let mut intent = ::core::clone::Clone::clone(bound);
    let _ = &intent;
    let result: QueryResult<()> = (move || -> QueryResult<()> { later(db, intent) })();
    __idem::__private::blocking::finish::<
        QueryResult<()>,
        SqliteConnection,
    >(execution, result)
}
