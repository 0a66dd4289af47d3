fn pay_order(
    db: &mut SqliteConnection,
    intent: &Intent,
    cmd: &PayOrder,
) -> QueryResult<Payment> {
    use ::idem_diesel as __idem;
    const __OPERATION: __idem::Operation = __idem::Operation::new(
            "orders.pay",
            retention::ORDERS,
        )
        .with_policy(PATIENT);
    const _: () = ::core::assert!(
        retention::ORDERS.as_secs() >= 86_400,
        "a retry can come later than this retention of less than 24 h: make it longer, or say why none comes: `short_ttl = \"why a retry never comes later\"`"
    );
    let __claim = __idem::__private::blocking::begin::<
        QueryResult<Payment>,
        SqliteConnection,
    >(&mut *db, ::core::option::Option::Some(intent), &__OPERATION, &cmd);
    let mut execution = match __claim {
        ::core::result::Result::Ok(__idem::Claimed::Execute(execution)) => execution,
        ::core::result::Result::Ok(__idem::Claimed::Replay(stored)) => {
            return __idem::__private::replay::<QueryResult<Payment>>(stored);
        }
        ::core::result::Result::Err(error) => {
            return __idem::__private::fail::<QueryResult<Payment>>(error);
        }
    };
    let (db, intent) = execution.__parts();
    let _ = &intent;
    let result: QueryResult<Payment> = (move || -> QueryResult<Payment> {
        if cmd.amount_cents == 0 {
            return Err(NotFound);
        }
        insert(db)
    })();
    __idem::__private::blocking::finish::<
        QueryResult<Payment>,
        SqliteConnection,
    >(execution, result)
}
