/// Pays an order.
#[tracing::instrument(skip_all)]
pub async fn pay_order(
    db: &mut AsyncPgConnection,
    intent: &Intent,
    cmd: &PayOrder,
) -> Result<Outcome<Payment>, ShopError> {
    use ::idem_diesel as __idem;
    const __OPERATION: __idem::Operation = __idem::Operation::new(
        "orders.pay",
        __idem::Retention::literal("48h"),
    );
    const _: () = ::core::assert!(
        __idem::__private::has_edge(< OrderStatus as __idem::StateMachine > ::EDGES,
        OrderStatus::Pending as ::core::primitive::isize, OrderStatus::Paid as
        ::core::primitive::isize,),
        "`OrderStatus` has no transition Pending => Paid: add it to `#[state(to(…))]` of `Pending`"
    );
    let __claim = __idem::__private::asynchronous::begin::<
        Result<Outcome<Payment>, ShopError>,
        AsyncPgConnection,
    >(&mut *db, ::core::option::Option::Some(intent), &__OPERATION, &cmd);
    let mut execution = match __claim.await {
        ::core::result::Result::Ok(__idem::Claimed::Execute(execution)) => execution,
        ::core::result::Result::Ok(__idem::Claimed::Replay(stored)) => {
            return __idem::__private::replay::<
                Result<Outcome<Payment>, ShopError>,
            >(stored);
        }
        ::core::result::Result::Err(error) => {
            return __idem::__private::fail::<Result<Outcome<Payment>, ShopError>>(error);
        }
    };
    let moved = __idem::__private::asynchronous::transition(
            &mut execution,
            OrderStatus::Paid,
            &[OrderStatus::Pending],
            cmd.order_id,
        )
        .await;
    if let ::core::result::Result::Err(error) = moved {
        return __idem::__private::asynchronous::refuse::<
            Result<Outcome<Payment>, ShopError>,
            AsyncPgConnection,
        >(execution, error)
            .await;
    }
    let (db, intent) = execution.__parts();
    let _ = &intent;
    let result: Result<Outcome<Payment>, ShopError> = async move {
        if let ::core::option::Option::Some(result) = ::core::option::Option::None::<
            Result<Outcome<Payment>, ShopError>,
        > {
            return result;
        }
        {
            diesel::update(accounts::table).execute(db).await?;
            Ok(Payment { id: 1 }.into())
        }
    }
        .await;
    __idem::__private::asynchronous::finish::<
        Result<Outcome<Payment>, ShopError>,
        AsyncPgConnection,
    >(execution, result)
        .await
}
