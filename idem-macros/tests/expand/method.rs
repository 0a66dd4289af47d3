pub(crate) async fn pay<C>(
    &mut self,
    db: &mut C,
    intent: Option<&Intent>,
    cmd: PayOrder,
) -> Self::Answer
where
    C: IdempotentConnection,
{
    use ::idem_diesel as __idem;
    const __OPERATION: __idem::Operation = __idem::Operation::new(
        "orders.pay",
        __idem::Retention::literal("1h"),
    );
    let __claim = __idem::__private::asynchronous::begin::<
        Self::Answer,
        C,
    >(&mut *db, intent, &__OPERATION, &cmd);
    let mut execution = match __claim.await {
        ::core::result::Result::Ok(__idem::Claimed::Execute(execution)) => execution,
        ::core::result::Result::Ok(__idem::Claimed::Replay(stored)) => {
            return __idem::__private::replay::<Self::Answer>(stored);
        }
        ::core::result::Result::Err(error) => {
            return __idem::__private::fail::<Self::Answer>(error);
        }
    };
    let (mut db, intent) = execution.__optional_parts();
    let _ = &intent;
    let result: Self::Answer = async move {
        if let ::core::option::Option::Some(result) = ::core::option::Option::None::<
            Self::Answer,
        > {
            return result;
        }
        { self.pay_with(&mut db, cmd).await }
    }
        .await;
    __idem::__private::asynchronous::finish::<Self::Answer, C>(execution, result).await
}
