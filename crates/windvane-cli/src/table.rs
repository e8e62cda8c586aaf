//! Tables for people: aligned columns, nothing else.

/// Lays out a header and rows; the first column aligns left, columns of numbers right.
pub(crate) fn render(header: &[&str], rows: &[Vec<String>]) -> String {
    let numeric =
        |column: usize| rows.iter().all(|row| row[column].parse::<f64>().is_ok() || row[column] == "-");
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let columns: Vec<(usize, bool)> =
        (0..header.len()).map(|column| (width(column), numeric(column))).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&columns).map(|(cell, &(width, numeric))| {
            if numeric { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let header: Vec<String> = header.iter().map(|&title| title.to_owned()).collect();
    std::iter::once(&header).chain(rows).map(|row| line(row)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn words_align_left_and_numbers_right() {
        let rows = [["random", "-", "0.10"], ["shortest-path", "100", "1.00"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let expected =
            "policy         steps  success\nrandom             -     0.10\nshortest-path    100     1.00";
        assert_eq!(render(&["policy", "steps", "success"], &rows), expected);
    }
}
