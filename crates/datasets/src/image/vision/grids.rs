//! Formulas over the size of a picture.

use super::super::Size;
use super::files::Files;
use serde_json::Value;

/// The area that Qwen2-VL's pictures may have where nothing is said.
const QWEN_AREA: (u32, u32) = (56 * 56, 28 * 28 * 1280);
/// Longest side in terms of the shorter one that Qwen's processors take.
const QWEN_RATIO: f64 = 200.0;

/// A resize to whole cells within an area, which keeps the ratio of the sides as well as it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resize {
    /// Side of a cell, which is one token.
    pub(super) cell: u32,
    /// Least pixels.
    pub(super) least: u32,
    /// Most pixels.
    pub(super) most: u32,
}

impl Resize {
    pub(super) fn of(files: &Files) -> Option<Self> {
        if files.image_flag("do_resize") == Some(false) {
            return None;
        }
        let patch = files.image_number("patch_size").unwrap_or(14);
        let cell = patch.checked_mul(files.image_number("merge_size").unwrap_or(2))?;
        let bound = |old: &str, edge: &str, usual| {
            // SGLang sets a size of its own for this kind of model.
            let own = files.model_type() == Some("qwen2_vl");
            let edge = if own { None } else { files.edge("size", edge) };
            files.image_number(old).or(edge).unwrap_or(usual)
        };
        let least = bound("min_pixels", "shortest_edge", QWEN_AREA.0);
        Some(Self { cell, least, most: bound("max_pixels", "longest_edge", QWEN_AREA.1) })
    }

    pub(super) fn tokens(&self, size: Size) -> Result<u32, String> {
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        let ratio = width.max(height) / width.min(height);
        if ratio > QWEN_RATIO {
            return Err(format!("one side is {ratio:.0} times the other, above 200"));
        }
        let (cell, pixels) = (f64::from(self.cell), width * height);
        let (least, most) = (f64::from(self.least), f64::from(self.most));
        let cells = |side: f64| (side / cell).round_ties_even();
        let (rows, columns) = (cells(height), cells(width));
        let area = rows * columns * cell * cell;
        let (rows, columns) = if area > most {
            let shrink = (pixels / most).sqrt();
            let cells = |side: f64| (side / shrink / cell).floor().max(1.0);
            (cells(height), cells(width))
        } else if area < least {
            let stretch = (least / pixels).sqrt();
            let cells = |side: f64| (side * stretch / cell).ceil();
            (cells(height), cells(width))
        } else {
            (rows, columns)
        };
        Ok((rows * columns) as u32)
    }
}

/// A grid over a picture of fixed size, as LLaVA's vision models have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) height: u32,
    pub(super) width: u32,
    pub(super) patch: u32,
    /// Tokens beside those of the cells.
    pub(super) additional: u32,
    /// The first token is left out.
    pub(super) drops_first: bool,
}

impl Grid {
    pub(super) fn of(files: &Files) -> Option<Self> {
        let (height, width) = files.fixed_size()?;
        Some(Self {
            height,
            width,
            patch: files.number("patch_size")?,
            additional: files.number("num_additional_image_tokens").unwrap_or(0),
            drops_first: files.text("vision_feature_select_strategy") == Some("default"),
        })
    }

    fn cells(&self) -> (u32, u32) {
        (self.height / self.patch, self.width / self.patch)
    }

    pub(super) fn tokens(&self) -> Option<u32> {
        let (rows, columns) = self.cells();
        let all = rows.checked_mul(columns)?.checked_add(self.additional)?;
        all.checked_sub(u32::from(self.drops_first))
    }
}

/// LLaVA-NeXT: a grid over the whole picture, and one over the parts of the resolution that fits it best,
/// without its padding and with one token more for each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LlavaNext {
    grid: Grid,
    /// Heights and widths to choose from.
    resolutions: Vec<(u32, u32)>,
}

/// The resolutions of LLaVA-NeXT where none are given.
const NEXT: [(u32, u32); 5] = [(336, 672), (672, 336), (672, 672), (1008, 336), (336, 1008)];

impl LlavaNext {
    pub(super) fn of(files: &Files) -> Option<Self> {
        let resolutions = match files.image("image_grid_pinpoints") {
            None => NEXT.to_vec(),
            Some(Value::Array(pairs)) => {
                let side =
                    |value: &Value| u32::try_from(value.as_u64()?).ok().filter(|&side| side > 0);
                let pair = |pair: &Value| Some((side(pair.get(0)?)?, side(pair.get(1)?)?));
                pairs.iter().map(pair).collect::<Option<_>>()?
            }
            Some(_) => return None,
        };
        let grid = Grid::of(files)?;
        let (rows, columns) = grid.cells();
        (rows > 0 && columns > 0).then_some(Self { grid, resolutions })
    }

