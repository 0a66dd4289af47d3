//! The request hash: of an ordinary command, and of a large body against SHA-256 alone.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;
use idem_diesel::{RequestDigest, RequestHash};
use sha2::{Digest, Sha256};

use super::{figure, rate, ratio};
use crate::effort::Effort;
use crate::results::{Measurement, Target, Unit};
use crate::rounds::alternate;

const COMMANDS: u32 = 200_000;
const BODIES: u32 = 3000;
const BODY_BYTES: usize = 64 * 1024;

/// Ten fields of the usual kinds.
#[derive(RequestHash)]
struct PlaceOrder {
    customer_id: i64,
    product_id: i64,
    quantity: u32,
    unit_price_cents: i64,
    currency: String,
    shipping_address: String,
    gift_note: Option<String>,
    coupon: Option<String>,
    is_express: bool,
    weight_grams: u32,
}

pub(crate) fn measure(effort: Effort) -> Result<Vec<Measurement>> {
    Ok(vec![command(effort)?, body(effort)?])
}

fn command(effort: Effort) -> Result<Measurement> {
    let calls = effort.calls(COMMANDS);
    let cmd = PlaceOrder {
        customer_id: 4_711,
        product_id: 90_210,
        quantity: 3,
        unit_price_cents: 1_999,
        currency: "EUR".to_owned(),
        shipping_address: "12 Analytical Engine Street, London".to_owned(),
        gift_note: None,
        coupon: Some("SPRING".to_owned()),
        is_express: true,
        weight_grams: 1_250,
    };
    let rounds = alternate(effort.rounds(), [()], |()| {
        let started_at = Instant::now();
        for _ in 0..calls {
            black_box(RequestDigest::of(black_box(&cmd))?);
        }
        Ok(started_at.elapsed().as_secs_f64() * 1e6 / f64::from(calls))
    })?;
    let micros: Vec<f64> = rounds.into_iter().flatten().collect();
    figure(
        "request hash of a command with 10 fields",
        Unit::Microseconds,
        Some(Target::AtMost(2.0)),
        &micros,
    )
}

#[derive(Debug, Clone, Copy)]
enum Side {
    Sha256,
    RequestHash,
}

fn body(effort: Effort) -> Result<Measurement> {
    let calls = effort.calls(BODIES);
    let body: Vec<u8> = (0..=u8::MAX).cycle().take(BODY_BYTES).collect();
    let sides = [Side::Sha256, Side::RequestHash];
    let rounds = alternate(effort.rounds(), sides, |side| {
        let started_at = Instant::now();
        for _ in 0..calls {
            match side {
                Side::Sha256 => {
                    black_box(Sha256::digest(black_box(&body)));
                }
                Side::RequestHash => {
                    black_box(RequestDigest::of(black_box(&body))?);
                }
            }
        }
        Ok(rate(calls, started_at.elapsed()))
    })?;
    ratio(
        &rounds,
        "request hash of a body of 64 KiB",
        "SHA-256 of the same bytes",
        Some(Target::AtLeast(0.90)),
        |&[sha256, hash]| (hash, sha256),
    )
}
