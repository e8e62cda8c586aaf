//! Vectors of floats for the one kernel that needs to place its registers by hand, the matrix product.
#![allow(unsafe_code, clippy::inline_always)]

/// A register of floats.
pub(super) trait Lanes: Copy {
    /// Floats in it.
    const N: usize;

    /// All zero.
    ///
    /// # Safety
    /// As for every function here: the machine must have the instructions of this register.
    unsafe fn zero() -> Self;

    /// Reads `N` floats.
    ///
    /// # Safety
    /// `from` must be valid for reading `N` floats.
    unsafe fn load(from: *const f32) -> Self;

    /// Writes `N` floats.
    ///
    /// # Safety
    /// `to` must be valid for writing `N` floats.
    unsafe fn store(self, to: *mut f32);

    /// Reads the first `count` floats; the others are 0.
    ///
    /// # Safety
    /// `from` must be valid for reading `count` floats; `count` is at most `N`.
    unsafe fn load_part(from: *const f32, count: usize) -> Self;

    /// Writes the first `count` floats.
    ///
    /// # Safety
    /// `to` must be valid for writing `count` floats; `count` is at most `N`.
    unsafe fn store_part(self, to: *mut f32, count: usize);

    /// `self + x * y`, rounded once.
    ///
    /// # Safety
    /// The machine must have the instructions of this register.
    unsafe fn add_product(self, x: f32, y: Self) -> Self;

    /// Writes the transpose of 8 rows of 8 floats.
    ///
    /// # Safety
    /// `from` must be valid for reading 8 rows of 8 floats that are `from_stride` apart, `to` for writing such rows
    /// `to_stride` apart.
    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        for row in 0..8 {
            for col in 0..8 {
                // SAFETY: both places are inside the 8 x 8 blocks the caller vouches for.
                unsafe { *to.add(col * to_stride + row) = *from.add(row * from_stride + col) };
            }
        }
    }
}

/// Four floats and no instructions in particular.
#[derive(Clone, Copy)]
pub(super) struct Plain([f32; 4]);

