//! Curves over the runs of a sweep.

mod curves;
mod draw;
mod select;

pub use select::{Bin, Comparison, Filter};

use crate::rows::{Cell, Row, file_stem, python_text, require};
use crate::svg::Picture;
use crate::{PlotError, ScaleKind};
use curves::{Facet, facets};
use serde::{Deserialize, Serialize};

/// Text of a facet, row or column that holds everything.
const ALL: &str = "(All)";

/// Which figures are drawn of a sweep, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SweepPlot {
    /// The variables with a figure for each of their values.
    pub figure_by: Vec<String>,
    /// Those with a row of charts for each.
    pub row_by: Vec<String>,
    /// Those with a column of charts for each.
    pub column_by: Vec<String>,
    /// Those with a curve for each. The first three show as colour, dashes and thickness; of more,
    /// all together show as colour.
    pub curve_by: Vec<String>,
    /// The variable along the horizontal axis.
    pub x: String,
    /// The variable along the vertical axis.
    pub y: String,
    /// The runs that are drawn.
    pub filters: Vec<Filter>,
    /// The variables that are drawn in classes.
    pub bins: Vec<Bin>,
    /// How the horizontal axis spreads its values.
    pub x_scale: ScaleKind,
    /// How the vertical axis spreads its values.
    pub y_scale: ScaleKind,
    /// Draws one standard deviation (of the sample) up and down from each mean.
    pub error_bars: bool,
    /// The height of one chart in inches, of 96 pixels each.
    pub height_inches: f64,
    /// The first part of each file's name.
    pub name: String,
}

impl Default for SweepPlot {
    fn default() -> Self {
        Self {
            figure_by: Vec::new(),
            row_by: Vec::new(),
            column_by: Vec::new(),
            curve_by: Vec::new(),
            x: "total_token_throughput".to_owned(),
            y: "median_ttft_ms".to_owned(),
            filters: Vec::new(),
            bins: Vec::new(),
            x_scale: ScaleKind::Linear,
            y_scale: ScaleKind::Linear,
            error_bars: true,
            height_inches: 6.4,
            name: "FIGURE".to_owned(),
        }
    }
}

/// One figure of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The variables all its runs share, with their values as Python writes them.
    pub group: Vec<(String, String)>,
    /// The file's name without its ending.
    pub stem: String,
    /// Rows of charts, before the filters.
    pub rows: usize,
    /// Columns of charts, before the filters.
    pub columns: usize,
    /// The picture; `None` when no run passes the filters.
    pub picture: Option<Picture>,
    /// Points that have no place on the axes: infinite, or not above 0 on a logarithmic axis.
    pub left_out: usize,
}

/// Variables and their values as Python writes them.
type Keys = Vec<(String, String)>;

/// A figure that is only planned.
struct Group<'a> {
    keys: Keys,
    rows: Vec<&'a Row>,
}

impl SweepPlot {
    /// The figures without their pictures: what a dry run tells.
    ///
    /// # Errors
    ///
    /// As [`SweepPlot::figures`], as far as groups go.
    pub fn plan(&self, runs: &[Row]) -> Result<Vec<Figure>, PlotError> {
        let groups = self.groups(runs)?;
        groups.iter().map(|group| self.outline(group)).collect()
    }

    /// Draws every figure, in the order in which their groups appear among the runs.
    ///
    /// # Errors
    ///
    /// [`PlotError`] when there is no run, a variable is missing, or a text is where a number must
    /// be.
    pub fn figures(&self, runs: &[Row]) -> Result<Vec<Figure>, PlotError> {
        let groups = self.groups(runs)?;
        groups.iter().map(|group| self.figure(group)).collect()
    }

    fn groups<'a>(&self, runs: &'a [Row]) -> Result<Vec<Group<'a>>, PlotError> {
        if runs.is_empty() {
            return Err(PlotError::Nothing("there are no results of a sweep"));
        }
        let mut groups: Vec<Group<'a>> = Vec::new();
        for (run, row) in runs.iter().enumerate() {
            let keys = keys(row, run, &self.figure_by)?;
            match groups.iter_mut().find(|group| group.keys == keys) {
                Some(group) => group.rows.push(row),
                None => groups.push(Group { keys, rows: vec![row] }),
            }
        }
        Ok(groups)
    }

    fn outline(&self, group: &Group<'_>) -> Result<Figure, PlotError> {
        let mut grid: Vec<(Keys, Vec<Keys>)> = Vec::new();
        for (run, row) in group.rows.iter().enumerate() {
            let (line, column) = (keys(row, run, &self.row_by)?, keys(row, run, &self.column_by)?);
            let place = grid.iter().position(|(other, _)| *other == line);
            let place = place.unwrap_or_else(|| {
                grid.push((line, Vec::new()));
                grid.len() - 1
            });
            if let Some((_, columns)) = grid.get_mut(place)
                && !columns.contains(&column)
            {
                columns.push(column);
            }
        }
        let named = group.keys.iter().map(|(key, value)| format!("{key}={value}"));
        let parts: Vec<String> = std::iter::once(self.name.clone()).chain(named).collect();
        Ok(Figure {
            group: group.keys.clone(),
            stem: file_stem(&parts),
            rows: grid.len(),
            columns: grid.iter().map(|(_, columns)| columns.len()).max().unwrap_or(0),
            picture: None,
            left_out: 0,
        })
    }

    fn figure(&self, group: &Group<'_>) -> Result<Figure, PlotError> {
        let mut figure = self.outline(group)?;
        let axes = [&self.x, &self.y].into_iter();
        for key in axes.chain(&self.row_by).chain(&self.column_by).chain(&self.curve_by) {
            require(&group.rows, key)?;
        }
        let mut kept = group.rows.clone();
        for filter in &self.filters {
            kept = filter.apply(kept)?;
        }
        let mut rows: Vec<Row> = kept.into_iter().cloned().collect();
        for bin in &self.bins {
            bin.apply(&mut rows)?;
        }
        if rows.is_empty() {
            return Ok(figure);
        }
        let orders = |one: &Row, two: &Row| {
            let by_key = self
                .curve_by
                .iter()
                .map(|key| Cell::of(one.get(key)).order(&Cell::of(two.get(key))));
            by_key.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        };
        rows.sort_by(orders);
        let (facets, left_out): (Vec<Facet>, usize) = facets(self, &rows)?;
        figure.left_out = left_out;
        figure.picture = Some(draw::picture(self, &figure, &facets));
        Ok(figure)
    }
}

/// The values of these variables, each of which the run must have.
fn keys(row: &Row, run: usize, names: &[String]) -> Result<Keys, PlotError> {
    names
        .iter()
        .map(|key| match row.get(key) {
            Some(value) => Ok((key.clone(), python_text(Some(value)))),
            None => Err(PlotError::Ungrouped { key: key.clone(), run }),
        })
        .collect()
}
