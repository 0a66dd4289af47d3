//! Pictures: the median of each measurement as a bar, with its spread and its target.

pub(crate) mod curves;

use std::fs;
use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::report::{figure, words};
use crate::results::{Group, Measurement, Target, Unit};

const WIDTH: u32 = 1000;
const LABELS: u32 = 420;
const ROW: u32 = 46;
const AROUND: u32 = 110;

const OURS: RGBColor = RGBColor(90, 130, 180);
const TARGET: RGBColor = RGBColor(190, 60, 40);
const NOTE: RGBColor = RGBColor(100, 100, 100);
const FONT: &str = "sans-serif";

/// Draws one picture for each unit of the group: `NAME.svg`, or `NAME-UNIT.svg` for what is no ratio.
pub(crate) fn draw(folder: &Path, group: &Group) -> Result<()> {
    fs::create_dir_all(folder)?;
    let units = [
        (Unit::Ratio, "", "ratio"),
        (Unit::Microseconds, "-time", "microseconds"),
        (Unit::Milliseconds, "-milliseconds", "milliseconds"),
        (Unit::Seconds, "-seconds", "seconds"),
        (Unit::WalBytes, "-wal", "bytes of the log for each call"),
        (Unit::Instructions, "-count", "instructions for each call"),
    ];
    for (unit, suffix, axis) in units {
        let bars: Vec<&Measurement> = group
            .measurements
            .iter()
            .filter(|measurement| measurement.unit == unit)
            .collect();
        if !bars.is_empty() {
            let file = folder.join(format!("{}{suffix}.svg", group.name));
            picture(&file, &group.name, axis, &bars)
                .map_err(|error| anyhow!("cannot draw {}: {error}", file.display()))?;
        }
    }
    Ok(())
}

type Drawn = Result<(), Box<dyn std::error::Error>>;
type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

fn picture(file: &Path, name: &str, axis: &str, bars: &[&Measurement]) -> Drawn {
    let rows = u32::try_from(bars.len())?;
    let root = SVGBackend::new(file, (WIDTH, AROUND + rows * ROW)).into_drawing_area();
    root.fill(&WHITE)?;
    let end = bars.iter().map(|bar| right_end(bar)).fold(0.0, f64::max);
    let title = format!("{name}: medians, with quartiles and extremes; targets in red");
    let mut chart = ChartBuilder::on(&root)
        .caption(title, (FONT, 18))
        .margin(10)
        .set_label_area_size(LabelAreaPosition::Left, LABELS)
        .set_label_area_size(LabelAreaPosition::Bottom, 45)
        .build_cartesian_2d(0.0..end * 1.25, f64::from(rows)..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .light_line_style(TRANSPARENT)
        .x_desc(axis)
        .x_label_formatter(&|value| {
            if end < 20.0 {
                format!("{value:.1}")
            } else {
                format!("{value:.0}")
            }
        })
        .x_label_style((FONT, 13))
        .draw()?;
    for (bar, row) in bars.iter().zip(0_u32..) {
        let top = f64::from(row);
        draw_bar(&mut chart, bar, top)?;
        // The chart ends at its axis, so the labels are drawn on the whole picture.
        let (x, y) = chart.backend_coord(&(0.0, top + 0.5));
        draw_labels(&root, bar, (x - 10, y))?;
    }
    root.present()?;
    Ok(())
}

/// How far the drawing of a measurement goes.
fn right_end(bar: &Measurement) -> f64 {
    match bar.target {
        Some(Target::AtLeast(target) | Target::AtMost(target)) => bar.spread.max.max(target),
        None => bar.spread.max,
    }
}

fn draw_bar(chart: &mut Chart<'_>, bar: &Measurement, top: f64) -> Drawn {
    let Measurement {
        spread,
        unit,
        target,
        ..
    } = bar;
    let middle = top + 0.5;
    let line = |from: f64, to: f64, width: u32| {
        PathElement::new(
            vec![(from, middle), (to, middle)],
            BLACK.stroke_width(width),
        )
    };
    let corners = [(0.0, top + 0.2), (spread.median, top + 0.8)];
    chart.draw_series([Rectangle::new(corners, OURS.filled())])?;
    chart.draw_series([
        line(spread.min, spread.max, 1),
        line(spread.lower_quartile, spread.upper_quartile, 4),
    ])?;
    if let Some(Target::AtLeast(value) | Target::AtMost(value)) = target {
        let mark = vec![(*value, top + 0.08), (*value, top + 0.92)];
        chart.draw_series([PathElement::new(mark, TARGET.stroke_width(3))])?;
    }
    let beside = EmptyElement::at((right_end(bar), middle))
        + Text::new(figure(*unit, spread.median), (8, -7), (FONT, 15));
    chart.draw_series([beside])?;
    Ok(())
}

fn draw_labels(
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    bar: &Measurement,
    (x, y): (i32, i32),
) -> Drawn {
    let style = |size: u32, color| {
        TextStyle::from((FONT, size).into_font())
            .color(color)
            .pos(Pos::new(HPos::Right, VPos::Center))
    };
    let mut notes = Vec::new();
    if !bar.against.is_empty() {
        notes.push(format!("against {}", bar.against));
    }
    if let Some(target) = bar.target {
        notes.push(format!("target {}", words(bar.unit, target)));
    }
    if notes.is_empty() {
        root.draw(&Text::new(bar.what.clone(), (x, y), style(14, &BLACK)))?;
        return Ok(());
    }
    root.draw(&Text::new(bar.what.clone(), (x, y - 9), style(14, &BLACK)))?;
    root.draw(&Text::new(notes.join(", "), (x, y + 9), style(12, &NOTE)))?;
    Ok(())
}
