//! Curves over time: one picture with a panel for each thing that was watched, and in it a line for each run.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use super::{Drawn, FONT, OURS, WIDTH};

const HEIGHT: u32 = 260;

/// What was watched over time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Curves {
    /// Of the file.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) panels: Vec<Panel>,
}

/// One thing that was watched.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Panel {
    pub(crate) axis: String,
    /// Points of seconds and values, a line for each run.
    pub(crate) lines: Vec<Vec<(f64, f64)>>,
}

/// Draws `NAME.svg`.
pub(crate) fn draw(folder: &Path, curves: &Curves) -> Result<()> {
    let file = folder.join(format!("{}.svg", curves.name));
    picture(&file, curves).map_err(|error| anyhow!("cannot draw {}: {error}", file.display()))
}

fn picture(file: &Path, curves: &Curves) -> Drawn {
    let panels = u32::try_from(curves.panels.len())?;
    let root = SVGBackend::new(file, (WIDTH, 40 + panels * HEIGHT)).into_drawing_area();
    root.fill(&WHITE)?;
    let below = root.titled(&curves.title, (FONT, 18))?;
    let areas = below.split_evenly((curves.panels.len(), 1));
    for (panel, area) in curves.panels.iter().zip(&areas) {
        let points = || panel.lines.iter().flatten();
        let end = points().map(|point| point.0).fold(0.0, f64::max);
        let top = points().map(|point| point.1).fold(1.0, f64::max);
        let mut chart = ChartBuilder::on(area)
            .margin(10)
            .set_label_area_size(LabelAreaPosition::Left, 80)
            .set_label_area_size(LabelAreaPosition::Bottom, 40)
            .build_cartesian_2d(0.0..end, 0.0..top * 1.1)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("seconds")
            .y_desc(panel.axis.as_str())
            .y_label_formatter(&|value| format!("{value:.0}"))
            .x_label_formatter(&|value| format!("{value:.0}"))
            .label_style((FONT, 13))
            .draw()?;
        for line in &panel.lines {
            chart.draw_series([PathElement::new(line.clone(), OURS.stroke_width(1))])?;
        }
    }
    root.present()?;
    Ok(())
}
