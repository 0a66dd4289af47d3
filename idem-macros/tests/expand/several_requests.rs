fn pay(
    db: &mut impl Connection,
    log: &mut Log,
    intent: &Intent,
    r#type: &str,
    amount_argument: Cents,
    #[cfg(feature = "notes")]
    note: Option<String>,
    trace_id: &str,
) -> Result<(), ShopError> {
    use ::idem_diesel as __idem;
    const __OPERATION: __idem::Operation = __idem::Operation::new(
        "orders.pay",
        __idem::Retention::literal("48h"),
    );
    let __claim = __idem::__private::blocking::begin::<
        Result<(), ShopError>,
        _,
    >(
        &mut *db,
        ::core::option::Option::Some(intent),
        &__OPERATION,
        &__idem::__private::Fields(
            &[
                ("type", &r#type),
                ("amount", &amount_argument),
                #[cfg(feature = "notes")]
                ("note", &note),
            ],
        ),
    );
    let mut execution = match __claim {
        ::core::result::Result::Ok(__idem::Claimed::Execute(execution)) => execution,
        ::core::result::Result::Ok(__idem::Claimed::Replay(stored)) => {
            return __idem::__private::replay::<Result<(), ShopError>>(stored);
        }
        ::core::result::Result::Err(error) => {
            return __idem::__private::fail::<Result<(), ShopError>>(error);
        }
    };
    let Cents(amount) = { amount_argument };
    let (db, intent) = execution.__parts();
    let _ = &intent;
    let result: Result<(), ShopError> = (move || -> Result<(), ShopError> {
        log.note(trace_id);
        record(db, r#type, amount)
    })();
    __idem::__private::blocking::finish::<Result<(), ShopError>, _>(execution, result)
}