    pub(super) fn tokens(&self, size: Size) -> Option<u32> {
        let (height, width) = self.best(size)?;
        let (rows, columns) = self.grid.cells();
        let mut rows = u64::from(rows) * u64::from(height / self.grid.height);
        let mut columns = u64::from(columns) * u64::from(width / self.grid.width);
        let (of_width, of_height) = (f64::from(size.width), f64::from(size.height));
        // What the padding takes, by as many cells on both sides.
        let cut = |cells: u64, fitted: f64| {
            // Rounded to seven places, so that a product just below a whole number is that number.
            let fitted = (fitted * 1e7).round_ties_even() / 1e7;
            cells - cells.saturating_sub(fitted as u64) / 2 * 2
        };
        if of_width / of_height > columns as f64 / rows as f64 {
            rows = cut(rows, of_height * (columns as f64 / of_width));
        } else {
            columns = cut(columns, of_width * (rows as f64 / of_height));
        }
        let parts = rows * columns + rows;
        u32::try_from(parts + u64::from(self.grid.tokens()?)).ok()
    }

    /// The resolution that keeps most pixels, and of those that keep as many the one that wastes least.
    fn best(&self, size: Size) -> Option<(u32, u32)> {
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        let mut best = None;
        let (mut kept, mut wasted) = (0, u64::MAX);
        for &(rows, columns) in &self.resolutions {
            let scale = (f64::from(columns) / width).min(f64::from(rows) / height);
            let pixels = ((width * scale) as u64) * ((height * scale) as u64);
            let keeps = pixels.min(size.pixels());
            let wastes = (u64::from(rows) * u64::from(columns)).saturating_sub(keeps);
            if keeps > kept || (keeps == kept && wastes < wasted) {
                (kept, wasted, best) = (keeps, wastes, Some((rows, columns)));
            }
        }
        best
    }
}

/// InternVL: tiles laid out in the way that is nearest to the ratio of the sides, and the whole picture
/// once more if there is more than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tiles {
    height: u32,
    width: u32,
    least: u32,
    most: u32,
}

/// Most tiles in a settings file that are believed.
const TILES: u32 = 1024;

impl Tiles {
    pub(super) fn of(files: &Files) -> Option<Self> {
        let (height, width) = match files.image("size") {
            None => (384, 384),
            Some(_) => (files.edge("size", "height")?, files.edge("size", "width")?),
        };
        // The processor asks for tiles, whatever the file says about `crop_to_patches`.
        let most = files.image_number("max_patches").unwrap_or(12);
        let least = files.image_number("min_patches").unwrap_or(1);
        (most <= TILES).then_some(Self { height, width, least, most })
    }

    /// The number of tiles.
    pub(super) fn of_size(&self, size: Size) -> u32 {
        if self.most <= 1 {
            return 1;
        }
        let ratio = f64::from(size.width) / f64::from(size.height);
        let layouts =
            (1..=self.most).flat_map(|columns| (1..=self.most).map(move |rows| (columns, rows)));
        let mut layouts: Vec<(u32, u32)> = layouts
            .filter(|(columns, rows)| (self.least..=self.most).contains(&(columns * rows)))
            .collect();
        layouts.sort_by_key(|(columns, rows)| columns * rows);
        let (mut best, mut nearest) = ((1, 1), f64::INFINITY);
        for (columns, rows) in layouts {
            let off = (ratio - f64::from(columns) / f64::from(rows)).abs();
            let tile = f64::from(self.height) * f64::from(self.width);
            let half = 0.5 * tile * f64::from(columns * rows);
            // The tie is of two computed in one way, as in Python.
            #[expect(clippy::float_cmp, reason = "an equal distance is an equal number")]
            let ties = off == nearest && size.pixels() as f64 > half;
            if off < nearest || ties {
                (best, nearest) = ((columns, rows), off.min(nearest));
            }
        }
        match best.0 * best.1 {
            1 => 1,
            tiles => tiles + 1,
        }
    }
}

/// Pixtral: the cells of the picture, made smaller if a side is too long, and a token at the end of each
/// row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pixtral {
    cell: u32,
    longest: u32,
}

