/// Bills an order.
#[tracing::instrument(skip_all)]
pub async fn bill(
    db: &mut AsyncPgConnection,
    id: &MessageId,
    event: &OrderPlaced,
) -> Result<Consumed<Invoice>, ShopError> {
    use ::idem_diesel as __idem;
    const __SUBSCRIPTION: __idem::Subscription = __idem::Subscription::new(
            "billing",
            __idem::Retention::literal("7d"),
        )
        .redelivered_for(__idem::Retention::literal("24h"))
        .with_policy(PATIENT);
    const _: () = ::core::assert!(
        __idem::__private::has_edge(< OrderStatus as __idem::StateMachine > ::EDGES,
        OrderStatus::Pending as ::core::primitive::isize, OrderStatus::Billed as
        ::core::primitive::isize,),
        "`OrderStatus` has no transition Pending => Billed: add it to `#[state(to(…))]` of `Pending`"
    );
    let __claim = __idem::__private::consumer::asynchronous::begin::<
        Result<Consumed<Invoice>, ShopError>,
        AsyncPgConnection,
    >(&mut *db, &__SUBSCRIPTION, id, ::core::option::Option::None, &event);
    let mut consumption = match __claim.await {
        ::core::result::Result::Ok(__idem::inbox::Claimed::Execute(consumption)) => {
            consumption
        }
        ::core::result::Result::Ok(__idem::inbox::Claimed::Duplicate) => {
            return __idem::__private::consumer::duplicate::<
                Result<Consumed<Invoice>, ShopError>,
            >();
        }
        ::core::result::Result::Err(error) => {
            return __idem::__private::consumer::fail::<
                Result<Consumed<Invoice>, ShopError>,
            >(error);
        }
    };
    let moved = __idem::__private::consumer::asynchronous::transition(
            &mut consumption,
            OrderStatus::Billed,
            &[OrderStatus::Pending],
            event.order_id,
        )
        .await;
    if let ::core::result::Result::Err(error) = moved {
        return __idem::__private::consumer::asynchronous::refuse::<
            Result<Consumed<Invoice>, ShopError>,
            AsyncPgConnection,
        >(consumption, error)
            .await;
    }
    let db = consumption.connection();
    let result: Result<Consumed<Invoice>, ShopError> = async move {
        if let ::core::option::Option::Some(result) = ::core::option::Option::None::<
            Result<Consumed<Invoice>, ShopError>,
        > {
            return result;
        }
        {
            diesel::insert_into(invoices::table).execute(db).await?;
            Ok(Invoice { id: 1 }.into())
        }
    }
        .await;
    __idem::__private::consumer::asynchronous::finish::<
        Result<Consumed<Invoice>, ShopError>,
        AsyncPgConnection,
    >(consumption, result)
        .await
}