impl Lanes for Plain {
    const N: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self([0.0; 4])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller vouches for four floats; an array of them needs no more alignment than one.
        Self(unsafe { from.cast::<[f32; 4]>().read() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: as in `load`.
        unsafe { to.cast::<[f32; 4]>().write(self.0) }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f32, count: usize) -> Self {
        let mut lanes = [0.0; 4];
        for (i, lane) in lanes.iter_mut().enumerate().take(count) {
            // SAFETY: the caller vouches for `count` floats.
            *lane = unsafe { *from.add(i) };
        }
        Self(lanes)
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, count: usize) {
        for (i, lane) in self.0.into_iter().enumerate().take(count) {
            // SAFETY: the caller vouches for `count` floats.
            unsafe { *to.add(i) = lane };
        }
    }

    #[inline(always)]
    unsafe fn add_product(self, x: f32, y: Self) -> Self {
        Self(std::array::from_fn(|i| x.mul_add(y.0[i], self.0[i])))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Lanes;
    use std::arch::x86_64 as arch;
    use std::arch::x86_64::{__m256, __m512};

    impl Lanes for __m512 {
        const N: usize = 16;

        #[inline(always)]
        unsafe fn zero() -> Self {
            // SAFETY: the caller runs on AVX-512.
            unsafe { arch::_mm512_setzero_ps() }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: the caller vouches for 16 floats; no alignment is needed.
            unsafe { arch::_mm512_loadu_ps(from) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: as in `load`.
            unsafe { arch::_mm512_storeu_ps(to, self) }
        }

        #[inline(always)]
        unsafe fn load_part(from: *const f32, count: usize) -> Self {
            // SAFETY: masked lanes are not touched, the others are vouched for by the caller.
            unsafe { arch::_mm512_maskz_loadu_ps(first16(count), from) }
        }

        #[inline(always)]
        unsafe fn store_part(self, to: *mut f32, count: usize) {
            // SAFETY: as in `load_part`.
            unsafe { arch::_mm512_mask_storeu_ps(to, first16(count), self) }
        }

        #[inline(always)]
        unsafe fn add_product(self, x: f32, y: Self) -> Self {
            // SAFETY: the caller runs on AVX-512.
            unsafe { arch::_mm512_fmadd_ps(arch::_mm512_set1_ps(x), y, self) }
        }

        #[inline(always)]
        unsafe fn transpose(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
            // SAFETY: AVX-512 machines have AVX; the blocks are vouched for by the caller.
            unsafe { transpose(from, from_stride, to, to_stride) }
        }
    }

    impl Lanes for __m256 {
        const N: usize = 8;

        #[inline(always)]
        unsafe fn zero() -> Self {
            // SAFETY: the caller runs on AVX2 and FMA.
            unsafe { arch::_mm256_setzero_ps() }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: the caller vouches for 8 floats; no alignment is needed.
            unsafe { arch::_mm256_loadu_ps(from) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: as in `load`.
            unsafe { arch::_mm256_storeu_ps(to, self) }
        }

        #[inline(always)]
        unsafe fn load_part(from: *const f32, count: usize) -> Self {
            // SAFETY: masked lanes are not touched, the others are vouched for by the caller.
            unsafe { arch::_mm256_maskload_ps(from, first8(count)) }
        }

        #[inline(always)]
        unsafe fn store_part(self, to: *mut f32, count: usize) {
            // SAFETY: as in `load_part`.
            unsafe { arch::_mm256_maskstore_ps(to, first8(count), self) }
        }

        #[inline(always)]
        unsafe fn add_product(self, x: f32, y: Self) -> Self {
            // SAFETY: the caller runs on AVX2 and FMA.
            unsafe { arch::_mm256_fmadd_ps(arch::_mm256_set1_ps(x), y, self) }
        }

        #[inline(always)]
        unsafe fn transpose(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
            // SAFETY: the caller runs on AVX2; the blocks are vouched for by the caller.
            unsafe { transpose(from, from_stride, to, to_stride) }
        }
    }

    /// A mask of the first `count` of 16 lanes.
    #[inline(always)]
    fn first16(count: usize) -> arch::__mmask16 {
        ((1_u32 << count) - 1) as arch::__mmask16
    }

    /// A mask of the first `count` of 8 lanes.
    #[inline(always)]
    unsafe fn first8(count: usize) -> arch::__m256i {
        const ONES_THEN_ZEROS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
        // SAFETY: eight entries from any of the first nine places are inside the table; the caller runs on AVX2.
        unsafe { arch::_mm256_loadu_si256(ONES_THEN_ZEROS.as_ptr().add(8 - count.min(8)).cast()) }
    }

    /// The 8 x 8 transpose: pairs, then fours, then halves change places.
    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        // SAFETY: every row read and written is inside the caller's blocks, and the caller runs on AVX.
        unsafe {
            let r: [__m256; 8] = std::array::from_fn(|i| arch::_mm256_loadu_ps(from.add(i * from_stride)));
            let mut pairs = r;
            for i in 0..4 {
                pairs[2 * i] = arch::_mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
                pairs[2 * i + 1] = arch::_mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
            }
            let mut fours = pairs;
            for half in 0..2 {
                for i in 0..2 {
                    let (low, high) = (pairs[4 * half + i], pairs[4 * half + i + 2]);
                    fours[4 * half + 2 * i] = arch::_mm256_shuffle_ps::<0x44>(low, high);
                    fours[4 * half + 2 * i + 1] = arch::_mm256_shuffle_ps::<0xEE>(low, high);
                }
            }
            for i in 0..4 {
                let (low, high) = (fours[i], fours[4 + i]);
                arch::_mm256_storeu_ps(
                    to.add(i * to_stride),
                    arch::_mm256_permute2f128_ps::<0x20>(low, high),
                );
                arch::_mm256_storeu_ps(
                    to.add((i + 4) * to_stride),
                    arch::_mm256_permute2f128_ps::<0x31>(low, high),
                );
            }
        }
    }
}
