fn bill(
    db: &mut impl Connection,
    log: &mut Log,
    key: &Key,
    delivery: Id,
    cause: &MessageId,
    r#type: &str,
    amount_argument: Cents,
    #[cfg(feature = "notes")]
    note: Option<String>,
) -> Result<(), ShopError> {
    use ::idem_diesel as __idem;
    const __SUBSCRIPTION: __idem::Subscription = __idem::Subscription::new(
        "billing",
        __idem::Retention::literal("7d"),
    );
    let __claim = __idem::__private::consumer::blocking::begin::<
        Result<(), ShopError>,
        _,
    >(
        &mut *db,
        &__SUBSCRIPTION,
        &delivery,
        ::core::option::Option::Some(key),
        &__idem::__private::Fields(
            &[
                ("cause", &cause),
                ("type", &r#type),
                ("amount", &amount_argument),
                #[cfg(feature = "notes")]
                ("note", &note),
            ],
        ),
    );
    let mut consumption = match __claim {
        ::core::result::Result::Ok(__idem::inbox::Claimed::Execute(consumption)) => {
            consumption
        }
        ::core::result::Result::Ok(__idem::inbox::Claimed::Duplicate) => {
            return __idem::__private::consumer::duplicate::<Result<(), ShopError>>();
        }
        ::core::result::Result::Err(error) => {
            return __idem::__private::consumer::fail::<Result<(), ShopError>>(error);
        }
    };
    let Cents(amount) = { amount_argument };
    let (db, key) = consumption.__parts();
    let _ = &key;
    let result: Result<(), ShopError> = (move || -> Result<(), ShopError> {
        log.note(cause);
        record(db, r#type, amount, key, delivery)
    })();
    __idem::__private::consumer::blocking::finish::<
        Result<(), ShopError>,
        _,
    >(consumption, result)
}