impl Pixtral {
    pub(super) fn of(files: &Files) -> Option<Self> {
        let patch = files.number("patch_size").unwrap_or(16);
        let cell = patch.checked_mul(files.number("spatial_merge_size").unwrap_or(1))?;
        let longest = match files.image("size") {
            None => 1024,
            Some(_) => files.edge("size", "longest_edge")?,
        };
        Some(Self { cell, longest })
    }

    pub(super) fn tokens(self, size: Size) -> u32 {
        let longest = f64::from(self.longest);
        let (mut height, mut width) = (f64::from(size.height), f64::from(size.width));
        let ratio = (height / longest).max(width / longest);
        if ratio > 1.0 {
            (height, width) = ((height / ratio).floor(), (width / ratio).floor());
        }
        let cells = |side: f64| (side as u32).max(1).div_ceil(self.cell);
        cells(height).saturating_mul(cells(width) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn size(height: u32, width: u32) -> Size {
        Size { width, height }
    }

    #[test]
    fn qwens_cells_are_those_of_its_processor() {
        // Each number is `get_number_of_image_patches` of transformers 5.19 divided by four.
        let usual = Resize { cell: 28, least: 3136, most: 1_003_520 };
        let wide = Resize { cell: 28, least: 3136, most: 12_845_056 };
        let third = Resize { cell: 32, least: 65_536, most: 16_777_216 };
        for (picture, want) in [
            (size(1080, 1920), [1222, 2691, 2040]),
            (size(720, 1280), [1196, 1196, 880]),
            (size(360, 640), [299, 299, 220]),
            (size(2160, 3840), [1222, 10549, 8160]),
            (size(1, 1), [4, 4, 64]),
            (size(42, 42), [4, 4, 64]),
            (size(70, 98), [8, 8, 70]),
        ] {
            let got = [usual, wide, third].map(|resize| resize.tokens(picture).unwrap());
            assert_eq!(got, want, "{picture}");
        }
        assert!(usual.tokens(size(1, 201)).is_err());
        assert!(usual.tokens(size(200, 1)).is_ok());
    }

    #[test]
    fn pixtral_ends_each_row() {
        let pixtral = Pixtral { cell: 16, longest: 1024 };
        assert_eq!(pixtral.tokens(size(1080, 1920)), 36 * 65);
        assert_eq!(pixtral.tokens(size(1, 1)), 2);
        assert_eq!(pixtral.tokens(size(17, 16)), 2 * 2);
        assert_eq!(pixtral.tokens(size(1, 4096)), 65, "no row is left without a cell");
    }

    #[test]
    fn settings_that_make_no_sense_are_no_rule() {
        let files = |image| Files::of_test(json!({"preprocessor": image}));
        assert_eq!(Resize::of(&files(json!({"do_resize": false}))), None);
        assert_eq!(Tiles::of(&files(json!({"size": {"shortest_edge": 4}}))), None);
        assert_eq!(Tiles::of(&files(json!({"max_patches": 4_000_000}))), None);
        assert_eq!(Pixtral::of(&files(json!({"size": 4}))), None);
        assert_eq!(Grid::of(&files(json!({"crop_size": 336}))), None, "no patch_size");
        let negative = Resize::of(&files(json!({"patch_size": -3, "size": {"longest_edge": "x"}})));
        assert_eq!(negative, Some(Resize { cell: 28, least: 3136, most: 1_003_520 }));
    }

    proptest! {
        #[test]
        fn resized_areas_are_within_their_bounds(height in 1..5000_u32, width in 1..5000_u32) {
            let resize = Resize { cell: 28, least: 56 * 56, most: 28 * 28 * 1280 };
            if let Ok(tokens) = resize.tokens(size(height, width)) {
                prop_assert!((4..=1280).contains(&tokens) || height.max(width) > 100 * height.min(width));
            }
        }

        #[test]
        fn no_size_is_too_odd(height in 1..65_500_u32, width in 1..65_500_u32, patch in 1..40_u32) {
            let picture = size(height, width);
            let grid = Grid { height: 336, width: 336, patch, additional: 1, drops_first: true };
            let next = LlavaNext { grid, resolutions: NEXT.to_vec() };
            prop_assert!(next.tokens(picture).is_none_or(|tokens| tokens >= grid.tokens().unwrap()));
            let tiles = Tiles { height: 448, width: 448, least: 1, most: 12 };
            prop_assert!((1..=13).contains(&tiles.of_size(picture)));
            let pixtral = Pixtral { cell: patch, longest: 1024 };
            prop_assert!(pixtral.tokens(picture) >= 2);
        }
    }
}
