//! The matrix product of the small networks: the same bits on every machine, at the speed of its widest instructions.
#![allow(unsafe_code)]

/// c += a b, with a [m, k], b [k, n] and c [m, n].
///
/// Every element of a b is one sum over k in order, without fused operations: how wide the blocks are changes nothing.
pub(super) fn add_product(a: &[f32], b: &[f32], c: &mut [f32], sizes: [usize; 3]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the instructions.
            return unsafe { with_avx512(a, b, c, sizes) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the instructions.
            return unsafe { with_avx2(a, b, c, sizes) };
        }
    }
    blocks::<4, 8>(a, b, c, sizes);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn with_avx512(a: &[f32], b: &[f32], c: &mut [f32], sizes: [usize; 3]) {
    blocks::<8, 32>(a, b, c, sizes);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2(a: &[f32], b: &[f32], c: &mut [f32], sizes: [usize; 3]) {
    blocks::<4, 16>(a, b, c, sizes);
}

/// Blocks of ROWS x COLUMNS results stay in registers while k runs.
#[inline(always)]
#[allow(clippy::inline_always)] // so that it is compiled anew for each set of instructions
fn blocks<const ROWS: usize, const COLUMNS: usize>(
    a: &[f32],
    b: &[f32],
    c: &mut [f32],
    [m, k, n]: [usize; 3],
) {
    let (whole_rows, whole_columns) = (m - m % ROWS, n - n % COLUMNS);
    for i in (0..whole_rows).step_by(ROWS) {
        let lines: [&[f32]; ROWS] = std::array::from_fn(|row| &a[(i + row) * k..(i + row + 1) * k]);
        for j in (0..whole_columns).step_by(COLUMNS) {
            let mut block = [[0.0_f32; COLUMNS]; ROWS];
            for (place, line) in b.chunks_exact(n).enumerate().take(k) {
                let line: &[f32; COLUMNS] = line[j..j + COLUMNS].try_into().expect("a whole block");
                for row in 0..ROWS {
                    let factor = lines[row][place];
                    for column in 0..COLUMNS {
                        block[row][column] += factor * line[column];
                    }
                }
            }
            for (row, sums) in block.iter().enumerate() {
                let place = (i + row) * n + j;
                c[place..place + COLUMNS].iter_mut().zip(sums).for_each(|(c, sum)| *c += sum);
            }
        }
        columns(a, b, c, [m, k, n], [i..i + ROWS, whole_columns..n]);
    }
    columns(a, b, c, [m, k, n], [whole_rows..m, 0..n]);
}

/// The same for the rows and columns that fill no block.
fn columns(
    a: &[f32],
    b: &[f32],
    c: &mut [f32],
    [_, k, n]: [usize; 3],
    [rows, columns]: [std::ops::Range<usize>; 2],
) {
    if columns.is_empty() {
        return;
    }
    let mut sums = vec![0.0; columns.len()];
    for row in rows {
        sums.fill(0.0);
        for (factor, line) in a[row * k..(row + 1) * k].iter().zip(b.chunks_exact(n)) {
            sums.iter_mut().zip(&line[columns.clone()]).for_each(|(sum, b)| *sum += factor * b);
        }
        let into = &mut c[row * n..(row + 1) * n][columns.clone()];
        into.iter_mut().zip(&sums).for_each(|(c, sum)| *c += sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::stream;
    use rand::RngExt as _;

    #[test]
    fn products_of_any_shape_are_sums_in_order_to_the_last_bit() {
        for [m, k, n] in [[1, 1, 1], [4, 3, 8], [5, 7, 11], [13, 2, 16], [3, 9, 8], [17, 29, 70], [64, 40, 8]]
        {
            let mut rng = stream(0, "test", &[]);
            let mut draw =
                |count: usize| (0..count).map(|_| rng.random_range(-1.0..1.0)).collect::<Vec<f32>>();
            let (a, b, c) = (draw(m * k), draw(k * n), draw(m * n));
            let expected: Vec<f32> = (0..m * n)
                .map(|place| {
                    let (i, j) = (place / n, place % n);
                    c[place] + (0..k).fold(0.0, |sum, l| sum + a[i * k + l] * b[l * n + j])
                })
                .collect();
            let (mut widest, mut narrow) = (c.clone(), c);
            add_product(&a, &b, &mut widest, [m, k, n]);
            blocks::<4, 8>(&a, &b, &mut narrow, [m, k, n]);
            assert_eq!((&widest, &narrow), (&expected, &expected), "{m} {k} {n}");
        }
    }
}
